package baseline

import "github.com/swagwrap/swagwrap/swag"

// isotropic is noise with the size of SWAG's covariance but without its shape. It shows the value of the shape, and
// costs as much as SWAG.
var isotropic = &Method{
	Key: "isotropic", Name: called("isotropic noise"), Asked: true, Needs: needsDeviations, Cost: eachMember,
	Run: func(w *work) error {
		return w.scaled(w.sampled(swag.SampleOptions{Covariance: swag.Isotropic, Scale: w.Scale}), "")
	},
}
