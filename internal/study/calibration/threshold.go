package calibration

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/report"
)

// Threshold is the chosen threshold, in the form of its JSON.
type Threshold struct {
	Value     float64 `json:"value"`
	Criterion string  `json:"criterion,omitempty"` // empty if the user gave the value
}

// String names the threshold.
func (t *Threshold) String() string {
	if t.Criterion == "" {
		return "threshold " + report.Fixed(t.Value, 4)
	}
	return fmt.Sprintf("threshold %s by %s", report.Fixed(t.Value, 4), t.Criterion)
}

// threshold returns the chosen threshold, or 0 for the default.
func (k *Result) threshold() float64 {
	if k.Threshold == nil {
		return 0
	}
	return k.Threshold.Value
}

// NoThreshold is the error for a threshold on predictions of another task than two classes.
type NoThreshold struct{ Size string }

func (e *NoThreshold) Error() string {
	return fmt.Sprintf("a threshold is on the probability of class 1 of two, and there are %s", e.Size)
}
