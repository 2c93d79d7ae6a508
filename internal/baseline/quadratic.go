package baseline

import "github.com/swagwrap/swagwrap/internal/task"

// sgdQuadratic and swaQuadratic are the last checkpoint and SWA with quadratic scaling of the log-odds of two classes.
var (
	sgdQuadratic = ofLast("sgd-quadratic", "Quadratic", task.ByQuadratic)
	swaQuadratic = ofSWA("swa-quadratic", "Quadratic", task.ByQuadratic)
)
