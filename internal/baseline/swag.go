package baseline

import "github.com/swagwrap/swagwrap/swag"

// swagMethod is SWAG with its low-rank covariance.
var swagMethod = &Method{
	Key: SWAG, From: fromSWAG, Name: called("SWAG"), Needs: needsDeviations, Cost: eachMember, Deploy: likeSWAG,
	Run: func(w *work) error { return w.scaled(w.swagOf, "") },
}

// swag returns the sampling options of SWAG.
func (in *Inputs) swag() swag.SampleOptions {
	return swag.SampleOptions{Seed: in.Seed, Scale: in.Scale, Covariance: swag.LowRankPlusDiagonal}
}
