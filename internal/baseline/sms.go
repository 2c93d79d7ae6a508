package baseline

import "github.com/swagwrap/swagwrap/internal/task"

// sgdMatrix and swaMatrix are the last checkpoint and SWA with structured matrix scaling (Berta et al. 2025).
var (
	sgdMatrix = ofLast("sgd-sms", "SMS", task.ByMatrix)
	swaMatrix = ofSWA("swa-sms", "SMS", task.ByMatrix)
)
