package baseline

import "github.com/swagwrap/swagwrap/internal/task"

// swaTemp is SWA with temperature scaling (Guo et al. 2017).
var swaTemp = &Method{
	Key: SWATemp, From: fromSWA, Name: called("SWA-Temp"), Cost: free, Deploy: averaged,
	Run: func(w *work) error { return w.scaled(w.swaOf, task.OneNumber) },
}

// free is the cost of methods that reuse SWA's predictions.
func free(*Inputs, Cost) int64 { return 0 }
