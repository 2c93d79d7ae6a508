package calibration

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

// pairs are saved log-odds of n examples of one of two classes, three times too sure.
func pairs(t *testing.T, n int, seed uint64) *Predictions {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var values []float64
	var labels []int
	for range n {
		z := 1.5 * r.NormFloat64()
		class := 0
		if r.Float64() < 1/(1+math.Exp(-z)) {
			class = 1
		}
		values, labels = append(values, 0, 3*z), append(labels, class)
	}
	return newPredictions(t, values, 2, false, labels)
}

// The criterion chooses the threshold on calibrated probabilities. The row of the test shows the decisions by that
// threshold. Each fitting row is decided by a threshold that was chosen without it.
func TestThreshold(t *testing.T) {
	by := detect.Criterion{Name: detect.ByRecall, Want: 0.9}
	fit, test := pairs(t, 400, 1), pairs(t, 300, 2)
	for _, method := range []task.Method{task.ByTemperature, None} {
		s := Study{Method: method, Folds: 5, Seed: 1, Fit: fit, Test: test, Criterion: by}
		k, err := s.run()
		if err != nil {
			t.Fatal(err)
		}
		probs := func(l *Predictions) (in, out []float64) {
			p := k.applied(l)
			for i, label := range l.Known.Classes {
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
		d := detect.Decide(in, out, want.Threshold)
		last := k.rows[3].values
		if last["sensitivity"] != d.Sensitivity() || last["specificity"] != d.Specificity() || last["precision"] != d.Precision() || last["f1"] != d.F1() ||
			math.Abs(last["auroc"]-detect.AUROC(in, out)) > 1e-12 || math.Abs(last["average_precision"]-detect.AUPR(in, out)) > 1e-12 {
			t.Errorf("%s: %s", method, text(t, k.Show().JSON))
		}
		// Each of the 5 folds has a threshold from 320 rows. Its recall is near 0.9, but differs from that of all rows.
		if crossed := k.rows[1].values["sensitivity"]; crossed == want.Sensitivity() || math.Abs(crossed-0.9) > 0.05 {
			t.Errorf("%s: cross-fitted recall %v", method, crossed)
		}
		if saved := k.rows[0].values["sensitivity"]; saved == k.rows[1].values["sensitivity"] {
			t.Errorf("%s: as saved %v", method, saved)
		}
		var b bytes.Buffer
		if err := k.Show().Tables()[1].WriteText(&b, report.Screen{Verbose: true}); err != nil || !strings.Contains(b.String(), "by recall=0.9") {
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
	s := Study{Method: None, Folds: 2, Seed: 1, Fit: pairs(t, 50, 3), Threshold: 0.3}
	k, err := s.run()
	if err != nil || k.Threshold.Value != 0.3 || strings.Contains(text(t, k.Show().JSON), "criterion") || k.rows[1].values["sensitivity"] < k.rows[0].values["sensitivity"] {
		t.Errorf("%s, %v", text(t, k.Show().JSON), err)
	}
	s.Method, s.Fit = task.ByTemperature, newPredictions(t, []float64{1, 2, 3, 3, 2, 1}, 3, false, []int{0, 1})
	if _, err := s.run(); err == nil || !strings.Contains(err.Error(), "there are 3 classes") {
		t.Error(err)
	}
	s.Method, s.Fit, s.Threshold, s.Criterion = None, newPredictions(t, []float64{0, 2, 0, 1}, 2, false, []int{1, 1}), 0, detect.Criterion{Name: detect.ByF1}
	if _, err := s.run(); err == nil || !strings.Contains(err.Error(), "0 of class 0 and 2 of class 1") {
		t.Error(err)
	}
}
