package probe

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Steps of an ordinal scale are refused, and independent labels and classes are not.
func TestOrdinal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	biases := []float64{2, 0.5, -1, -3}
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	var score []float64
	for range 256 {
		score = append(score, 2*r.NormFloat64())
	}
	coral := func(i, k int) float64 { return score[i] + biases[k] }
	corn := func(i, k int) float64 {
		p := 1.0
		for j := range k + 1 {
			p *= sigmoid(score[i]*float64(j+1)/2 + biases[j] + score[(i+j)%256]/3)
		}
		return p
	}
	each := func(f func(i, k int) float64) func(i, k int) float64 {
		return func(i, k int) float64 { return sigmoid(f(i, k)) }
	}
	noise := rowsOf(256, 4, func(int, int) float64 { return r.NormFloat64() })
	free := func(i, k int) float64 { return float64(noise[4*i+k]) + biases[k] }
	flags := target.Target{Width: 4, Values: slices.Repeat([]float64{1, 1, 0, 0}, 256)}
	grades := target.Target{Classes: slices.Repeat([]int{0, 4}, 128)}
	unit := infer.OutputProperties{Low: 0, High: 1}
	affine := infer.OutputProperties{Low: math.Inf(-1), High: math.Inf(1), Affine: true}
	for _, c := range []struct {
		name       string
		task       string
		n          int
		scores     func(i, k int) float64
		labels     target.Target
		properties infer.OutputProperties
		want       bool
	}{
		{"CORAL", "labels", 4, each(coral), target.Target{}, unit, true},
		{"CORAL with two steps", "labels", 2, each(coral), target.Target{}, unit, true},
		{"CORAL, grades", "labels", 4, each(coral), grades, unit, true},
		{"CORAL, steps as labels", "labels", 4, each(coral), flags, unit, true},
		{"CORAL, biases in any order", "labels", 4, each(func(i, k int) float64 { return coral(i, (k*3+1)%4) }), target.Target{}, unit, true},
		{"CORAL's logits as labels", "labels", 4, coral, target.Target{}, affine, true},
		{"CORAL's logits as classes", "classes", 4, coral, grades, affine, true},
		{"CORN", "labels", 4, corn, target.Target{}, unit, true},
		{"CORN, grades", "labels", 4, corn, grades, unit, true},
		{"P(y <= k)", "labels", 4, func(i, k int) float64 { return 1 - corn(i, k) }, target.Target{}, unit, true},

		{"independent labels", "labels", 4, each(free), target.Target{}, unit, false},
		{"their logits", "labels", 4, free, target.Target{}, affine, false},
		{"nested labels, which are known", "labels", 4, corn, flags, unit, false},
		{"labels from frequent to rare", "labels", 4, each(func(i, k int) float64 { return free(i, k)/9 + 3*biases[k] }), target.Target{}, unit, false},
		{"a frequent and a rare label", "labels", 2, corn, target.Target{}, unit, false},
		{"classes", "classes", 4, free, grades, affine, false},
	} {
		raw := &Record{Task: c.task, Count: c.n, Scores: rowsOf(256, c.n, c.scores), Labels: c.labels, OutputProperties: c.properties}
		_, err := raw.Decide()
		if refused := err != nil && strings.Contains(err.Error(), "of an ordinal scale"); refused != c.want || err != nil && !c.want {
			t.Errorf("%s: %v", c.name, err)
		} else if refused && !strings.Contains(strings.Join(err.(*Fault).Hints(), " "), "docs/exporting.md#ordinal-heads") {
			t.Errorf("%s: hints %q", c.name, err.(*Fault).Hints())
		}
	}
}
