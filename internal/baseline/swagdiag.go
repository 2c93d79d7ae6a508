package baseline

import (
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/swag"
)

// swagDiag is SWAG with only the diagonal covariance, at the paper's scale.
var swagDiag = &Method{
	Key: SWAGDiag, Name: called("SWAG-Diag"), Needs: needsSpread, Cost: eachMember,
	Deploy: func(in *Inputs) *ensemble.Settings { return in.drawn(diagonal) },
	Run:    func(w *work) error { return w.scaled(w.sampled(diagonal), "") },
}

var diagonal = swag.SampleOptions{Covariance: swag.Diagonal, Scale: swag.Diagonal.DefaultScale()}
