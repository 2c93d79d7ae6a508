package baseline

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/task"
)

// ofLast returns the method that is the last checkpoint with another calibration. It runs only where all metrics are asked for: each
// candidate of the advice adds noise to the choice.
func ofLast(key, name string, by task.Method) *Method {
	return &Method{
		Key: key, From: fromLast, Fits: true, Name: called(own + "-" + name), Needs: needsLast, Stored: always, Scores: true, Full: true, Outcomes: true,
		Cost: shared(oneNetwork), Deploy: carried(by, lastCheckpoint),
		Run: func(ctx context.Context, w *work) error { return w.scaled(ctx, w.lastIterate, by) },
	}
}

// ofSWA is ofLast for SWA.
func ofSWA(key, name string, by task.Method) *Method {
	return &Method{
		Key: key, From: fromSWA, Fits: true, Name: called("SWA-" + name), Needs: needsSpread, Scores: true, Full: true, Outcomes: true,
		Cost: shared(oneNetwork), Deploy: carried(by, averaged),
		Run: func(ctx context.Context, w *work) error { return w.scaled(ctx, w.swaOf, by) },
	}
}

// carried returns nil for a calibration that no ensemble carries. Its method is no candidate of the advice.
func carried(by task.Method, deploy func(*Inputs) *ensemble.Settings) func(*Inputs) *ensemble.Settings {
	if by == task.ByVennAbers {
		return nil
	}
	return deploy
}
