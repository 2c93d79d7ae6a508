package task

import gauss "github.com/swagwrap/swagwrap/calibrate/regression"

// How the outcome of a position follows from its scores: see [Adding].
const (
	addSoftmax = "softmax"
	addLabels  = "labels"
	addPair    = "pair"
	addMoments = "moments"
)

// Adding says how the outcome of a position follows from its scores, for devices that add up what members predict. Package
// onnxio has the words.
type Adding struct {
	How       string
	Count     int                // scores of a position
	Head      gauss.VarianceHead // of moments
	Variances []float64          // of all targets, of moments without a head
}

// Additive is a task whose outcomes a device may compute. ok is false if the scores are not of the form that it takes.
type Additive interface {
	Task
	Adding() (a Adding, ok bool)
}

func (t classes) Adding() (Adding, bool) {
	return Adding{How: addSoftmax, Count: t.count}, t.form() == Logits
}

func (t binary) Adding() (Adding, bool) {
	return Adding{How: addPair, Count: 1}, t.form() == Logits
}

func (t labels) Adding() (Adding, bool) {
	return Adding{How: addLabels, Count: t.Count}, t.form() == Logits
}

func (t regression) Adding() (Adding, bool) {
	a := Adding{How: addMoments, Count: t.Count, Head: t.numbers().Head}
	for k := range t.targets {
		a.Variances = append(a.Variances, t.variance(k))
	}
	return a, true
}
