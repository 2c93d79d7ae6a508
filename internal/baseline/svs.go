package baseline

import "github.com/swagwrap/swagwrap/internal/task"

// sgdStructured and swaStructured are the last checkpoint and SWA with structured vector scaling (Berta et al. 2025).
var (
	sgdStructured = ofLast("sgd-svs", "SVS", task.ByStructured)
	swaStructured = ofSWA("swa-svs", "SVS", task.ByStructured)
)
