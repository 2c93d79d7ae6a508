package baseline

import "github.com/swagwrap/swagwrap/internal/task"

// sgdTemp is the last checkpoint with temperature scaling (Guo et al. 2017): what users can have without SWA.
var sgdTemp = &Method{
	Key: SGDTemp, From: fromLast, Fits: true, Name: called("SGD-Temp"), Needs: needsLast, Stored: always,
	Cost: shared(oneNetwork), Deploy: lastCheckpoint,
	Run: func(w *work) error { return w.scaled(w.lastIterate, task.OneNumber) },
}
