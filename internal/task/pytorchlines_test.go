package task_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

var linesFlag = flag.String("lines", "", "write the lines for PyTorch with scores to `FILE`: testdata/pytorch.py runs them")

// A pytorchCase is a calibration with its lines of Python, and scores of a network. Result is what PyTorch makes of them.
type pytorchCase struct {
	Name, Task  string
	Form        task.Form
	Axis        int
	Calibration *task.Calibration
	Lines       []string
	Shape       []int
	Scores      []float64
	Result      []float64
}

// pytorchCases are all calibrations of all tasks, for one position and for pixels.
func pytorchCases(t *testing.T) (all []pytorchCase) {
	t.Helper()
	rng := rand.New(rand.NewPCG(4, 57))
	add := func(name, of string, form task.Form, axis int, c *task.Calibration, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		x := pytorchCase{Name: name, Task: of, Form: form, Axis: axis, Calibration: c, Lines: c.PyTorch(of, form, axis), Shape: shape, Scores: make([]float64, n)}
		for i := range x.Scores {
			x.Scores[i] = float64(float32(2 * rng.NormFloat64()))
		}
		x.intoForm()
		all = append(all, x)
	}
	fitted := func(by task.Method, count int) *task.Calibration {
		what, err := task.New("classes", task.OutputSpec{Count: count})
		if err != nil {
			t.Fatal(err)
		}
		logits, labels := make([]float64, 80*count), make([]int, 80)
		for i := range labels {
			labels[i] = i % count
			for c := range count {
				logits[i*count+c] = rng.NormFloat64()
			}
			logits[i*count+labels[i]]++
		}
		found, _ := task.Find(what, by)
		c, err := found.Fit(calibrate.Softmax(nil, logits, count, 1), target.Target{Classes: labels})
		if err != nil {
			t.Fatal(by, err)
		}
		return c
	}
	for _, form := range []task.Form{task.Logits, task.Probabilities, task.LogProbabilities} {
		for _, by := range []task.Method{task.ByTemperature, task.ByVector, task.ByStructured, task.ByMatrix} {
			add(fmt.Sprintf("%s, %s", by, form), "classes", form, 0, fitted(by, 3), 5, 3)
			add(fmt.Sprintf("pixels, %s, %s", by, form), "classes", form, 1, fitted(by, 3), 2, 3, 2, 4)
		}
		for _, by := range []task.Method{task.ByTemperature, task.ByStructured, task.ByMatrix, task.ByQuadratic, task.ByVennAbers} {
			add(fmt.Sprintf("binary, %s, %s", by, form), "binary", form, 0, fitted(by, 2), 6, 1)
			add(fmt.Sprintf("two classes, %s, %s", by, form), "classes", form, 0, fitted(by, 2), 6, 2)
		}
		add(fmt.Sprintf("pixels of two classes, quadratic, %s", form), "classes", form, 1, fitted(task.ByQuadratic, 2), 2, 2, 3, 2)
		add(fmt.Sprintf("pixels of two classes, venn-abers, %s", form), "classes", form, 1, fitted(task.ByVennAbers, 2), 2, 2, 3, 2)
		add(fmt.Sprintf("labels, platt, %s", form), "labels", form, 0, &task.Calibration{Method: task.ByPlatt, Scale: []float64{0.7, 1.5, 1}, Bias: []float64{0.1, 0, -0.4}}, 4, 3)
		add(fmt.Sprintf("labels, temperature, %s", form), "labels", form, 0, task.WithNumber("labels", 1.7), 4, 3)
	}
	for _, form := range []task.Form{task.Logits, task.Probabilities, task.LogProbabilities} {
		add(fmt.Sprintf("binary, vector, %s", form), "binary", form, 0, fitted(task.ByVector, 2), 6, 1)
		add(fmt.Sprintf("labels, temperatures, %s", form), "labels", form, 0, &task.Calibration{Method: task.ByTemperatures, Scale: []float64{0.7, 1.5, 1}, Bias: []float64{0, 0, 0}}, 4, 3)
	}
	return all
}

// intoForm makes probabilities, or their logarithms, of logits.
func (x *pytorchCase) intoForm() {
	if x.Form == task.Logits {
		return
	}
	if x.single() || x.Task == "labels" {
		for i, v := range x.Scores {
			x.Scores[i] = 1 / (1 + math.Exp(-v))
		}
	} else {
		x.each(func(at []int) {
			row := calibrate.Softmax(nil, pick(x.Scores, at), len(at), 1)
			for k, i := range at {
				x.Scores[i] = row[k]
			}
		})
	}
	if x.Form == task.LogProbabilities {
		for i, v := range x.Scores {
			x.Scores[i] = math.Log(v)
		}
	}
}

func (x *pytorchCase) single() bool { return x.Task == "binary" }

// each calls f with the places of the scores of each position.
func (x *pytorchCase) each(f func(at []int)) {
	n, step := x.Shape[len(x.Shape)-1], 1
	if x.Axis == 1 {
		n, step = x.Shape[1], x.Shape[2]*x.Shape[3]
	}
	for from := range x.Scores {
		if from/step%n == 0 {
			var at []int
			for k := range n {
				at = append(at, from+k*step)
			}
			f(at)
		}
	}
}

func pick(from []float64, at []int) (out []float64) {
	for _, i := range at {
		out = append(out, from[i])
	}
	return out
}

// want returns what the program makes of the scores, in the order of what PyTorch returns.
func (x *pytorchCase) want(t *testing.T) []float64 {
	t.Helper()
	what, err := task.New(x.Task, task.OutputSpec{Count: x.Shape[1], Form: x.Form})
	if err != nil {
		t.Fatal(err)
	}
	first := len(x.Lines) > 0 && (x.Calibration.Method == task.ByQuadratic || x.Calibration.Method == task.ByVennAbers) // of class 1 only
	out := make([]float64, len(x.Scores))
	var only []float64
	x.each(func(at []int) {
		var scores []float32
		for _, v := range pick(x.Scores, at) {
			scores = append(scores, float32(v))
		}
		outcome := make([]float64, what.About().Width)
		if _, err := what.Outcome(outcome, scores); err != nil {
			t.Fatal(err)
		}
		p := what.Apply(nil, x.Calibration, outcome)
		only = append(only, p[1])
		for k, i := range at {
			out[i] = p[k]
		}
	})
	switch {
	case x.single() && (first || x.Calibration.Method == task.ByTemperature):
		return only
	case x.single(): // structured scaling gives both classes
		out = out[:0]
		for _, p := range only {
			out = append(out, 1-p, p)
		}
	case first:
		return only
	}
	return out
}

// The lines for PyTorch give in PyTorch what the program makes of the same scores. testdata/pytorch.py has run them.
func TestPyTorchLines(t *testing.T) {
	t.Parallel()
	cases := pytorchCases(t)
	if *linesFlag != "" {
		js, err := json.MarshalIndent(cases, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*linesFlag, js, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	var run []pytorchCase
	testfile.JSON(t, "testdata/pytorch.json", &run)
	if len(run) != len(cases) {
		t.Fatalf("%d cases were run, want %d: run testdata/pytorch.py", len(run), len(cases))
	}
	for i, x := range run { // fits of other processors have other last bits
		if x.Name != cases[i].Name || !slices.Equal(x.Lines, x.Calibration.PyTorch(x.Task, x.Form, x.Axis)) {
			t.Fatalf("%s: the lines changed since PyTorch ran them: run testdata/pytorch.py", cases[i].Name)
		}
		want := x.want(t)
		if len(want) != len(x.Result) {
			t.Errorf("%s: PyTorch gives %d numbers, want %d", x.Name, len(x.Result), len(want))
			continue
		}
		for k, v := range x.Result {
			if math.Abs(v-want[k]) > 3e-6 { // of float32
				t.Errorf("%s: number %d is %v in PyTorch, want %v", x.Name, k, v, want[k])
				break
			}
		}
	}
}
