package multilabel_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// approx is the tolerance that testdata/make.py speaks of.
var approx = cmp.Options{cmpopts.EquateApprox(1e-9, 1e-9), cmpopts.EquateNaNs()}

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, approx); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// number is null for NaN.
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = number(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

// golden is testdata/golden.json, which testdata/make.py writes.
type golden struct {
	Scale   float64
	Metrics []struct {
		Name         string
		Labels, Bins int
		Counts       []float64
		Targets      []int `json:"truth"`
		NLL, Brier   float64
		Micro, Macro number
		MicroWidth   number `json:"micro_width"`
		MacroWidth   number `json:"macro_width"`
		MAP, AUROC   number
		Each         []struct {
			Known, Positives           int
			NLL, Brier, ECE, AP, AUROC number
			ECEWidth                   number `json:"ece_width"`
		}
	}
	Uncertainty struct {
		Labels                                int
		Probs, Expected, Entropy, Mutual, Sum []float64
	}
	Scalings []struct {
		Name       string
		Labels     int
		Logits     []float64
		Targets    []int `json:"truth"`
		Degenerate []int
		Before, T  float64
		AfterT     float64 `json:"after_t"`
		Ts         []float64
		AfterTs    float64 `json:"after_ts"`
		A, B       []float64
		AfterPlatt float64 `json:"after_platt"`
	}
	Separated struct {
		Logits  []float64
		Targets []int `json:"truth"`
		A, B    float64
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	var g golden
	testfile.JSON(t, "testdata/golden.json", &g)
	if len(g.Metrics) < 5 || len(g.Uncertainty.Probs) == 0 || len(g.Scalings) < 4 || len(g.Separated.Logits) == 0 {
		t.Fatal("testdata/golden.json lacks problems")
	}
	return g
}

func TestEvaluate(t *testing.T) {
	g := readGolden(t)
	for _, want := range g.Metrics {
		t.Run(want.Name, func(t *testing.T) {
			probs, complements := make([]float64, len(want.Counts)), make([]float64, len(want.Counts))
			for k, count := range want.Counts {
				probs[k], complements[k] = count/g.Scale, 1-count/g.Scale
			}
			p, err := multilabel.NewPredictions(probs, nil, want.Labels, want.Targets)
			if err != nil {
				t.Fatal(err)
			}
			m := multilabel.Evaluate(p, calibrate.ECEOptions{Bins: want.Bins})
			wide := multilabel.Evaluate(p, calibrate.ECEOptions{Bins: want.Bins, Binning: calibrate.EqualWidth})
			p.Complements = complements
			diff(t, "with complements", multilabel.Evaluate(p, calibrate.ECEOptions{Bins: want.Bins}).AUROC, m.AUROC)
			for what, pair := range map[string][2]float64{
				"NLL": {m.NLL, want.NLL}, "Brier": {m.Brier, want.Brier}, "mAP": {m.MeanAveragePrecision, float64(want.MAP)}, "AUROC": {m.AUROC, float64(want.AUROC)},
				"micro ECE": {m.MicroECE, float64(want.Micro)}, "macro ECE": {m.MacroECE, float64(want.Macro)},
				"micro ECE, equal width": {wide.MicroECE, float64(want.MicroWidth)}, "macro ECE, equal width": {wide.MacroECE, float64(want.MacroWidth)},
			} {
				diff(t, what, pair[0], pair[1])
			}
			var each []multilabel.Label
			for label, l := range want.Each {
				each = append(each, multilabel.Label{Known: l.Known, Positives: l.Positives, NLL: float64(l.NLL), Brier: float64(l.Brier), ECE: float64(l.ECE), AveragePrecision: float64(l.AP), AUROC: float64(l.AUROC)})
				diff(t, "ECE, equal width", wide.Each[label].ECE, float64(l.ECEWidth))
			}
			diff(t, "labels", m.Each, each)
		})
	}
}

func TestUncertainty(t *testing.T) {
	want := readGolden(t).Uncertainty
	entropy := multilabel.PredictiveEntropy(want.Probs)
	diff(t, "entropy", entropy, want.Entropy)
	diff(t, "mutual information", multilabel.MutualInformation(want.Probs, want.Expected), want.Mutual)
	diff(t, "sums", multilabel.Sums(entropy, want.Labels), want.Sum)
}

func TestScalings(t *testing.T) {
	for _, want := range readGolden(t).Scalings {
		t.Run(want.Name, func(t *testing.T) {
			fit := func(by multilabel.Scaler) *multilabel.Scaling {
				s, err := by.Fit(want.Logits, want.Labels, want.Targets)
				if err != nil {
					t.Fatal(err)
				}
				if s.AtBound != nil {
					t.Errorf("%s: labels %v are at a bound", by, s.AtBound)
				}
				diff(t, "NLL before", s.NLLBefore, want.Before)
				return s
			}
			one, many, platt := fit(multilabel.ByTemperature), fit(multilabel.ByTemperatures), fit(multilabel.ByPlatt)
			zero := make([]float64, want.Labels)
			for label, a := range one.A {
				diff(t, "temperature", 1/a, want.T)
				diff(t, "temperatures", 1/many.A[label], want.Ts[label])
			}
			diff(t, "biases of temperatures", [][]float64{one.B, many.B}, [][]float64{zero, zero})
			diff(t, "a", platt.A, want.A)
			diff(t, "b", platt.B, want.B)
			diff(t, "NLL after", []float64{one.NLLAfter, many.NLLAfter, platt.NLLAfter}, []float64{want.AfterT, want.AfterTs, want.AfterPlatt})
			for _, s := range []*multilabel.Scaling{many, platt} {
				if d := cmp.Diff(want.Degenerate, s.Kept, cmpopts.EquateEmpty()); d != "" {
					t.Errorf("kept (-want +got):\n%s", d)
				}
			}
			// What Apply returns has the loss that was guaranteed.
			p, err := multilabel.NewPredictions(platt.Apply(want.Logits), nil, want.Labels, want.Targets)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "NLL of what Apply returns", multilabel.Evaluate(p, calibrate.ECEOptions{}).NLL, platt.NLLAfter)
		})
	}
}

func TestPlattOfSeparated(t *testing.T) {
	want := readGolden(t).Separated
	s, err := multilabel.ByPlatt.Fit(want.Logits, 1, want.Targets)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]float64{want.A, want.B}, []float64{s.A[0], s.B[0]}, cmpopts.EquateApprox(1e-6, 1e-6)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(s.AtBound) != 1 || !strings.HasPrefix(s.Undetermined, "label 0: ") {
		t.Errorf("at bound %v, undetermined %q", s.AtBound, s.Undetermined)
	}
}
