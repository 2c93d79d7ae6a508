package statedict

import (
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// An Application is the calibration of exported weights, as the JSON file next to them has it. It is a file of
// [ensemble.CalibrationKind] with the PyTorch that applies it.
type Application struct {
	Kind     string `json:"kind"`
	Version  int    `json:"format_version"`
	Producer string `json:"producer"`
	Of       string `json:"of"` // the file with the weights
	Task     string `json:"task"`
	*task.Calibration
	PyTorch []string `json:"pytorch"` // lines of Python: x is a batch, and model has the weights
}

// Applied returns what the file of a calibration says.
func Applied(c *task.Calibration, n *infer.Network, producer, of string) Application {
	return Application{ensemble.CalibrationKind, 1, producer, of, n.Posterior.Card.Task, c,
		c.PyTorch(n.Posterior.Card.Task, n.Form(), n.Axis())}
}
