package baseline

import "github.com/swagwrap/swagwrap/swag"

// swagMethod is SWAG with its low-rank covariance.
var swagMethod = &Method{
	Key: SWAG, Name: called("SWAG"), Needs: needsDeviations, Cost: eachMember,
	Run: func(w *work) error { return w.sampled(swag.LowRankPlusDiagonal, w.Scale) },
}
