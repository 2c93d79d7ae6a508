package baseline

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// recalibrated returns the methods with other calibrations of classes than a temperature.
func recalibrated(of func(task.Calibrator) *Method) (list []*Method) {
	for _, c := range task.Methods(target.Classes)[1:] {
		m := of(c)
		m.Fits, m.Scores, m.Outcomes, m.Cost = true, true, true, shared(oneNetwork)
		m.Tried = c.Method == task.ByMatrix
		m.Full = c.Unlisted && !m.Tried // each candidate of the advice adds noise to the choice
		list = append(list, m)
	}
	return list
}

// ofLast returns the method that is the last checkpoint with another calibration.
func ofLast(c task.Calibrator) *Method {
	return &Method{
		Key: "sgd-" + string(c.Method), From: fromLast, Name: called(own + "-" + c.Name),
		Needs: needsLast, Stored: always, Deploy: lastCheckpoint,
		Run: func(ctx context.Context, w *work) error { return w.scaled(ctx, w.lastIterate, c.Method) },
	}
}

// ofSWA is ofLast for SWA.
func ofSWA(c task.Calibrator) *Method {
	return &Method{
		Key: "swa-" + string(c.Method), From: fromSWA, Name: called("SWA-" + c.Name), Needs: needsSpread, Deploy: averaged,
		Run: func(ctx context.Context, w *work) error { return w.scaled(ctx, w.swaOf, c.Method) },
	}
}
