package baseline

import "github.com/swagwrap/swagwrap/calibrate"

// swaVector is SWA with vector scaling (Guo et al. 2017).
var swaVector = &Method{From: fromSWA, Key: "swa-vector", Name: called("SWA-Vector"), Scores: true, Cost: free, Run: func(w *work) error { return w.scaledSWA(calibrate.ByVector) }}
