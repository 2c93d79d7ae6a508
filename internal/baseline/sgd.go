package baseline

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/task"
)

// sgd is the last checkpoint.
var sgd = &Method{
	Key: SGD, From: fromLast, Name: called(own), Needs: needsLast, Stored: always,
	Cost: oneNetwork, Deploy: lastCheckpoint,
	Run: func(ctx context.Context, w *work) error { return w.scaled(ctx, w.lastIterate, "") },
}

// sgdTemp is the last checkpoint with temperature scaling (Guo et al. 2017): what users can have without SWA.
var sgdTemp = &Method{
	Key: SGDTemp, From: fromLast, Fits: true, Name: called(own + "-Temp"), Needs: needsLast, Stored: always,
	Cost: shared(oneNetwork), Deploy: lastCheckpoint,
	Run: func(ctx context.Context, w *work) error { return w.scaled(ctx, w.lastIterate, task.OneNumber) },
}
