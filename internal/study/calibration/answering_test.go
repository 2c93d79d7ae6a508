package calibration

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/report"
)

// The rule comes from the predictions as saved. Table and JSON show it, and its effect on the test.
func TestAnswers(t *testing.T) {
	by := detect.Criterion{Name: detect.ByRisk, Want: 0.2}
	fit, test := pairs(t, 2000, 1), pairs(t, 300, 2)
	s := Study{Method: None, Folds: 5, Seed: 1, Fit: fit, Test: test, Criterion: by}
	k, err := s.Run("test")
	if err != nil {
		t.Fatal(err)
	}
	want, err := calibrate.FitAnswering(tops(fit), 0.2)
	if err != nil || k.answers.Answering != want || !(want.Coverage > 0 && want.Coverage < 1) {
		t.Fatalf("%+v, want %+v, %v", k.answers, want, err)
	}
	answered, wrong := 0, 0
	for i, label := range test.Known.Classes {
		if p := test.Outcomes[2*i:][:2]; max(p[0], p[1]) > want.Threshold {
			if answered++; p[label] < p[1-label] {
				wrong++
			}
		}
	}
	if r := k.answers.rows[1]; r.n != 300 || r.coverage != float64(answered)/300 || r.risk != float64(wrong)/float64(answered) {
		t.Errorf("%+v, want %d answered, %d of them wrong", r, answered, wrong)
	}
	var text bytes.Buffer
	if err := k.Show().Tables()[0].WriteText(&text, report.Screen{Verbose: true}); err != nil || !bytes.Contains(text.Bytes(), []byte("chosen on  2,000")) {
		t.Errorf("%s, %v", &text, err)
	}
	js, err := json.Marshal(k.Show().JSON)
	var got struct {
		Threshold Threshold
		Answers   []struct{ Answered, Wrong float64 }
	}
	if err := json.Unmarshal(js, &got); err != nil || got.Threshold != (Threshold{want.Threshold, "risk=0.2"}) || len(got.Answers) != 2 || got.Answers[0].Wrong != want.Risk {
		t.Errorf("%s, %v", js, err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
