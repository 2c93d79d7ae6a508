package calibrate_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// golden is testdata/golden.json; testdata/golden.py says what is in it and why
// approx is the right tolerance.
type golden struct {
	Scale   float64
	Metrics []struct {
		Name     string
		Classes  int
		Counts   []float64
		Labels   []int
		Accuracy float64
		Top2     float64
		NLL      *float64 // nil: +Inf
		Losses   []*float64
		Brier    float64
		Entropy  []float64
		ECE      []struct {
			Binning string
			Bins    int
			ECE     float64
			Table   [][3]float64 // count, confidence, accuracy
		}
	}
	Softmax []struct {
		Classes    int
		Logits     []float64
		T          float64
		Softmax    []float64
		LogSoftmax []float64 `json:"log_softmax"`
	}
	Temperature []struct {
		Classes          int
		Logits           []float64
		Labels           []int
		T, Before, After float64
	}
	Ensembles []struct {
		Classes           int
		Members           [][]float64
		MutualInformation []float64 `json:"mutual_information"`
		Expected          []float64
	}
}

var approx = cmpopts.EquateApprox(1e-9, 1e-9)

// orInf returns a loss of the file, where JSON has no infinity.
func orInf(x *float64) float64 {
	if x == nil {
		return math.Inf(1)
	}
	return *x
}

func readGolden(t *testing.T) golden {
	t.Helper()
	var g golden
	testfile.JSON(t, "testdata/golden.json", &g)
	return g
}

func (g golden) probs(counts []float64) []float64 {
	p := make([]float64, len(counts))
	for i, k := range counts {
		p[i] = k / g.Scale
	}
	return p
}

func TestGoldenMetrics(t *testing.T) {
	t.Parallel()
	binnings := map[string]calibrate.Binning{
		"equal_mass":     calibrate.EqualMass,
		"equal_width":    calibrate.EqualWidth,
		"swag_reference": calibrate.SwagReference,
	}
	g := readGolden(t)
	if len(g.Metrics) == 0 {
		t.Fatal("no golden metrics")
	}
	for _, want := range g.Metrics {
		t.Run(want.Name, func(t *testing.T) {
			p, err := calibrate.NewPredictions(g.probs(want.Counts), want.Classes, want.Labels)
			if err != nil {
				t.Fatal(err)
			}
			m := calibrate.Evaluate(p, calibrate.EvaluateOptions{})
			diff(t, "accuracy", m.Accuracy, want.Accuracy)
			diff(t, "NLL", m.NLL, orInf(want.NLL))
			diff(t, "Brier", m.Brier, want.Brier)
			diff(t, "ECE", m.ECE, want.ECE[0].ECE)
			diff(t, "top 2", calibrate.TopK(p, 2), want.Top2)
			losses := calibrate.NegLogLikelihoods(nil, p)
			for i, loss := range want.Losses {
				diff(t, fmt.Sprint("loss ", i), losses[i], orInf(loss))
			}
			h := calibrate.PredictiveEntropy(nil, p.Probs, p.Classes)
			diff(t, "entropy", h[:len(want.Entropy)], want.Entropy)

			for _, w := range want.ECE {
				name := fmt.Sprint(w.Binning, " ", w.Bins)
				opts := calibrate.ECEOptions{Binning: binnings[w.Binning], Bins: w.Bins}
				diff(t, name, calibrate.ECE(p, opts), w.ECE)
				var table [][3]float64
				for _, b := range calibrate.Reliability(p, opts) {
					table = append(table, [3]float64{float64(b.Count), b.Confidence, b.Accuracy})
				}
				if diff := cmp.Diff(w.Table, table, approx, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: bins (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestGoldenSoftmax(t *testing.T) {
	for _, want := range readGolden(t).Softmax {
		diff(t, "softmax", calibrate.Softmax(nil, want.Logits, want.Classes, want.T), want.Softmax)
		diff(t, "log softmax", calibrate.LogSoftmax(nil, want.Logits, want.Classes, want.T), want.LogSoftmax)
	}
}

func TestGoldenTemperature(t *testing.T) {
	for _, want := range readGolden(t).Temperature {
		got, err := calibrate.FitTemperature(want.Logits, want.Classes, want.Labels)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "T", got.T, want.T)
		diff(t, "NLL before", got.NLLBefore, want.Before)
		diff(t, "NLL after", got.NLLAfter, want.After)
		if got.AtBound {
			t.Errorf("T = %v is at a bound", got.T)
		}
	}
}

func TestGoldenMutualInformation(t *testing.T) {
	g := readGolden(t)
	for _, want := range g.Ensembles {
		mean, expected := average(want.Members, want.Classes, g.Scale)
		diff(t, "expected entropy", expected, want.Expected)
		diff(t, "mutual information", calibrate.MutualInformation(nil, mean, want.Classes, expected), want.MutualInformation)
	}
}

// average returns the mean probabilities and mean entropies of members whose
// values are scale times a probability.
func average(members [][]float64, classes int, scale float64) (probs, entropies []float64) {
	probs = make([]float64, len(members[0]))
	entropies = make([]float64, len(probs)/classes)
	s := float64(len(members))
	for _, m := range members {
		p := make([]float64, len(m))
		for i := range m {
			p[i] = m[i] / scale
			probs[i] += p[i] / s
		}
		for i, h := range calibrate.PredictiveEntropy(nil, p, classes) {
			entropies[i] += h / s
		}
	}
	return probs, entropies
}

func diff[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if x, ok := any(got).([]float64); ok && slices.EqualFunc(x, any(want).([]float64), near) {
		return // without reflection, which takes a thousand times longer
	}
	if diff := cmp.Diff(want, got, approx); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// near is approx of two numbers.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= max(1e-9, 1e-9*min(math.Abs(a), math.Abs(b))) && !math.IsInf(a-b, 0)
}
