package ensemble_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// The model of a regression gives the moments of its members' mixture, written out here in
// float64, in the targets' units and to 1e-6 of a standard deviation: some roundings of
// float32, which also counts for members that hardly differ about a mean that is far from 0.
func TestFusedRegression(t *testing.T) {
	t.Parallel()
	e := engine(t)
	softplus := func(x float64) float64 { return math.Log1p(math.Exp(x)) }
	same := func(x float64) float64 { return x }
	for _, c := range []struct {
		name           string
		opset, members int
		head           string
		variance       func(float64) float64
		shift, spread  float64 // of members' weights
		noise          []float64
		weights        []float64
		factor         float64 // s², 0 for none
	}{
		{"log-variances", 13, 30, "log-variance", math.Exp, 0, 1, nil, nil, 0},
		{"softplus, old opset, scaled", 7, 3, "softplus", softplus, 0, 1, nil, nil, 2.5},
		{"variances, weights", 17, 3, "variance", same, 5, 0.5, nil, []float64{0.7, 0.2, 0.1}, 0.4},
		{"standard deviations", 7, 3, "std", func(x float64) float64 { return x * x }, 5, 0.5, nil, nil, 0},
		{"logarithms of them", 13, 3, "log-std", func(x float64) float64 { return math.Exp(2 * x) }, 0, 1, nil, nil, 0.7},
		{"softplus of them", 7, 3, "softplus-std", func(x float64) float64 { return math.Pow(softplus(x), 2) }, 0, 1, nil, nil, 0},
		{"one member", 13, 1, "log-variance", math.Exp, 0, 1, nil, nil, 3},
		{"no head", 13, 5, "", nil, 0, 1, []float64{6, 0.3}, nil, 1.7},
		{"members nearly alike", 13, 8, "", nil, 30, 1e-3, []float64{6}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			const n = 6
			means, stds := []float64{20, -2.5}, []float64{3, 0.4}
			count := 2
			if c.head != "" {
				count = 4
			}
			model, err := onnxio.Parse("net.onnx", shifting(c.opset, count, ""))
			if err != nil {
				t.Fatal(err)
			}
			l, err := weights.NewLayout([]weights.Tensor{{Name: "w", Shape: []int64{1, int64(count)}, DType: weights.F32, Role: weights.Parameter}})
			if err != nil {
				t.Fatal(err)
			}
			graph, err := infer.ReadGraph(model, "", swag.Card{Task: "regression", Targets: &swag.Targets{VarianceHead: c.head, Mean: means, Std: stds, NoiseStd: c.noise}})
			if err != nil {
				t.Fatal(err)
			}
			what, err := graph.Task(infer.Layout{Count: count, Positions: 1})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(5, 5))
			examples := list{made{shape: []int64{int64(count)}, count: n}, make([]float32, n*count)}
			for i := range examples.values {
				examples.values[i] = float32(r.Float64())
			}
			var vectors []weights.Slice
			for range c.members {
				v := make(weights.Slice, count)
				for i := range v {
					v[i] = float32(c.shift + c.spread*r.Float64())
				}
				vectors = append(vectors, v)
			}
			if c.weights == nil {
				for range c.members {
					c.weights = append(c.weights, 1/float64(c.members))
				}
			}
			var by *task.Calibration
			if c.factor > 0 {
				by = task.WithNumber("regression", c.factor)
			}
			filled, err := joinMembers(t, model, l, graph, what.(task.Fusable), vectors, c.weights, by).Runtime()
			if err != nil {
				t.Fatal(err)
			}
			got := outputs(t, e, filled, examples, 4, "mean", "std", "aleatoric_std", "epistemic_std")
			for i := range n {
				for k := range 2 {
					score := func(member, at int) float64 { // as the network has it, in float32
						return float64(examples.values[i*count+at] + vectors[member][at])
					}
					mean, epistemic, aleatoric := 0.0, 0.0, 0.0
					for m, w := range c.weights {
						mean += w * score(m, k)
						if c.head == "" {
							noise := c.noise[min(k, len(c.noise)-1)] / stds[k]
							aleatoric += w * noise * noise
						} else {
							aleatoric += w * c.variance(score(m, 2+k))
						}
					}
					for m, w := range c.weights {
						epistemic += w * (score(m, k) - mean) * (score(m, k) - mean)
					}
					if by != nil {
						epistemic, aleatoric = c.factor*epistemic, c.factor*aleatoric
					}
					want := []float64{means[k] + stds[k]*mean, stds[k] * math.Sqrt(aleatoric+epistemic), stds[k] * math.Sqrt(aleatoric), stds[k] * math.Sqrt(epistemic)}
					for o, name := range []string{"mean", "std", "aleatoric_std", "epistemic_std"} {
						v, tol := float64(got[o][2*i+k]), 1e-6*want[1]
						if o == 0 {
							tol += 1e-6 * math.Abs(want[0]) // has no more digits
						}
						if !(math.Abs(v-want[o]) <= tol) {
							t.Errorf("example %d, target %d: %s is %v, want %v", i, k, name, v, want[o])
						}
					}
				}
			}
		})
	}
}
