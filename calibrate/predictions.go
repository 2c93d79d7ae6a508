package calibrate

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// sumTolerance is the largest allowed difference between the sum of a row and 1. A softmax in float32 over 1,000
// classes is off by about 1e-7. Probabilities printed with few digits, and logits passed by mistake, are off by more
// than 1e-6.
const sumTolerance = 1e-6

const (
	badShape = "calibrate: number of probabilities is not labels × classes"
	badDst   = "calibrate: length of dst does not match"
)

// Predictions are the class probabilities of n labelled examples.
//
// [NewPredictions] checks the values. The functions of this package panic if the number of probabilities is not labels
// × classes or if there is no example. They do not check anything else.
type Predictions struct {
	Classes int       // columns, at least 2
	Probs   []float64 // row-major, n×Classes; each in [0, 1], each row sums to 1
	Labels  []int     // n true classes, each in [0, Classes)
	// Units numbers the unit of chance of each example, as in [UnitFolds]. Halves that something is fitted on do not share
	// one. nil stands for examples that do not depend on each other.
	Units []int
}

// NewPredictions returns the predictions probs, n×classes in row-major order, for examples whose true classes are
// labels. The slices are kept, not copied.
//
// It is an error if the lengths disagree, there is no row or only one class, or a label is not in [0, classes). A
// probability must be a finite number in [0, 1], and a row must sum to 1 within 1e-6. The error names the first bad
// row.
func NewPredictions(probs []float64, classes int, labels []int) (Predictions, error) {
	switch {
	case classes < 2:
		return Predictions{}, fmt.Errorf("%d classes, want at least 2", classes)
	case len(labels) == 0:
		return Predictions{}, errors.New("no labels, want at least one row")
	case !isMatrix(probs, len(labels), classes):
		return Predictions{}, fmt.Errorf("%d probabilities for %d labels and %d classes", len(probs), len(labels), classes)
	}
	p := Predictions{Classes: classes, Probs: probs, Labels: labels}
	for i, label := range labels {
		if err := CheckRow(p.Row(i), label); err != nil {
			return Predictions{}, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return p, nil
}

// CheckRow makes the checks of [NewPredictions] for one row.
func CheckRow(probs []float64, label int) error {
	for c, x := range probs {
		if !(0 <= x && x <= 1) { // also catches NaN
			return fmt.Errorf("class %d: probability %v, want 0 to 1", c, x)
		}
	}
	if sum := floats.Sum(probs); math.Abs(sum-1) > sumTolerance {
		return fmt.Errorf("probabilities sum to %v, want 1 within %v", sum, sumTolerance)
	}
	return checkLabel(label, len(probs))
}

// Len returns the number of examples.
func (p Predictions) Len() int { return len(p.Labels) }

// Row returns the probabilities of example i, without copying them.
func (p Predictions) Row(i int) []float64 {
	return p.Probs[i*p.Classes : (i+1)*p.Classes : (i+1)*p.Classes]
}

// check panics if the shapes do not match.
func (p Predictions) check() {
	if len(p.Labels) == 0 || p.Classes < 2 || !isMatrix(p.Probs, len(p.Labels), p.Classes) {
		panic(badShape)
	}
}

// isMatrix reports whether x has rows×cols elements. It avoids the product, which could overflow.
func isMatrix(x []float64, rows, cols int) bool {
	return len(x)%cols == 0 && len(x)/cols == rows
}

func checkLabel(label, classes int) error {
	if label < 0 || label >= classes {
		return fmt.Errorf("label %d, want 0 to %d", label, classes-1)
	}
	return nil
}

// destination returns dst, or a new slice if dst is nil. It panics if the length is not n.
func destination(dst []float64, n int) []float64 {
	if dst == nil {
		return make([]float64, n)
	}
	if len(dst) != n {
		panic(badDst)
	}
	return dst
}
