package baseline

import "github.com/swagwrap/swagwrap/swag"

// swagDiag is SWAG with the diagonal alone, at the paper's scale.
var swagDiag = &Method{
	Key: SWAGDiag, Name: called("SWAG-Diag"), Cost: eachMember,
	Run: func(w *work) error { return w.sampled(swag.Diagonal, swag.Diagonal.DefaultScale()) },
}
