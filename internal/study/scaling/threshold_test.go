package scaling_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/study/scaling"
)

// pairs are saved log-odds of n examples of one of two classes, three times too sure.
func pairs(n int, seed uint64) *scaling.Logits {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &predictions.Set{Path: "val.csv", Classes: 2}
	for i := range n {
		z := 1.5 * r.NormFloat64()
		class := 0
		if r.Float64() < 1/(1+math.Exp(-z)) {
			class = 1
		}
		p.Values, p.Labels, p.Rows = append(p.Values, 0, 3*z), append(p.Labels, class), append(p.Rows, i)
	}
	return scaling.NewLogits(p)
}

// What is chosen is what the criterion chooses on calibrated probabilities, and what is shown
// of the test is what it decides there; rows that it was chosen on are decided without it.
func TestThreshold(t *testing.T) {
	by := calibrate.Criterion{Name: calibrate.ByRecall, Want: 0.9}
	fit, test := pairs(400, 1), pairs(300, 2)
	for _, method := range []calibrate.Scaler{calibrate.ByTemperature, scaling.None} {
		s := scaling.Scaling{Method: method, Folds: 5, Seed: 1, Fit: fit, Test: test, By: by}
		k, err := s.Run("test")
		if err != nil {
			t.Fatal(err)
		}
		probs := func(l *scaling.Logits) (in, out []float64) {
			p := calibrate.Softmax(nil, l.Z, 2, 1)
			if k.Fitted != nil {
				p = k.Fitted.Apply(nil, l.Z, 2)
			}
			for i, label := range l.Labels {
				if label == 1 {
					out = append(out, p[2*i+1])
				} else {
					in = append(in, p[2*i+1])
				}
			}
			return in, out
		}
		want, err := by.Choose(probs(fit))
		if err != nil || k.Threshold.Value != want.Threshold || k.Threshold.Criterion != "recall=0.9" {
			t.Errorf("%s: %+v, %v, want %+v", method, k.Threshold, err, want)
		}
		in, out := probs(test)
		d := calibrate.Decide(in, out, want.Threshold)
		last := k.Scores[3]
		if *last.Sensitivity != d.Sensitivity() || *last.Specificity != d.Specificity() || *last.Precision != d.Precision() || *last.F1 != d.F1() ||
			math.Abs(*last.AUROC-calibrate.AUROC(in, out)) > 1e-12 || math.Abs(*last.AveragePrecision-calibrate.AUPR(in, out)) > 1e-12 {
			t.Errorf("%s: %s", method, text(t, last))
		}
		// Each of the 5 folds has a threshold of 320 rows: near 0.9, but not what all rows choose.
		if crossed := *k.Scores[1].Sensitivity; crossed == want.Sensitivity() || math.Abs(crossed-0.9) > 0.05 {
			t.Errorf("%s: cross-fitted recall %v", method, crossed)
		}
		if saved := *k.Scores[0].Sensitivity; saved == *k.Scores[1].Sensitivity {
			t.Errorf("%s: as saved %v", method, saved)
		}
		var b bytes.Buffer
		if err := k.ClassTable().WriteText(&b); err != nil || !strings.Contains(b.String(), "by recall=0.9") {
			t.Errorf("%v:\n%s", err, b.String())
		}
		if !strings.Contains(k.Describe(), "threshold 0.") {
			t.Error(k.Describe())
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	js, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(js)
}

// A threshold that was given is kept; one of other than two classes is refused, and one that
// no threshold has.
func TestThresholdGiven(t *testing.T) {
	s := scaling.Scaling{Method: scaling.None, Folds: 2, Seed: 1, Fit: pairs(50, 3), Threshold: 0.3}
	k, err := s.Run("test")
	if err != nil || k.Threshold.Value != 0.3 || strings.Contains(text(t, k), "criterion") || *k.Scores[1].Sensitivity < *k.Scores[0].Sensitivity {
		t.Errorf("%s, %v", text(t, k), err)
	}
	three := &predictions.Set{Classes: 3, Values: []float64{1, 2, 3, 3, 2, 1}, Labels: []int{0, 1}, Rows: []int{0, 1}}
	s.Fit = scaling.NewLogits(three)
	if _, err := s.Run("test"); err == nil || !strings.Contains(err.Error(), "there are 3 classes") {
		t.Error(err)
	}
	one := &predictions.Set{Classes: 2, Values: []float64{0, 2, 0, 1}, Labels: []int{1, 1}, Rows: []int{0, 1}}
	s.Fit, s.Threshold, s.By = scaling.NewLogits(one), 0, calibrate.Criterion{Name: calibrate.ByF1}
	if _, err := s.Run("test"); err == nil || !strings.Contains(err.Error(), "0 of class 0 and 2 of class 1") {
		t.Error(err)
	}
}
