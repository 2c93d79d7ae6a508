package task_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// twoClasses are outcomes of n examples of one of two classes, and their classes.
func twoClasses(n int) (outcomes []float64, known target.Target) {
	r := rand.New(rand.NewPCG(8, 9))
	for range n {
		c := r.IntN(2)
		z := 2*r.NormFloat64() + 2*float64(c) - 1
		outcomes = append(outcomes, 1/(1+math.Exp(z)), 1/(1+math.Exp(-z)))
		known.Classes = append(known.Classes, c)
	}
	return outcomes, known
}

// Rows predict by the threshold, say the probability of class 1, and rank what is predicted
// first; summed up they have the scores of Evaluate at that threshold.
func TestBinaryThreshold(t *testing.T) {
	x := must(t, "", task.OutputSpec{Count: 1})
	outcomes, known := twoClasses(400)
	for _, threshold := range []float64{0, 0.5, 0.13, 0.9} {
		at := threshold
		if at == 0 {
			at = 0.5
		}
		s, wrong := task.NewEvaluator(x, task.EvaluateOptions{MainOnly: true}), 0.0
		want := task.RowOptions{Top: 2, Outcomes: true}
		for i := range known.Len() {
			p := slices.Clone(outcomes[2*i:][:2])
			values := x.Values(nil, want, task.Average{Outcome: p, Threshold: threshold}, known.At(i))
			got := map[string][]float64{}
			rest := values
			for _, c := range x.Columns(want) {
				got[c.Name], rest = rest[:c.Len()], rest[c.Len():]
			}
			class := 0
			if p[1] >= at {
				class = 1
			}
			if len(rest) > 0 || got["prediction"][0] != float64(class) || got["confidence"][0] != p[class] || got["class_1_probability"][0] != p[1] ||
				!slices.Equal(got["top"], []float64{float64(class), p[class], float64(1 - class), p[1-class]}) || !slices.Equal(got["probs"], p) {
				t.Fatalf("at %v of %v: %v", threshold, p, got)
			}
			if class != known.Classes[i] {
				wrong++
			}
			s.AddRow(values, known.Classes[i], nil)
		}
		e, err := task.Evaluate(x, outcomes, known, task.EvaluateOptions{Threshold: threshold})
		if err != nil {
			t.Fatal(err)
		}
		if e.Value("threshold") != at {
			t.Errorf("at %v, want %v", e.Value("threshold"), at)
		}
		if sum := average(e.Loss("error")) * 400; math.Abs(sum-wrong) > 1e-9 || math.Abs(e.Value("accuracy")-(1-wrong/400)) > 1e-15 {
			t.Errorf("%v errors, accuracy %v, want %v", sum, e.Value("accuracy"), wrong)
		}
		if n := len(computed(s.Evaluation())); n != 15 {
			t.Errorf("%d scores: %v", n, s.Evaluation().Scores)
		}
		for _, score := range computed(s.Evaluation()) {
			if want := e.Value(score.Key); math.Abs(score.Value-want) > 1e-12 { // sums in another order
				t.Errorf("%s: %v, want %v", score.Key, score.Value, want)
			}
		}
		main, err := task.Evaluate(x, outcomes, known, task.EvaluateOptions{Threshold: threshold, MainOnly: true})
		if err != nil || len(main.Main()) != 6 || !slices.Equal(main.Main(), e.Main()) || len(main.Scores) != len(e.Scores) || !slices.Equal(main.Loss("error"), e.Loss("error")) {
			t.Errorf("main metrics %v, want %v", main.Scores, e.Scores)
		}
	}
}

// The calibration error is of the probability of class 1, here in one bin: |mean p − share|.
// With bins of confidences it would be another number.
func TestBinaryCalibrationError(t *testing.T) {
	x := must(t, "", task.OutputSpec{Count: 1})
	outcomes, known := []float64{0.9, 0.1, 0.8, 0.2, 0.4, 0.6}, target.Target{Classes: []int{0, 1, 1}}
	e, err := task.Evaluate(x, outcomes, known, task.EvaluateOptions{EvaluateOptions: calibrate.EvaluateOptions{ECE: calibrate.ECEOptions{Bins: 1}}})
	if want := math.Abs(0.3 - 2.0/3); err != nil || math.Abs(e.Value("ece")-want) > 1e-15 {
		t.Errorf("%v, %v, want %v", e.Value("ece"), err, want)
	}
	if b := e.Reliability; len(b) != 1 || b[0].Count != 3 || math.Abs(b[0].Confidence-0.3) > 1e-15 || math.Abs(b[0].Accuracy-2.0/3) > 1e-15 {
		t.Errorf("bins %+v", b)
	}
}

// Probabilities that are all 1 in float64 are distinguished by their complements, and AUROC is
// that of either class of two.
func TestBinaryAreas(t *testing.T) {
	x, two := must(t, "", task.OutputSpec{Count: 1}), must(t, "", task.OutputSpec{Count: 2})
	outcomes, known := []float64{1e-20, 1, 1e-30, 1, 1e-25, 1, 1e-40, 1}, target.Target{Classes: []int{0, 1, 0, 1}}
	for _, is := range []task.Task{x, two} {
		e, err := task.Evaluate(is, outcomes, known, task.EvaluateOptions{})
		if got := e.Value("auroc"); err != nil || got != 1 {
			t.Errorf("%s: AUROC %v, %v, want 1", is.About().Meaning, got, err)
		}
	}
	three := must(t, "", task.OutputSpec{Count: 3})
	e, err := task.Evaluate(three, []float64{0.2, 0.3, 0.5}, class(1), task.EvaluateOptions{})
	if err != nil || !math.IsNaN(e.Value("auroc")) {
		t.Errorf("AUROC of three classes: %v, %v", e.Value("auroc"), err)
	}
	// Of one class alone there is none, which is reported.
	e, err = task.Evaluate(x, outcomes[:4], target.Target{Classes: []int{1, 1}}, task.EvaluateOptions{})
	if err != nil || !math.IsNaN(e.Value("auroc")) || !math.IsNaN(e.Value("specificity")) || e.Points != nil || !strings.Contains(e.Warnings[len(e.Warnings)-1].Error(), "all labels are of one class") {
		t.Errorf("%v, %v", e, err)
	}
	s := task.NewEvaluator(x, task.EvaluateOptions{MainOnly: true})
	s.AddRow(x.Values(nil, task.RowOptions{}, task.Average{Outcome: []float64{0.5, 0.5}}, class(1)), 1, nil)
	if e := s.Evaluation(); len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0].Error(), "all labels are of one class") || !math.IsNaN(e.Value("auroc")) {
		t.Errorf("warns %q, AUROC %v", e.Warnings, e.Value("auroc"))
	}
}

// A criterion chooses on outcomes what Evaluate then has.
func TestDecide(t *testing.T) {
	x := must(t, "", task.OutputSpec{Count: 1}).(task.Decided)
	outcomes, known := twoClasses(300)
	by := detect.Criterion{Name: detect.BySpecificity, Want: 0.95}
	chosen, err := x.Decide(outcomes, known, by)
	if err != nil {
		t.Fatal(err)
	}
	e, err := task.Evaluate(x, outcomes, known, task.EvaluateOptions{Threshold: chosen.Threshold})
	if err != nil || e.Decided != chosen.Decisions || e.Value("specificity") < 0.95 {
		t.Errorf("%+v, %v, want %+v", e.Decided, err, chosen)
	}
	if _, ok := must(t, "", task.OutputSpec{Count: 2}).(task.Decided); ok {
		t.Error("two classes predict by a threshold")
	}
}
