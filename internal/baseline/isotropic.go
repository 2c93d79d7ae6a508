package baseline

import "github.com/swagwrap/swagwrap/swag"

// isotropic is noise of SWAG's size without its shape. It shows what the
// shape of SWAG's covariance is worth, and costs as much as SWAG.
var isotropic = &Method{
	Key: "isotropic", Name: called("isotropic noise"), Asked: true, Needs: needsDeviations, Cost: eachMember,
	Run: func(w *work) error { return w.sampled(swag.SampleOptions{Covariance: swag.Isotropic, Scale: w.Scale}) },
}
