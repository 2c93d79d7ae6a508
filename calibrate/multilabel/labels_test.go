package multilabel_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
)

func refused(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestNewPredictions(t *testing.T) {
	for _, tt := range []struct {
		probs, complements []float64
		labels             int
		targets            []int
		want               string
	}{
		{[]float64{0, 1, 0.5}, nil, 3, []int{0, 1, -1}, ""},
		{[]float64{1, 0.5}, []float64{1e-20, 0.5}, 1, []int{0, 1}, ""},
		{nil, nil, 2, nil, "no rows, want at least one"},
		{[]float64{1}, nil, 0, []int{1}, "0 labels, want at least 1"},
		{[]float64{1, 0, 1}, nil, 2, []int{1, 0, 1}, "3 probabilities and 0 complements for 3 values of 2 labels each"},
		{[]float64{1, 0}, []float64{1}, 2, []int{1, 0}, "2 probabilities and 1 complements for 2 values of 2 labels each"},
		{[]float64{0.5, 1.5}, nil, 2, []int{1, 0}, "row 0: label 1: probability 1.5, want 0 to 1"},
		{[]float64{0.5, math.NaN()}, nil, 1, []int{1, 0}, "row 1: label 0: probability NaN, want 0 to 1"},
		{[]float64{0.5}, []float64{0.4}, 1, []int{1}, "row 0: label 0: probability 0.5 and complement 0.4, want a sum of 1"},
		{[]float64{0.5, 0.5}, nil, 2, []int{1, 2}, "row 0: label 1: value 2, want 0, 1 or -1"},
	} {
		_, err := multilabel.NewPredictions(tt.probs, tt.complements, tt.labels, tt.targets)
		refused(t, err, tt.want)
	}
}

// Complements keep the loss of a label that is missed with certainty, and the order of
// probabilities that are all 1.
func TestComplements(t *testing.T) {
	z := []float64{60, 50, 40}
	probs, complements := multilabel.Sigmoid(z), multilabel.Sigmoid([]float64{-60, -50, -40})
	p := multilabel.Predictions{Labels: 1, Probs: probs, Targets: []int{1, 1, 0}}
	if m := multilabel.Evaluate(p, calibrate.ECEOptions{}); !math.IsInf(m.NLL, 1) || m.AUROC != 0.5 {
		t.Errorf("NLL %v, AUROC %v of what is all 1", m.NLL, m.AUROC)
	}
	p.Complements = complements
	m := multilabel.Evaluate(p, calibrate.ECEOptions{})
	if m.AUROC != 1 {
		t.Errorf("AUROC %v", m.AUROC)
	}
	diff(t, "NLL", m.NLL, 40.0/3)
	diff(t, "log-odds", multilabel.LogOdds(probs, complements), z)
	diff(t, "log-odds", multilabel.LogOdds([]float64{0, 0.5, 1, 1e-300}, nil), []float64{math.Inf(-1), 0, math.Inf(1), -300 * math.Ln10})
}

func TestWarnings(t *testing.T) {
	p, err := multilabel.NewPredictions([]float64{0, 0.5, 0.5, 1, 0.5, 0.5}, nil, 3, []int{1, 1, -1, 0, 1, -1})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range multilabel.Evaluate(p, calibrate.ECEOptions{}).Warnings {
		got = append(got, w.Error())
	}
	want := []string{
		"NLL is infinite: the values of 2 of 4 labels have probability 0",
		"2 of 3 labels have one value only, and are in no calibration error, average precision or AUROC: the first is 1",
		"macro ECE is mostly noise: a label is known of 2 examples, want at least 200 (10 per bin)",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	none := multilabel.Evaluate(multilabel.Predictions{Labels: 1, Probs: []float64{0.5}, Targets: []int{multilabel.Unknown}}, calibrate.ECEOptions{})
	if !math.IsNaN(none.NLL) || len(none.Warnings) != 2 {
		t.Errorf("nothing known: NLL %v, warnings %v", none.NLL, none.Warnings)
	}
}

func TestEntropyEdges(t *testing.T) {
	diff(t, "entropy", multilabel.PredictiveEntropy([]float64{0, 1, 0.5, 1e-300}), []float64{0, 0, math.Ln2, 300 * math.Ln10 * 1e-300})
	got := multilabel.MutualInformation([]float64{0.5, 0.5, 0.5}, []float64{math.Ln2 + 1e-12, math.Ln2 + 1e-3, 0})
	diff(t, "mutual information", got, []float64{0, -1e-3, math.Ln2})
}

// The mean over labels and examples is that of classes: two labels of one example count
// as much as one of two.
func TestFlat(t *testing.T) {
	probs, targets := []float64{0.1, 0.7, 0.4, 0.9}, []int{0, 1, 1, 0}
	wide := multilabel.Evaluate(multilabel.Predictions{Labels: 4, Probs: probs, Targets: targets}, calibrate.ECEOptions{})
	tall := multilabel.Evaluate(multilabel.Predictions{Labels: 1, Probs: probs, Targets: targets}, calibrate.ECEOptions{})
	diff(t, "NLL and Brier", [2]float64{wide.NLL, wide.Brier}, [2]float64{tall.NLL, tall.Brier})
	if !math.IsNaN(wide.AUROC) || math.IsNaN(tall.AUROC) {
		t.Errorf("AUROC %v of one example, %v of four", wide.AUROC, tall.AUROC)
	}
}

func TestPanics(t *testing.T) {
	for what, f := range map[string]func(){
		"no example":     func() { multilabel.Evaluate(multilabel.Predictions{Labels: 1}, calibrate.ECEOptions{}) },
		"shape":          func() { multilabel.Briers(multilabel.Predictions{Labels: 2, Probs: []float64{1}, Targets: []int{1}}) },
		"complements":    func() { multilabel.LogOdds([]float64{1}, []float64{0, 1}) },
		"entropies":      func() { multilabel.MutualInformation([]float64{1}, nil) },
		"sums":           func() { multilabel.Sums([]float64{1, 2, 3}, 2) },
		"logits":         func() { _, _ = multilabel.ByPlatt.Fit([]float64{1}, 2, []int{1}) },
		"scaler":         func() { _, _ = multilabel.Scaler("vector").Fit([]float64{1}, 1, []int{1}) },
		"labels scaled":  func() { (&multilabel.Scaling{A: []float64{1, 1}, B: []float64{0, 0}}).Apply([]float64{1}) },
		"nothing scaled": func() { (&multilabel.Scaling{}).Apply([]float64{1}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", what)
				}
			}()
			f()
		}()
	}
}
