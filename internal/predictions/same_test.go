package predictions

import (
	"math"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/internal/task"
)

// Probabilities beside logits of tokens and pixels are theirs, or which of them are the predictions is asked.
func TestAgree(t *testing.T) {
	tokens := []float64{0, 1, 2, 3, 1, 1} // two positions of three classes
	soft := func(v ...float64) (out []float64) {
		sum := 0.0
		for _, x := range v {
			sum += math.Exp(x)
		}
		for _, x := range v {
			out = append(out, math.Exp(x)/sum)
		}
		return out
	}
	last := slices.Concat(soft(0, 1, 2), soft(3, 1, 1))
	a, b := soft(0, 2, 1), soft(1, 3, 1) // the same numbers as two positions, with the classes first
	first := []float64{a[0], b[0], a[1], b[1], a[2], b[2]}
	var sigmoids []float64
	for _, v := range tokens {
		sigmoids = append(sigmoids, 1/(1+math.Exp(-v)))
	}
	for _, tt := range []struct {
		axis        int
		independent bool
		probs       []float64
		want        bool
	}{
		{-1, false, last, true},
		{-1, false, first, false},
		{1, false, first, true},
		{1, false, last, false},
		{-1, true, sigmoids, true},
		{-1, true, last, false},
		{-1, false, []float64{math.NaN(), math.NaN(), math.NaN(), last[3], last[4], last[5]}, true},
	} {
		s := task.OutputSpec{Axis: tt.axis, Count: 3, Positions: 2}
		if got := agree(tokens, tt.probs, s, tt.independent); got != tt.want {
			t.Errorf("axis %d, %v: %v, want %v", tt.axis, tt.probs, got, tt.want)
		}
	}
}
