package multilabel

import (
	"errors"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
)

const badShape = "labels: number of values is not examples × labels"

// Unknown is the target of a label that is not known.
const Unknown = -1

// Predictions are the probabilities of the labels of n examples.
//
// [NewPredictions] checks the values. The functions of this package panic if the lengths disagree or if there is no
// example. They do not check anything else.
type Predictions struct {
	Labels  int       // per example, at least 1
	Probs   []float64 // row-major, n×Labels; probability that the example has the label
	Targets []int     // n×Labels; 1 with the label, 0 without it, or Unknown

	// Complements are 1 − Probs, n×Labels, if they are known with more digits than that difference has, else nil. The
	// loss of an absent label with a probability near 1 needs them: for a sigmoid above 37 the difference is 0.
	Complements []float64
}

// NewPredictions returns the predictions probs, n×labels in row-major order, for examples with the given targets. The
// argument complements may be nil. The slices are kept, not copied.
//
// It is an error if the lengths disagree, there is no row or no label, or a probability is not in [0, 1]. A
// probability and its complement must sum to 1 within 1e-6, and a target must be 0, 1 or [Unknown]. The error names
// the first bad row and label.
func NewPredictions(probs, complements []float64, labels int, targets []int) (Predictions, error) {
	p := Predictions{Labels: labels, Probs: probs, Targets: targets, Complements: complements}
	switch {
	case labels < 1:
		return Predictions{}, fmt.Errorf("%d labels, want at least 1", labels)
	case len(targets) == 0:
		return Predictions{}, errors.New("no rows, want at least one")
	case len(targets)%labels != 0 || len(probs) != len(targets) || complements != nil && len(complements) != len(targets):
		return Predictions{}, fmt.Errorf("%d probabilities and %d complements for %d values of %d labels each", len(probs),
			len(complements), len(targets), labels)
	}
	for i := range p.Len() {
		row, end := i*labels, (i+1)*labels
		var not []float64
		if complements != nil {
			not = complements[row:end]
		}
		if err := CheckRow(probs[row:end], not, targets[row:end]); err != nil {
			return Predictions{}, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return p, nil
}

// CheckRow makes the checks of [NewPredictions] for the values of one row.
func CheckRow(probs, complements []float64, targets []int) error {
	p := Predictions{Probs: probs, Complements: complements}
	for k, x := range probs {
		if !(0 <= x && x <= 1) { // also catches NaN
			return fmt.Errorf("label %d: probability %v, want 0 to 1", k, x)
		}
		if q := p.not(k); !(0 <= q && q <= 1 && math.Abs(x+q-1) <= 1e-6) {
			return fmt.Errorf("label %d: probability %v and complement %v, want a sum of 1", k, x, q)
		}
		if err := checkTarget(k, targets[k]); err != nil {
			return err
		}
	}
	return nil
}

func checkTarget(label, targets int) error {
	if targets != 0 && targets != 1 && targets != Unknown {
		return fmt.Errorf("label %d: value %d, want 0, 1 or %d", label, targets, Unknown)
	}
	return nil
}

// Len returns the number of examples.
func (p Predictions) Len() int { return len(p.Targets) / p.Labels }

func (p Predictions) check() {
	if p.Labels < 1 || len(p.Targets) == 0 || len(p.Targets)%p.Labels != 0 || len(p.Probs) != len(p.Targets) ||
		p.Complements != nil && len(p.Complements) != len(p.Targets) {
		panic(badShape)
	}
}

// not returns the probability that the label is absent.
func (p Predictions) not(k int) float64 {
	if p.Complements == nil {
		return 1 - p.Probs[k]
	}
	return p.Complements[k]
}

// column holds the known values of one label. With complements, examples are ordered by log-odds, because different
// probabilities may both round to 1.
type column struct {
	top     []calibrate.TopLabel
	in, out []float64 // scores of the examples without and with the label
}

func (p Predictions) column(label int) (c column) {
	for k := label; k < len(p.Targets); k += p.Labels {
		if p.Targets[k] == Unknown {
			continue
		}
		score := p.Probs[k]
		if p.Complements != nil {
			score = logOdds(p.Probs[k], p.Complements[k])
		}
		c.top = append(c.top, calibrate.TopLabel{Confidence: p.Probs[k], Correct: p.Targets[k] == 1})
		if p.Targets[k] == 1 {
			c.out = append(c.out, score)
		} else {
			c.in = append(c.in, score)
		}
	}
	return c
}
