package baseline

import "github.com/swagwrap/swagwrap/internal/task"

// swaTemp is SWA with temperature scaling (Guo et al. 2017).
var swaTemp = &Method{
	Key: SWATemp, From: fromSWA, Fits: true, Name: called("SWA-Temp"), Needs: needsSpread, Cost: shared(oneNetwork), Deploy: averaged,
	Run: func(w *work) error { return w.scaled(w.swaOf, task.OneNumber) },
}
