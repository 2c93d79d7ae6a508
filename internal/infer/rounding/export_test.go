package rounding

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
)

// Amplify is what an objection to a GPU asks of a model.
func Amplify(ctx context.Context, e *infer.Engine, m infer.Model, held dataset.Dataset) (float64, error) {
	var sums infer.Sums
	if _, err := e.PredictUsable(ctx, m, held, false, &sums); err != nil {
		return 0, err
	}
	return Side{m, e.Spread(held.Len()), nil}.amplify(ctx, Options{}, held, sums.Mean())
}
