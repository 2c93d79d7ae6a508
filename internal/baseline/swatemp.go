package baseline

import "github.com/swagwrap/swagwrap/calibrate"

// swaTemp is SWA with temperature scaling (Guo et al. 2017).
var swaTemp = &Method{From: fromSWA, Key: SWATemp, Name: called("SWA-Temp"), Cost: free, Run: func(w *work) error { return w.scaledSWA(calibrate.ByTemperature) }}

// free costs nothing beside SWA.
func free(*Inputs, Cost) int64 { return 0 }
