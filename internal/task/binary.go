package task

import (
	"fmt"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate"
)

// binary is one score about class 1 of two: a logit, or its sigmoid. An outcome is
// the probabilities of both, so that rows are those of two classes.
type binary struct{ classes }

func newBinary(s Scores) (Task, bool, error) {
	return binary{classes{s, 2}}, s.Count == 1 && !strings.HasSuffix(s.Activation, "softmax"), nil
}

func (t binary) Name() string { return "binary" }

func (t binary) Describe() string {
	return fmt.Sprintf("output %q: the %s of class 1 of 2", t.Output, t.score())
}

func (t binary) Outcome(dst []float64, scores []float32) (float64, error) {
	p, err := finiteSum(scores)
	switch {
	case err != nil:
		return 0, err
	case t.Activation != "sigmoid": // the softmax of (0, z)
		t.Link(dst, []float64{p})
	case p < 0 || p > 1:
		return 0, fmt.Errorf("the network ends in a sigmoid, but its output is no probability: %v", scores[0])
	default:
		dst[0], dst[1] = 1-p, p
	}
	return calibrate.Entropy(dst), nil
}

func (t binary) Link(dst, logits []float64) {
	calibrate.Softmax(dst, []float64{0, logits[0]}, 2, 1)
}

// AddCurvature adds Σ p(1−p).
func (t binary) AddCurvature(hessian, logits *mat.Dense) {
	n, _ := logits.Dims()
	p := make([]float64, 2)
	for i := range n {
		t.Link(p, logits.RawRowView(i))
		hessian.Set(0, 0, hessian.At(0, 0)+p[0]*p[1])
	}
}

// Say implements [Joined]: scores become those of two classes.
func (t binary) Say(g Graph, scores string) Said {
	two := classes{count: 2}
	if t.Activation == "sigmoid" {
		two.Activation = "softmax"
		return two.Say(g, g.Rowwise("Concat", g.Op("Sub", g.Constant([]float32{1}, 1, 1), scores), scores))
	}
	return two.Say(g, g.Rowwise("Concat", g.Op("Sub", scores, scores), scores)) // the logits 0 and z
}
