package probe

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// world is made-up examples: targets with means and variances that a network may predict.
type world struct{ y, mean, std []float64 }

func newWorld(r *rand.Rand, n int, scale float64) (w world) {
	for range n {
		mean, std := scale*r.NormFloat64()*1.2, scale*0.4*math.Exp(0.5*r.NormFloat64())
		w.y, w.mean, w.std = append(w.y, mean+std*r.NormFloat64()), append(w.mean, mean), append(w.std, std)
	}
	return w
}

// warned returns what the check says of a network with these scores.
func warned(w world, count int, printed task.RegressionSpec, score func(i, k int) float64) string {
	raw := &Record{Task: "regression", Count: count, Scores: rowsOf(len(w.y), count, score), Labels: target.Target{Values: w.y, Width: 1}}
	report := &Report{}
	if err := raw.CheckNumbers(report, printed, open(), open()); err != nil {
		return "refused: " + err.Error() + strings.Join(err.(*Fault).Hints(), "; ")
	}
	return strings.Join(report.Warnings, "; ")
}

// Ordinary networks are not warned of. The predictions are biased, shrunk and noisy, and the
// standard deviations are up to 3 times too small or too large.
func TestOrdinaryNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for trial := range 1000 {
		scale := math.Exp(3 * r.NormFloat64())
		w := newWorld(r, 30+r.IntN(226), scale)
		bias, shrink, wide := 0.15*scale*r.NormFloat64(), 0.8+0.3*r.Float64(), math.Exp((2*r.Float64()-1)*math.Log(3))
		noise := make([]float64, len(w.y))
		for i := range noise {
			noise[i] = 0.15 * scale * r.NormFloat64()
		}
		for _, head := range regression.VarianceHeads() {
			got := warned(w, 2, task.RegressionSpec{Head: head}, func(i, k int) float64 {
				if k == 0 {
					return bias + shrink*w.mean[i] + noise[i]
				}
				v := math.Pow(w.std[i]*wide, 2)
				switch head {
				case regression.ByLogVariance:
					return math.Log(v)
				case regression.BySoftplus:
					return v + math.Log(-math.Expm1(-v))
				case regression.ByStd:
					return math.Sqrt(v)
				case regression.ByLogStd:
					return math.Log(v) / 2
				case regression.BySoftplusStd:
					s := math.Sqrt(v)
					return s + math.Log(-math.Expm1(-s))
				}
				return v
			})
			if got != "" {
				t.Errorf("trial %d, %s: %s", trial, head, got)
			}
		}
	}
}

// What is wrong is named, with the reading that fits.
func TestWrongNumbers(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(6, 6)), 200, 100)
	positive := world{mean: make([]float64, 200), y: make([]float64, 200)}
	for i, z := range w.mean {
		positive.mean[i] = math.Exp(z / 50)
		positive.y[i] = positive.mean[i] * math.Exp(0.1*(w.y[i]-z)/50)
	}
	units := []regression.Units{{Mean: 500, Std: 50}}
	for name, tt := range map[string]struct {
		of      world
		printed task.RegressionSpec
		score   func(i int) []float64
		want    string
	}{
		"standard deviations": {w, task.RegressionSpec{Head: "variance"}, func(i int) []float64 { return []float64{w.mean[i], w.std[i]} }, "The targets fit Targets head=std"},
		"log-variances":       {w, task.RegressionSpec{Head: "variance"}, func(i int) []float64 { return []float64{w.mean[i], 2 * math.Log(w.std[i])} }, "The targets fit Targets head=log-variance"},
		"log-variances below 0": {w, task.RegressionSpec{Head: "variance", Units: []regression.Units{{Std: 100}}}, func(i int) []float64 { return []float64{w.mean[i] / 100, 2 * math.Log(w.std[i]/100)} },
			"of 200 variances are negative"},
		"log-stds below 0": {w, task.RegressionSpec{Head: "std", Units: []regression.Units{{Std: 100}}}, func(i int) []float64 { return []float64{w.mean[i] / 100, math.Log(w.std[i] / 100)} },
			"of 200 standard deviations are negative"},
		"log of standard deviations": {w, task.RegressionSpec{Head: "log-variance"}, func(i int) []float64 { return []float64{w.mean[i], math.Log(w.std[i])} }, "The targets fit Targets head=log-std"},
		"exp again":                  {w, task.RegressionSpec{Head: "log-variance"}, func(i int) []float64 { return []float64{w.mean[i], w.std[i] * w.std[i]} }, "Targets head=log-variance"},
		"precisions":                 {w, task.RegressionSpec{Head: "variance"}, func(i int) []float64 { return []float64{w.mean[i], 1 / w.std[i] / w.std[i]} }, "precisions (1/variance)"},
		"variances in other units":   {w, task.RegressionSpec{Head: "variance", Units: []regression.Units{{Std: 50}}}, func(i int) []float64 { return []float64{w.mean[i] / 50, w.std[i] * w.std[i]} }, "in the targets' units and not in the network's"},
		"swapped":                    {w, task.RegressionSpec{Head: "log-variance"}, func(i int) []float64 { return []float64{2 * math.Log(w.std[i]), w.mean[i]} }, "score 1 fits the targets better"},
		"standardised":               {world{y: add(w.y, 500)}, task.RegressionSpec{}, func(i int) []float64 { return []float64{w.mean[i] / 50} }, "fit again with Targets FILE"},
		"not standardised":           {world{y: add(w.y, 500)}, task.RegressionSpec{Units: units}, func(i int) []float64 { return []float64{500 + w.mean[i]} }, "without the units of the model card"},
		"log-rates":                  {world{y: rounded(positive.y)}, task.RegressionSpec{}, func(i int) []float64 { return []float64{math.Log(positive.mean[i])} }, "log-rates (Poisson)"},
		"exp twice":                  {positive, task.RegressionSpec{}, func(i int) []float64 { return []float64{math.Exp(positive.mean[i])} }, "log of the outputs fits"},
		"noise in other units":       {w, task.RegressionSpec{Noise: []float64{0.4}}, func(i int) []float64 { return []float64{w.mean[i]} }, "Is NoiseStd in the targets' units?"},
		"classes":                    {w, task.RegressionSpec{}, func(i int) []float64 { p := 1 / (1 + math.Exp(w.mean[i]/50)); return []float64{p, 1 - p} }, "probabilities of classes"},
		"log-probabilities": {w, task.RegressionSpec{}, func(i int) []float64 {
			p := 1 / (1 + math.Exp(w.mean[i]/50))
			return []float64{math.Log(p), math.Log1p(-p)}
		}, "probabilities of classes"},
		"quantiles": {w, task.RegressionSpec{}, func(i int) []float64 { return []float64{w.mean[i] - w.std[i], w.mean[i], w.mean[i] + w.std[i]} }, "quantiles of one target"},
	} {
		if got := warned(tt.of, len(tt.score(0)), tt.printed, func(i, k int) float64 { return tt.score(i)[k] }); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	// The graph keeps the predictions away from the targets.
	raw := &Record{Count: 1, Scores: rowsOf(200, 1, func(i, _ int) float64 { return 1 / (1 + math.Exp(-w.mean[i])) }), Labels: target.Target{Values: add(w.y, 500), Width: 1}}
	bounded := infer.OutputProperties{Low: 0, High: 1, Op: "Sigmoid"}
	if err := raw.CheckNumbers(&Report{}, task.RegressionSpec{}, bounded, bounded); err == nil || !strings.Contains(err.Error(), "between 0 and 1, but the targets are from") {
		t.Errorf("a sigmoid: %v", err)
	}
	// Targets from another domain, and too few of them, tell nothing.
	raw.Holds = Foreign
	if err := raw.CheckNumbers(&Report{}, task.RegressionSpec{}, bounded, bounded); err != nil {
		t.Errorf("another domain: %v", err)
	}
	few := &Record{Count: 1, Scores: raw.Scores[:29], Labels: target.Target{Values: raw.Labels.Values[:29], Width: 1}}
	if err := few.CheckNumbers(&Report{}, task.RegressionSpec{}, bounded, bounded); err != nil {
		t.Errorf("29 targets: %v", err)
	}
}

// Shares that add up to 1 are a regression where the targets are shares too.
func TestShares(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	raw := &Record{Count: 2, Labels: target.Target{Width: 2}}
	for range 50 {
		p := r.Float64()
		raw.Scores = append(raw.Scores, float32(p), float32(1-p))
		raw.Labels.Values = append(raw.Labels.Values, p*p, 1-p*p)
	}
	if err := raw.CheckNumbers(&Report{}, task.RegressionSpec{}, open(), open()); err != nil {
		t.Error(err)
	}
}

func add(values []float64, by float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v + by
	}
	return out
}

func rounded(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Round(v)
	}
	return out
}
