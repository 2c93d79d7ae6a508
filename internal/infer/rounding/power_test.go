package rounding_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// drawn are members of a posterior, with the statistics of its last checkpoint.
type drawn struct {
	*infer.Network
	count int
}

func (d drawn) Parts() []infer.Part { return []infer.Part{{Count: d.count, Graph: d.Graph}} }

func (d drawn) Each(ctx context.Context, first, count int, f func(infer.Model) error) error {
	return infer.EachMember(ctx, nil, d.Posterior, swag.SampleOptions{Seed: 1, Scale: 0.5}, first, count, func(k int, w weights.Vector) error {
		m, err := d.Model(fmt.Sprint("member ", k), w, weights.Slice(d.Posterior.Statistics))
		if err != nil {
			return err
		}
		return f(m)
	})
}

// rank returns a fault of the weights with so many dimensions.
func rank(of int, change func(shape []int64, w []float32)) func([]int64, []float32) {
	return func(shape []int64, w []float32) {
		if len(shape) == of && len(w) > 1 {
			change(shape, w)
		}
	}
}

// rows returns a fault of the rows of a batch that which chooses: they are those of the row before.
func rows(which func(row, rows int) bool) func(int, []float32) {
	return func(n int, scores []float32) {
		width := len(scores) / n
		for row := n - 1; row > 0; row-- {
			if which(row, n) {
				copy(scores[row*width:][:width], scores[(row-1)*width:])
			}
		}
	}
}

// Kernels that are wrong are found on [rounding.GPUExamples] examples, at all places of a batch, and at
// night on four times as many.
func TestPower(t *testing.T) {
	faults := map[string]*ort.Simulation{
		"none":                {},
		"biases are left out": {Weights: rank(1, func(_ []int64, w []float32) { clear(w) })},
		"the last filter is left out": {Weights: rank(4, func(shape []int64, w []float32) {
			clear(w[len(w)-len(w)/int(shape[0]):])
		})},
		"channels last are taken for channels first": {Weights: rank(4, func(shape []int64, w []float32) {
			turned, in, area := make([]float32, 0, len(w)), int(shape[1]), int(shape[2]*shape[3])
			for f := 0; f < len(w); f += in * area {
				for p := range area {
					for c := range in {
						turned = append(turned, w[f+c*area+p])
					}
				}
			}
			copy(w, turned)
		})},
		"weights have 8 bits": {Weights: func(_ []int64, w []float32) {
			for i, v := range w {
				w[i] = math.Float32frombits(math.Float32bits(v) &^ 0xffff)
			}
		}},
		"the last row":       {Scores: rows(func(row, n int) bool { return row == n-1 })},
		"one row of a batch": {Scores: rows(func(row, n int) bool { return row == n*3/4 })},
		"the second half":    {Scores: rows(func(row, n int) bool { return row >= n/2 })},
		"each second row":    {Scores: rows(func(row, _ int) bool { return row%2 == 1 })},
		"one class": {Scores: func(n int, s []float32) {
			for i := len(s)/n - 1; i < len(s); i += len(s) / n {
				s[i] += 0.5
			}
		}},
	}
	sizes := []int{rounding.GPUExamples}
	if reliability.Figure(0, 1) == 1 {
		sizes = append(sizes, 4*rounding.GPUExamples)
	}
	n := infertest.Network(t, infertest.Posterior(t))
	data := infertest.Digits(t, "test.npz")
	for name, fault := range faults {
		for _, examples := range sizes {
			end := ort.SimulateGPU(fault)
			e := infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Provider: ort.Provider{Name: ort.CUDA, Precision: ort.F32}})
			c, err := rounding.Measure(t.Context(), e, drawn{n, 4}, rounding.Options{Most: examples}, data)
			end()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			t.Logf("%s, %d examples: %v", name, examples, c)
			if c.Examples != examples && c.Lost == 0 || (c.Objection() == "") != (name == "none") {
				t.Errorf("%s, on %d examples: %v, objection %q", name, examples, c, c.Objection())
			}
		}
	}
}
