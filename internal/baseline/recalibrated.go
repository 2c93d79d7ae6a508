package baseline

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/task"
)

// ofLast returns the method that is the last checkpoint with another calibration. It runs only where all metrics are asked for: each
// candidate of the advice adds noise to the choice.
func ofLast(key, name string, by task.Method) *Method {
	return &Method{
		Key: key, From: fromLast, Fits: true, Name: called(own + "-" + name), Needs: needsLast, Stored: always, Scores: true, Full: true, Outcomes: true,
		Cost: shared(oneNetwork), Deploy: lastCheckpoint,
		Run: func(ctx context.Context, w *work) error { return w.scaled(ctx, w.lastIterate, by) },
	}
}

// ofSWA is ofLast for SWA.
func ofSWA(key, name string, by task.Method) *Method {
	return &Method{
		Key: key, From: fromSWA, Fits: true, Name: called("SWA-" + name), Needs: needsSpread, Scores: true, Full: true, Outcomes: true,
		Cost: shared(oneNetwork), Deploy: averaged,
		Run: func(ctx context.Context, w *work) error { return w.scaled(ctx, w.swaOf, by) },
	}
}
