package task

import "github.com/swagwrap/swagwrap/calibrate/regression"

// How the outcome of a position follows from its scores: see [Adding].
const (
	addSoftmax = "softmax"
	addLabels  = "labels"
	addPair    = "pair"
	addMoments = "moments"
)

// Adding says how the outcome of a position follows from its scores. Devices need it to add up the outcomes of members. Package
// onnxio defines the words of How.
type Adding struct {
	How       string
	Count     int                     // scores of a position
	Head      regression.VarianceHead // of moments
	Variances []float64               // of all targets, of moments without a head
}

// AddingOf returns how a device adds up the outcomes of a task, or of each of its positions. ok is false if devices cannot
// take scores of this form.
func AddingOf(t Task) (a Adding, ok bool) {
	switch t := OnePosition(t).(type) {
	case binary:
		return Adding{How: addPair, Count: 1}, t.form() == Logits
	case classes:
		return Adding{How: addSoftmax, Count: t.count}, t.form() == Logits
	case labels:
		return Adding{How: addLabels, Count: t.Count}, t.form() == Logits
	case regressionTask:
		a := Adding{How: addMoments, Count: t.Count, Head: t.numbers().Head}
		for k := range t.targets {
			a.Variances = append(a.Variances, ownVariance(t, k))
		}
		return a, true
	}
	return a, false
}
