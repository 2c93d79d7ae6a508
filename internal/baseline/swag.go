package baseline

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// swagMethod is SWAG with its low-rank covariance.
var swagMethod = &Method{
	Key: SWAG, From: fromSWAG, Name: called("SWAG"), Needs: needsDeviations, Cost: eachMember, Deploy: likeSWAG,
	Run: func(ctx context.Context, w *work) error { return w.scaled(ctx, w.swagOf, "") },
}

// Draws says how members with a covariance are drawn.
func (in *Inputs) Draws(c swag.Covariance, scale float64) swag.SampleOptions {
	return swag.SampleOptions{Seed: in.Seed, Scale: scale, Covariance: c, Antithetic: in.Antithetic, Orthogonal: in.Orthogonal}
}

func (in *Inputs) swag() swag.SampleOptions { return in.Draws(swag.LowRankPlusDiagonal, in.Scale) }

// swagTemp is SWAG with temperature scaling. It has one temperature for the average of the members' probabilities,
// softmax(log p̄ / T).
var swagTemp = &Method{
	Key: SWAGTemp, From: fromSWAG, Fits: true, Name: called("SWAG-Temp"), Needs: needsDeviations, Deploy: likeSWAG,
	Cost: shared(eachMember),
	Run:  func(ctx context.Context, w *work) error { return w.scaled(ctx, w.swagOf, task.OneNumber) },
}

// swagDiag is SWAG with only the diagonal covariance, at the paper's scale.
var swagDiag = &Method{
	Key: SWAGDiag, Name: called("SWAG-Diag"), Needs: needsSpread, Cost: eachMember,
	Deploy: func(in *Inputs) *ensemble.Settings { return in.drawn(in.diagonal()) },
	Run:    func(ctx context.Context, w *work) error { return w.scaled(ctx, w.sampled(w.diagonal()), "") },
}

func (in *Inputs) diagonal() swag.SampleOptions {
	return in.Draws(swag.Diagonal, swag.Diagonal.DefaultScale())
}

// isotropic is noise with the size of SWAG's covariance but without its shape. It shows the value of the shape, and
// costs as much as SWAG.
var isotropic = &Method{
	Key: "isotropic", Name: called("isotropic noise"), Asked: true, Needs: needsDeviations, Cost: eachMember,
	Run: func(ctx context.Context, w *work) error {
		return w.scaled(ctx, w.sampled(w.Draws(swag.Isotropic, w.Scale)), "")
	},
}
