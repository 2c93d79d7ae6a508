package calibrate_test

import (
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
)

// By hand: of two classes it is ½·(p−q)·(logit p − logit q), and rows are averaged.
func TestDivergence(t *testing.T) {
	const third = 1. / 3
	inf := math.Inf(1)
	for _, test := range []struct {
		name    string
		p, q    []float64
		classes int
		want    float64
	}{
		{"two classes", []float64{0.5, 0.5}, []float64{0.25, 0.75}, 2, math.Log(3) / 8},
		{"opposite", []float64{0.2, 0.8}, []float64{0.8, 0.2}, 2, 0.6 * math.Log(4)},
		{"the mean of rows", []float64{0.5, 0.5, 0.2, 0.8, 0.3, 0.7}, []float64{0.25, 0.75, 0.8, 0.2, 0.3, 0.7}, 2, (math.Log(3)/8 + 0.6*math.Log(4)) / 3},
		{"three classes", []float64{0.5, 0.25, 0.25}, []float64{0.25, 0.5, 0.25}, 3, math.Ln2 / 4},
		{"equal", []float64{third, third, third}, []float64{third, third, third}, 3, 0},
		{"no probability in both", []float64{0, 0.5, 0.5}, []float64{0, 0.25, 0.75}, 3, math.Log(3) / 8},
		{"no probability in one", []float64{0, 1, 0.5, 0.5}, []float64{0.1, 0.9, 0.5, 0.5}, 2, inf},
		{"near 0", []float64{1e-300, 1}, []float64{1e-200, 1}, 2, 1e-200 * 100 * math.Ln10 / 2},
	} {
		for _, got := range []float64{calibrate.Divergence(test.p, test.q, test.classes), calibrate.Divergence(test.q, test.p, test.classes)} {
			if got != test.want && !(math.Abs(got-test.want) <= 1e-14*test.want) {
				t.Errorf("%s: %v, want %v both ways", test.name, got, test.want)
			}
		}
	}
}

// What settling relies on: near one another, predictions diverge by ½·δᵀFδ, with
// δ the difference of their logits and F the Fisher information, diag(p) − p·pᵀ.
func TestDivergenceOfNearPredictions(t *testing.T) {
	logits, delta := []float64{1, 0.2, -0.7}, []float64{1e-4, -2e-4, 3e-4}
	moved := make([]float64, 3)
	for i := range moved {
		moved[i] = logits[i] + delta[i]
	}
	p, q := calibrate.Softmax(nil, logits, 3, 1), calibrate.Softmax(nil, moved, 3, 1)
	want, mean := 0.0, 0.0
	for i, v := range p {
		want += v * delta[i] * delta[i] / 2
		mean += v * delta[i]
	}
	want -= mean * mean / 2
	if got := calibrate.Divergence(p, q, 3); math.Abs(got-want) > 1e-3*want {
		t.Errorf("%g, want about %g", got, want)
	}
}

func TestDivergencePanics(t *testing.T) {
	for _, test := range []struct {
		p, q    []float64
		classes int
	}{{[]float64{1}, []float64{0.5, 0.5}, 1}, {[]float64{0.5, 0.5, 1}, []float64{0.5, 0.5, 1}, 2}, {nil, nil, 0}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v and %v of %d classes: no panic", test.p, test.q, test.classes)
				}
			}()
			calibrate.Divergence(test.p, test.q, test.classes)
		}()
	}
}
