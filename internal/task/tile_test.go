package task_test

import (
	"math"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

func tile(t *testing.T, x task.Task, a task.Average, known target.Target) task.Tile {
	t.Helper()
	values := x.Values(nil, task.RowOptions{Top: 3, Target: known.Width > 0}, a, known)
	label := -1
	if known.Classes != nil {
		label = known.Classes[0]
	}
	return x.(task.Pictured).Tile(values, label, []string{"", " ", "third"})
}

// A tile of classes has the three most probable ones.
func TestClassTile(t *testing.T) {
	x := must(t, "classes", task.OutputSpec{Count: 4, Activation: "softmax"})
	average := func() task.Average { return task.Average{Outcome: []float64{0.125, 0.75, 0.125, 0}, Entropy: 0.7} }
	got := tile(t, x, average(), target.Target{Classes: []int{2}})
	want := []task.Line{{Text: "class 1", Value: "75.0 %", Part: 0.75}, {Text: "class 0", Value: "12.5 %", Part: 0.125}, {Text: "third", Value: "12.5 %", Part: 0.125}}
	if !slices.Equal(got.Lines, want) || got.Verdict != "wrong, labelled third" || !got.Wrong || got.Error != 0.75 || got.Uncertain != "entropy 0.736" || got.Disagree != "MI 0.036" {
		t.Errorf("%+v", got)
	}
	if got := tile(t, x, average(), target.Target{Classes: []int{1}}); got.Verdict != "right" || got.Wrong {
		t.Errorf("%+v", got)
	}
	if got := tile(t, x, average(), target.Target{}); got.Verdict != "" || got.Wrong {
		t.Errorf("%+v", got)
	}
	// The prediction of class 1 of two depends on the threshold.
	two := must(t, "binary", task.OutputSpec{Count: 1, Activation: "sigmoid"})
	got = tile(t, two, task.Average{Outcome: []float64{0.6, 0.4}, Entropy: 0.67301166700925652, Threshold: 0.3}, target.Target{Classes: []int{1}})
	if got.Lines[0].Text != "class 1" || got.Lines[0].Value != "40.0 %" || got.Verdict != "right" || got.Disagree != "MI 0.000" || len(got.Lines) != 2 {
		t.Errorf("%+v", got)
	}
}

// A tile of labels has those that are predicted and those that are there, and says what is
// wrong of what is known.
func TestLabelTile(t *testing.T) {
	x := must(t, "labels", task.OutputSpec{Count: 3, Activation: "sigmoid"})
	outcome := func(p ...float64) task.Average {
		scores := []float32{float32(p[0]), float32(p[1]), float32(p[2])}
		out := make([]float64, x.About().Width)
		h, err := x.Outcome(out, scores)
		if err != nil {
			t.Fatal(err)
		}
		return task.Average{Outcome: out, Entropy: h}
	}
	known := func(v ...float64) target.Target { return target.Target{Width: 3, Values: v} }
	for _, tt := range []struct {
		p       task.Average
		known   target.Target
		lines   []string
		verdict string
		off     float64
	}{
		{outcome(0.25, 0.75, 0.5), known(0, 1, 1), []string{"label 1, there 75.0 %", "third, there 50.0 %"}, "right", 0},
		{outcome(0.25, 0.75, 0.5), known(1, 0, -1), []string{"label 1 75.0 %", "third 50.0 %", "label 0, there 25.0 %"}, "1 missed, 1 not there", 0.75},
		{outcome(0.25, 0.125, 0), known(0, 0, 0), []string{"no label ", "label 0 25.0 %"}, "right", 0},
		{outcome(0.25, 0.125, 0), known(0, 0, 1), []string{"third, there 0.0 %"}, "1 missed", 1},
		{outcome(0.25, 0.75, 0.5), known(-1, -1, -1), []string{"label 1 75.0 %", "third 50.0 %"}, "", 0},
		{outcome(0.25, 0.75, 0.5), target.Target{}, []string{"label 1 75.0 %", "third 50.0 %"}, "", 0},
	} {
		got := tile(t, x, tt.p, tt.known)
		var lines []string
		for _, l := range got.Lines {
			lines = append(lines, l.Text+" "+l.Value)
		}
		if !slices.Equal(lines, tt.lines) || got.Verdict != tt.verdict || got.Error != tt.off || got.Wrong != (tt.off > 0) || got.Disagreement != 0 || got.Uncertainty != tt.p.Entropy {
			t.Errorf("%v: %q, %+v, want %q, %q, off by %v", tt.known.Values, lines, got, tt.lines, tt.verdict, tt.off)
		}
	}
	// Of many labels some are shown.
	many := must(t, "labels", task.OutputSpec{Count: 9, Activation: "sigmoid"})
	out := make([]float64, many.About().Width)
	if _, err := many.Outcome(out, []float32{1, 1, 1, 1, 1, 1, 1, 1, 1}); err != nil {
		t.Fatal(err)
	}
	if got := tile(t, many, task.Average{Outcome: out}, target.Target{}); len(got.Lines) != 7 || got.Lines[6].Text != "and 3 more" {
		t.Errorf("%+v", got.Lines)
	}
}

// A tile of a regression has means, standard deviations to two digits and true values, and is
// ordered by what the network's units make of all targets.
func TestRegressionTile(t *testing.T) {
	x := must(t, "regression", twoTargets) // 20 + 3z and −1 + z/2
	// z is 1 with variances 0.25 + 0.75, and −2 with 0.04 and no disagreement
	outcome := func() task.Average { return task.Average{Outcome: []float64{1, 1.75, 0.25, -2, 4, 0.04}} }
	got := tile(t, x, outcome(), target.Target{Width: 2, Values: []float64{24, -1.5}})
	want := []task.Line{{Text: "0: 23.0 ± 3.0", Value: "true 24.0", Part: -1}, {Text: "1: −2.00 ± 0.10", Value: "true −1.50", Part: -1}}
	if !slices.Equal(got.Lines, want) || !got.Wrong || math.Abs(got.Error-5) > 1e-9 || got.Verdict != "5.0 standard deviations off" {
		t.Errorf("%+v", got)
	}
	if math.Abs(got.Uncertainty-math.Sqrt((1+0.04)/2)) > 1e-12 || math.Abs(got.Disagreement-math.Sqrt(0.75/2)) > 1e-12 || got.Uncertain != "aleatoric 0.38" || got.Disagree != "epistemic 0.61" {
		t.Errorf("%+v", got)
	}
	if got = tile(t, x, outcome(), target.Target{Width: 2, Values: []float64{24, -2.1}}); got.Wrong || got.Verdict != "inside the interval" {
		t.Errorf("%+v", got)
	}
	if got = tile(t, x, outcome(), target.Target{}); got.Wrong || got.Verdict != "" || got.Lines[0].Value != "" {
		t.Errorf("%+v", got)
	}
}
