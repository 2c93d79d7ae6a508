package baseline

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/task"
)

// swa is the mean of the weights.
var swa = &Method{
	Key: SWA, From: fromSWA, Name: called("SWA"), Needs: needsSpread, Cost: oneNetwork, Deploy: averaged,
	Run: func(ctx context.Context, w *work) error { return w.scaled(ctx, w.swaOf, "") },
}

// swaTemp is SWA with temperature scaling (Guo et al. 2017).
var swaTemp = &Method{
	Key: SWATemp, From: fromSWA, Fits: true, Name: called("SWA-Temp"), Needs: needsSpread, Cost: shared(oneNetwork), Deploy: averaged,
	Run: func(ctx context.Context, w *work) error { return w.scaled(ctx, w.swaOf, task.OneNumber) },
}
