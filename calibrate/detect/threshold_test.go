package detect_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// counts are the decisions in the order of the golden file.
func counts(d detect.Decisions) []int {
	return []int{d.TruePositives, d.FalsePositives, d.TrueNegatives, d.FalseNegatives}
}

// Thresholds are held against scikit-learn: testdata/threshold.py. Numbers are quotients of
// counts; a few roundings may lie between.
func TestThresholdGolden(t *testing.T) {
	var golden struct {
		Cases []struct {
			Name   string
			Labels []int
			Scores []float64
			At     []struct {
				Threshold                                      float64
				Counts                                         []int
				Sensitivity, Specificity, F1, Accuracy, Youden float64
				Precision                                      *float64 // nil: none
			}
			ROC              [2][]float64
			PrecisionRecall  [2][]float64 `json:"precision_recall"`
			AUROC            float64
			AveragePrecision float64 `json:"average_precision"`
			Chosen           []struct {
				Name   string
				Want   float64
				Counts []int // nil: no threshold does
			}
		}
	}
	testfile.JSON(t, "testdata/threshold.json", &golden)
	if len(golden.Cases) != 7 {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	for _, c := range golden.Cases {
		var in, out []float64
		for i, p := range c.Scores {
			if c.Labels[i] == 1 {
				out = append(out, p)
			} else {
				in = append(in, p)
			}
		}
		for _, at := range c.At {
			d := detect.Decide(in, out, at.Threshold)
			precision := math.NaN()
			if at.Precision != nil {
				precision = *at.Precision
			}
			if d := cmp.Diff(at.Counts, counts(d)); d != "" {
				t.Errorf("%s at %v: %s", c.Name, at.Threshold, d)
			}
			if d := cmp.Diff([]float64{at.Sensitivity, at.Specificity, at.F1, at.Accuracy, at.Youden, precision},
				[]float64{d.Sensitivity(), d.Specificity(), d.F1(), d.Accuracy(), d.Youden(), d.Precision()}, testfile.Approx, cmpopts.EquateNaNs()); d != "" {
				t.Errorf("%s at %v: %s", c.Name, at.Threshold, d)
			}
		}
		var roc, pr [2][]float64
		for _, p := range detect.OperatingPoints(in, out) {
			roc[0], roc[1] = append(roc[0], 1-p.Specificity()), append(roc[1], p.Sensitivity())
			pr[0], pr[1] = append(pr[0], p.Precision()), append(pr[1], p.Sensitivity())
			if d := detect.Decide(in, out, p.Threshold); d != p.Decisions {
				t.Errorf("%s at %v: %v, want %v", c.Name, p.Threshold, p.Decisions, d)
			}
		}
		if d := cmp.Diff(c.ROC, roc, testfile.Approx); d != "" {
			t.Errorf("%s: ROC: %s", c.Name, d)
		}
		if d := cmp.Diff(c.PrecisionRecall, pr, testfile.Approx); d != "" {
			t.Errorf("%s: precision and recall: %s", c.Name, d)
		}
		if d := cmp.Diff([]float64{c.AUROC, c.AveragePrecision}, []float64{detect.AUROC(in, out), detect.AUPR(in, out)}, testfile.Approx); d != "" {
			t.Errorf("%s: areas: %s", c.Name, d)
		}
		for _, want := range c.Chosen {
			criterion := detect.Criterion{Name: want.Name, Want: want.Want}
			got, err := criterion.Choose(in, out)
			switch {
			case want.Counts == nil:
				if err == nil || !strings.Contains(err.Error(), "the highest "+want.Name+" that any has is") {
					t.Errorf("%s by %v: %v, %v, want none", c.Name, criterion, got, err)
				}
			case err != nil || got.Decisions != detect.Decide(in, out, got.Threshold) || cmp.Diff(want.Counts, counts(got.Decisions)) != "":
				t.Errorf("%s by %v: %+v, %v, want %v", c.Name, criterion, got, err, want.Counts)
			case !(got.Threshold > 0 && got.Threshold <= 1):
				t.Errorf("%s by %v: threshold %v", c.Name, criterion, got.Threshold)
			}
		}
	}
}

// A threshold keeps its distance from the scores: rounding them changes no decision.
func TestThresholdBetween(t *testing.T) {
	got, err := detect.Criterion{Name: detect.ByYouden}.Choose([]float64{0.1, 0.4}, []float64{0.6, 0.8})
	if err != nil || got.Threshold != 0.5 || got.Youden() != 1 {
		t.Errorf("%+v, %v, want 0.5", got, err)
	}
	got, err = detect.Criterion{Name: detect.ByRecall, Want: 1}.Choose([]float64{0.9}, []float64{0.2})
	if err != nil || got.Threshold != 0.1 {
		t.Errorf("%+v, %v, want half of the lowest", got, err)
	}
	below := math.Nextafter(1, 0)
	got, err = detect.Criterion{Name: detect.ByF1}.Choose([]float64{below}, []float64{1})
	if err != nil || got.Threshold != 1 || got.F1() != 1 {
		t.Errorf("%+v, %v, want 1: nothing lies between", got, err)
	}
}

func TestThresholdRefuses(t *testing.T) {
	f1 := detect.Criterion{Name: detect.ByF1}
	for _, c := range []struct {
		in, out []float64
		want    string
	}{
		{nil, []float64{0.5}, "0 of class 0 and 1 of class 1"},
		{[]float64{0.5}, nil, "1 of class 0 and 0 of class 1"},
		{[]float64{0.5}, []float64{math.NaN()}, "want probabilities from 0 to 1"},
		{[]float64{-0.5}, []float64{1}, "want probabilities from 0 to 1"},
	} {
		if got, err := f1.Choose(c.in, c.out); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v: %+v, %v, want %q", c.in, c.out, got, err, c.want)
		}
	}
	if detect.OperatingPoints([]float64{math.NaN()}, []float64{1}) != nil {
		t.Error("points of NaN")
	}
	for s, want := range map[string]string{"f1": "f1", "youden": "youden", "precision=0.9": "precision=0.9", "sensitivity=1": "recall=1", "recall=.5": "recall=0.5", "specificity=0.99": "specificity=0.99", "risk=.1": "risk=0.1", "risk=1%": "risk=0.01", "recall=99.9 %": "recall=0.999"} {
		if c, err := detect.ParseCriterion(s); err != nil || c.String() != want {
			t.Errorf("%s: %v, %v", s, c, err)
		}
	}
	for s, want := range map[string]string{"": "want one of f1, youden, precision=P", "f2": "want one of", "f1=0.5": "takes no number", "precision": "such as precision=0.9", "recall=0": "above 0", "recall=1.1": "at most 1", "recall=nan": "above 0", "risk=101%": "such as risk=1%", "risk=1": "below 1"} {
		if c, err := detect.ParseCriterion(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", s, c, err, want)
		}
	}
}
