package task_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Each map is fitted, survives its file, fits the task, and gives the same probabilities from outcomes and from logarithms.
func TestMaps(t *testing.T) {
	t.Parallel()
	for _, count := range []int{2, 4} {
		x, err := task.New("classes", task.OutputSpec{Count: count})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(57, uint64(count)))
		logits, labels := make([]float64, 300*count), make([]int, 300)
		for i := range labels {
			labels[i] = rng.IntN(count)
			for c := range count {
				logits[i*count+c] = rng.NormFloat64()
			}
			logits[i*count+labels[i]] += 1.5
		}
		outcomes := calibrate.Softmax(nil, logits, count, 1)
		maps := []task.Method{task.ByStructured, task.ByMatrix}
		if count == 2 {
			maps = append(maps, task.ByQuadratic, task.ByVennAbers)
		}
		for _, by := range maps {
			found, ok := task.Find(x, by)
			if !ok {
				t.Fatalf("%d classes: no %s", count, by)
			}
			c, err := found.Fit(outcomes, target.Target{Classes: labels})
			if err != nil || c.Undetermined != "" {
				t.Fatal(by, err, c)
			}
			js, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			var read task.Calibration
			if err := json.Unmarshal(js, &read); err != nil {
				t.Fatal(err)
			}
			if err := read.Check(x); err != nil {
				t.Errorf("%s: %v", by, err)
			}
			testfile.Near(t, string(by), x.Apply(nil, &read, outcomes), x.Apply(nil, c, outcomes))
			scaled := x.(interface {
				Scaled(*task.Calibration, []float64) []float64
			}).Scaled(c, calibrate.LogProbs(nil, outcomes))
			testfile.Near(t, string(by), calibrate.Softmax(nil, scaled, count, 1), x.Apply(nil, c, outcomes))
			before, after := task.NLL(x, outcomes, target.Target{Classes: labels}), task.NLL(x, x.Apply(nil, c, outcomes), target.Target{Classes: labels})
			if !(after < before+1e-3) {
				t.Errorf("%s: NLL %v, and %v before", by, after, before)
			}
		}
		if count > 2 {
			if _, ok := task.Find(x, task.ByQuadratic); ok {
				t.Error("quadratic scaling of more than two classes")
			}
		}
	}
	for want, c := range map[string]*task.Calibration{
		"factors 2, want one":             {Method: task.ByVariance, Factors: []float64{1, 2}},
		"numbers missing, want a method":  {Method: task.ByVector},
		"number 0, want a finite number":  {Method: task.ByVariances, Factors: []float64{1, 0}},
		"number -1, want a finite number": {Method: task.ByTemperature, Temperature: -1},
		"coefficients 2, want three":      {Method: task.ByQuadratic, Coefficients: []float64{1, 2}},
		"coefficient NaN, want a finite":  {Method: task.ByQuadratic, Coefficients: []float64{1, 2, math.NaN()}},
		"matrix 3, want a row of 2":       {Method: task.ByMatrix, Temperature: 1, Uniform: 0.1, Matrix: []float64{1, 0, 0}, Bias: []float64{0, 0}},
		"scales 1, want as many":          {Method: task.ByStructured, Temperature: 1, Uniform: 0.1, Scale: []float64{1}, Bias: []float64{0, 0}},
		"temperature 0, want a finite":    {Method: task.ByStructured, Uniform: 0.1, Scale: []float64{1, 1}, Bias: []float64{0, 0}},
		"uniform 2, want a share above 0": {Method: task.ByStructured, Temperature: 1, Uniform: 2, Scale: []float64{1, 1}, Bias: []float64{0, 0}},
		"uniform 0, want a share above 0": {Method: task.ByStructured, Temperature: 1, Scale: []float64{1, 1}, Bias: []float64{0, 0}},
		"biases 0, want one":              {Method: task.ByMatrix, Temperature: 1, Uniform: 0.1},
		"want as many knots as prob":      {Method: task.ByVennAbers, VennAbers: &calibrate.VennAbers{Knots: []float64{1}, Zero: []float64{0.5}}},
		"tie -1, want a distance":         {Method: task.ByVennAbers, VennAbers: &calibrate.VennAbers{Knots: []float64{0.001}, Zero: []float64{0.5}, One: []float64{0.6}, Tie: -1}},
		"knot 99, want ascending":         {Method: task.ByVennAbers, VennAbers: &calibrate.VennAbers{Knots: []float64{99}, Zero: []float64{0.5}, One: []float64{0.6}}},
		"knot 1, want ascending":          {Method: task.ByVennAbers, VennAbers: &calibrate.VennAbers{Knots: []float64{1, 1}, Zero: []float64{0.5, 0.5}, One: []float64{0.6, 0.6}}},
		"probabilities [0.7 0.6], want":   {Method: task.ByVennAbers, VennAbers: &calibrate.VennAbers{Knots: []float64{1}, Zero: []float64{0.7}, One: []float64{0.6}}},
		"probabilities of knots, want":    {Method: task.ByVennAbers, VennAbers: &calibrate.VennAbers{Knots: []float64{1, 2}, Zero: []float64{0.5, 0.4}, One: []float64{0.6, 0.6}}},
	} {
		if err := c.Sound(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Venn–Abers is the definition at scores between those of the fit, however near they are. A score of the fit is one again after
// rounding to float32. A file without a tie is read as before: its log-odds count in steps of 1/256.
func TestVennAbersSteps(t *testing.T) {
	t.Parallel()
	two, err := task.New("classes", task.OutputSpec{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	found, _ := task.Find(two, task.ByVennAbers)
	rng := rand.New(rand.NewPCG(72, 7))
	labels, logits, scores := make([]int, 400), make([]float64, 800), make([]float64, 400)
	for i := range labels {
		scores[i] = math.Round(1e4*2*rng.NormFloat64()) / 1e4
		logits[2*i+1] = scores[i]
		if rng.Float64() < 1/(1+math.Exp(-scores[i])) {
			labels[i] = 1
		}
	}
	exact, err := calibrate.FitVennAbers(logits, labels)
	if err != nil {
		t.Fatal(err)
	}
	c, err := found.Fit(calibrate.Softmax(nil, logits, 2, 1), target.Target{Classes: labels})
	if err != nil {
		t.Fatal(err)
	}
	at := func(c *task.Calibration, z float64) float64 {
		return two.Apply(nil, c, calibrate.Softmax(nil, []float64{0, z}, 2, 1))[1]
	}
	if len(c.VennAbers.Knots) > 200 {
		t.Errorf("%d knots", len(c.VennAbers.Knots))
	}
	moved := 0
	for _, s := range scores {
		same, next := exact.Apply(nil, []float64{0, s})[1], exact.Apply(nil, []float64{0, s + 4e-5})[1]
		if same != next {
			moved++
		}
		for _, off := range []float64{0, 1e-6, -1e-6} {
			if got := at(c, s+off); math.Abs(got-same) > 1e-12 {
				t.Errorf("%v moved by %v: %v, want %v", s, off, got, same)
			}
		}
		if got := at(c, s+4e-5); math.Abs(got-next) > 1e-12 {
			t.Errorf("next to %v: %v, want %v", s, got, next)
		}
	}
	if moved < 3 {
		t.Errorf("only %d scores are at a step", moved)
	}
	old := &task.Calibration{Method: task.ByVennAbers, VennAbers: &calibrate.VennAbers{Knots: []float64{-0.5, 0.25}, Zero: []float64{0.2, 0.6}, One: []float64{0.4, 0.8}}}
	for z, want := range map[float64][2]float64{-0.503: {0, 0.4}, -0.501: {0.2, 0.4}, -0.499: {0.2, 0.4}, -0.497: {0.2, 0.8}, 0.2485: {0.6, 0.8}, 0.253: {0.6, 1}} {
		if got := at(old, z); math.Abs(got-want[1]/(1-want[0]+want[1])) > 1e-12 {
			t.Errorf("an old file at %v: %v, want %v", z, got, want)
		}
	}
}
