package baseline

import "github.com/swagwrap/swagwrap/internal/task"

// swaVector is SWA with vector scaling (Guo et al. 2017).
var swaVector = &Method{
	Key: "swa-vector", From: fromSWA, Fits: true, Name: called("SWA-Vector"), Needs: needsSpread, Scores: true, Cost: shared(oneNetwork), Deploy: averaged,
	Outcomes: true,
	Run:      func(w *work) error { return w.scaled(w.swaOf, task.ByVector) },
}
