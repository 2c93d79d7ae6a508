package baseline

import "github.com/swagwrap/swagwrap/swag"

// isotropic is noise of SWAG's size without its shape. It costs as much as SWAG,
// and is of interest to those who ask what the shape of its covariance is worth.
var isotropic = &Method{
	Key: "isotropic", Name: called("isotropic noise"), Asked: true, Needs: needsDeviations, Cost: eachMember,
	Run: func(w *work) error { return w.sampled(swag.Isotropic, w.Scale) },
}
