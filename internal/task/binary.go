package task

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/target"
)

// binary is the task with one score for class 1 of two: a logit, or a probability. An outcome holds the probabilities
// of both classes, so the rows are those of two classes. The prediction depends on a threshold on the probability of
// class 1.
type binary struct{ classes }

func newBinary(s OutputSpec) (Task, bool, error) {
	about := &About{"binary", fmt.Sprintf("output %q: the %s of class 1 of 2", s.Output, s.scoreWord()), "2 classes", 2, 2}
	return binary{classes{described{about}, s, 2}}, s.Count == 1 && !strings.HasSuffix(s.Activation, "softmax"), nil
}

func (t binary) Outcome(dst []float64, scores []float32) (float64, error) {
	z, err := t.single(scores)
	if err != nil {
		return 0, err
	}
	switch t.form() {
	case Probabilities:
		dst[0], dst[1] = 1-z, z
	case LogProbabilities: // 1 − e^z keeps its digits if e^z is near 1
		dst[0], dst[1] = -math.Expm1(z), math.Exp(z)
	default: // the softmax of (0, z)
		t.Link(dst, []float64{z})
	}
	return calibrate.Entropy(dst), nil
}

// Evident implements [Evident]: one logit says no more than its probability.
func (t binary) Evident() bool { return false }

// single checks and returns a score that stands alone. It fails if the score does not have the form of s.
func (s OutputSpec) single(score []float32) (float64, error) {
	switch z := float64(score[0]); {
	case s.form() == LogProbabilities && z <= 0:
		return z, nil
	case z-z != 0:
		return 0, fmt.Errorf("the network's output is not finite: %v", score[0])
	case s.form() == Probabilities && z >= -Rounding && z <= 1+Rounding:
		return min(max(z, 0), 1), nil
	case s.form() == Probabilities:
		return 0, fmt.Errorf("the network's scores are taken for probabilities, but one is %v", score[0])
	case s.form() == LogProbabilities:
		return 0, fmt.Errorf("the network's scores are taken for log-probabilities, but one is %v", score[0])
	default:
		return z, nil
	}
}

func (t binary) Link(dst, logits []float64) {
	calibrate.Softmax(dst, []float64{0, logits[0]}, 2, 1)
}

// AddCurvature adds the sum of p(1−p) over the examples.
func (t binary) AddCurvature(hessian, logits *mat.Dense) {
	n, _ := logits.Dims()
	p := make([]float64, 2)
	for i := range n {
		t.Link(p, logits.RawRowView(i))
		hessian.Set(0, 0, hessian.At(0, 0)+p[0]*p[1])
	}
}

// Say implements [Fusable]. It turns the score into scores of two classes.
func (t binary) Say(g Graph, scores string) MemberOutcome {
	two := classes{count: 2}
	switch t.form() {
	case LogProbabilities:
		scores = g.Op("Exp", scores)
		fallthrough
	case Probabilities:
		two.Form, two.Activation = Probabilities, t.Activation
		scores = t.bounded(g, scores)
		return two.Say(g, g.Rowwise("Concat", g.Op("Sub", g.Constant([]float32{1}, 1, 1), scores), scores))
	}
	return two.Say(g, g.Rowwise("Concat", g.Op("Sub", scores, scores), scores)) // the logits 0 and z
}

// Decide implements [Decided].
func (t binary) Decide(outcomes []float64, labels target.Target, by detect.Criterion) (detect.OperatingPoint, error) {
	var in, out []float64 // probabilities of class 1, for examples of class 0 and of class 1
	for i, label := range labels.Classes {
		if p := outcomes[2*i+1]; label == 1 {
			out = append(out, p)
		} else {
			in = append(in, p)
		}
	}
	return by.Choose(in, out)
}

// Columns lists the columns of two classes, and the probability of class 1.
func (t binary) Columns(want RowOptions) []Column {
	return append(t.classes.Columns(want), Column{Name: "class_1_probability"}, Column{Name: "complement", Hidden: true})
}

// Values appends a row. The threshold decides the prediction. The confidence is the probability of the predicted class.
func (t binary) Values(dst []float64, want RowOptions, a Average, label target.Target) []float64 {
	at := len(dst)
	dst = t.classes.Values(dst, want, a, label)
	p, row := a.Outcome, dst[at:]
	class := byThreshold(p[1], a.Threshold)
	row[prediction], row[confidence] = float64(class), p[class]
	for k := range t.top(want) {
		c := class ^ k // the prediction first, then the other class
		row[ranked+2*k], row[ranked+2*k+1] = float64(c), p[c]
	}
	return append(dst, p[1], p[0])
}

// byThreshold returns the predicted class for the probability of class 1.
func byThreshold(p, threshold float64) int {
	if p >= orDefault(threshold) {
		return 1
	}
	return 0
}

func orDefault(threshold float64) float64 {
	if threshold == 0 {
		return detect.DefaultThreshold
	}
	return threshold
}
