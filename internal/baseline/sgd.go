package baseline

import "github.com/swagwrap/swagwrap/internal/ensemble"

// sgd is the last checkpoint.
var sgd = &Method{
	Key:    "sgd",
	From:   fromLast,
	Name:   called("SGD, last iterate"),
	Needs:  needsCheckpoints,
	Stored: always,
	Cost:   oneNetwork,
	Deploy: func(*Inputs) *ensemble.Settings { return lastCheckpoints(1) },
	Run: func(w *work) error {
		p, err := w.lastIterate()
		if err != nil {
			return err
		}
		return w.yield(w.as(p))
	},
}
