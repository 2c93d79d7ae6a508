package baseline

import "github.com/swagwrap/swagwrap/internal/task"

// sgdVector is the last checkpoint with vector scaling (Guo et al. 2017).
var sgdVector = &Method{
	Key: "sgd-vector", From: fromLast, Fits: true, Name: called("SGD-Vector"), Needs: needsLast, Stored: always, Scores: true,
	Outcomes: true,
	Cost:     shared(oneNetwork), Deploy: lastCheckpoint,
	Run: func(w *work) error { return w.scaled(w.lastIterate, task.ByVector) },
}
