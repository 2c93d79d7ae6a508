package task_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

func must(t *testing.T, name string, s task.OutputSpec) task.Task {
	t.Helper()
	got, err := task.New(name, s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name  string
		s     task.OutputSpec
		want  string // or a part of the error
		width int
	}{
		{"", task.OutputSpec{Output: "y", Count: 1}, `output "y": the logit of class 1 of 2`, 2},
		{"", task.OutputSpec{Output: "y", Count: 1, Activation: "sigmoid"}, `output "y": the probability of class 1 of 2`, 2},
		{"", task.OutputSpec{Output: "y", Count: 10}, `output "y": 10 classes, a logit for each`, 10},
		{"classes", task.OutputSpec{Output: "y", Count: 2, Activation: "softmax"}, `output "y": 2 classes, a probability for each`, 2},
		{"", task.OutputSpec{Output: "y", Count: 3, Activation: "sigmoid"}, "do not exclude each other", 0},
		{"", task.OutputSpec{Output: "y", Count: 1, Activation: "softmax"}, "which is always 1", 0},
		{"binary", task.OutputSpec{Output: "y", Count: 3}, "the task binary has one score", 0},
		{"", task.OutputSpec{Output: "y"}, "for no task", 0},
		{"ranking", task.OutputSpec{Output: "y", Count: 3}, "want one of binary, classes", 0},
	} {
		got, err := task.New(tt.name, tt.s)
		switch {
		case err != nil:
			if tt.width > 0 || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v: %v, want %q", tt.s, err, tt.want)
			}
		case got.About().Meaning != tt.want || got.About().Width != tt.width || got.About().Classes != tt.width || got.About().Size != fmt.Sprintf("%d classes", tt.width):
			t.Errorf("%+v: %q of width %d, want %q of %d", tt.s, got.About().Meaning, got.About().Width, tt.want, tt.width)
		case tt.name != "" && got.About().Name != tt.name:
			t.Errorf("%+v: task %q, want %q", tt.s, got.About().Name, tt.name)
		case got.CheckLabel(class(tt.width-1)) != nil || got.CheckLabel(class(tt.width)) == nil:
			t.Errorf("%+v: labels from 0 to %d are not those that are taken", tt.s, tt.width-1)
		}
	}
}

// Outcomes are held against the formulas, written out.
func TestOutcome(t *testing.T) {
	logits := []float32{1, -2, 0.5}
	sum := math.Exp(1) + math.Exp(-2) + math.Exp(0.5)
	for _, tt := range []struct {
		s      task.OutputSpec
		scores []float32
		want   []float64
		err    string
	}{
		{task.OutputSpec{Count: 3}, logits, []float64{math.Exp(1) / sum, math.Exp(-2) / sum, math.Exp(0.5) / sum}, ""},
		{task.OutputSpec{Count: 2, Activation: "softmax"}, []float32{0.25, 0.75}, []float64{0.25, 0.75}, ""},
		{task.OutputSpec{Count: 1}, []float32{-1.5}, []float64{1 / (1 + math.Exp(-1.5)), 1 / (1 + math.Exp(1.5))}, ""},
		{task.OutputSpec{Count: 1, Activation: "sigmoid"}, []float32{0.25}, []float64{0.75, 0.25}, ""},
		{task.OutputSpec{Count: 2}, []float32{1, float32(math.NaN())}, nil, "class 1 has NaN"},
		{task.OutputSpec{Count: 1}, []float32{float32(math.Inf(1))}, nil, "not finite"},
		{task.OutputSpec{Count: 2, Activation: "softmax"}, []float32{0.5, 0.6}, nil, "they add up to"},
		{task.OutputSpec{Count: 2, Activation: "softmax"}, []float32{-0.5, 1.5}, nil, "the least is -0.5"},
		{task.OutputSpec{Count: 1, Activation: "sigmoid"}, []float32{1.5}, nil, "taken for probabilities, but one is 1.5"},
	} {
		x := must(t, "", tt.s)
		got := make([]float64, x.About().Width)
		entropy, err := x.Outcome(got, tt.scores)
		if err != nil || tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v: error %v, want %q", tt.scores, err, tt.err)
			}
			continue
		}
		want := 0.0
		for c, p := range tt.want {
			want -= p * math.Log(p)
			if math.Abs(got[c]-p) > 1e-15 { // a few units in the last place
				t.Errorf("%v: %v, want %v", tt.scores, got, tt.want)
			}
		}
		if math.Abs(entropy-want) > 1e-14 {
			t.Errorf("%v: entropy %v, want %v", tt.scores, entropy, want)
		}
	}
}

// Expected values are those of the definitions, in float64; a few roundings
// may lie between.
func TestProbabilities(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	for _, tc := range []struct {
		activation string
		scores     []float32
		want       []float64
		err        string
	}{
		{"", []float32{0, 0}, []float64{0.5, 0.5}, ""},
		{"", []float32{2, -2}, []float64{sigmoid(4), sigmoid(-4)}, ""},
		{"", []float32{-300, 300}, []float64{math.Exp(-600), 1}, ""},
		{"", []float32{1.5}, []float64{sigmoid(-1.5), sigmoid(1.5)}, ""},
		{"", []float32{-40}, []float64{1, math.Exp(-40)}, ""}, // kills 1 − (1 − p)
		{"sigmoid", []float32{0.25}, []float64{0.75, 0.25}, ""},
		{"sigmoid", []float32{1}, []float64{0, 1}, ""},
		{"softmax", []float32{0.25, 0.7500001}, []float64{0.25 / 1.0000001, 0.7500001 / 1.0000001}, ""},
		{"", []float32{1, nan}, nil, "the network's output is not finite: class 1 has NaN"},
		{"", []float32{inf, 1}, nil, "class 0 has +Inf"},
		{"", []float32{0, 0, -inf}, nil, "class 2 has -Inf"},
		{"sigmoid", []float32{nan}, nil, "not finite: NaN"},
		{"sigmoid", []float32{1.5}, nil, "taken for probabilities, but one is 1.5"},
		{"softmax", []float32{0.5, nan}, nil, "class 1 has NaN"},
		{"softmax", []float32{0.5, 0.6}, nil, "they add up to 1.1"},
		{"softmax", []float32{1.5, -0.5}, nil, "the least is -0.5"},
	} {
		x := must(t, "", task.OutputSpec{Count: len(tc.scores), Activation: tc.activation})
		got := make([]float64, x.About().Width)
		_, err := x.Outcome(got, tc.scores)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%v: error %v, want %q", tc.scores, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q of %v: %v", tc.activation, tc.scores, err)
		}
		for c := range tc.want {
			if math.Abs(got[c]-tc.want[c]) > 1e-7*tc.want[c] { // float32's own rounding of 0.7500001
				t.Errorf("%q of %v: %v, want %v", tc.activation, tc.scores, got, tc.want)
			}
		}
	}
}

// A row's values lie where its columns say, and are what calibrate computes.
func TestValues(t *testing.T) {
	x := must(t, "", task.OutputSpec{Count: 4})
	want := task.RowOptions{Top: 3, Outcomes: true, Members: 2}
	p := []float64{0.1, 0.4, 0.4, 0.1}
	members := []float32{0.1, 0.5, 0.3, 0.1, 0.1, 0.3, 0.5, 0.1}
	values := x.Values([]float64{-7}, want, task.Average{Outcome: slices.Clone(p), Entropy: 1, Members: members}, class(2))
	if values[0] != -7 {
		t.Fatal("what was there was overwritten")
	}
	values = values[1:]
	got := map[string][]float64{}
	for _, c := range x.Columns(want) {
		got[c.Name], values = values[:c.Len()], values[c.Len():]
	}
	if len(values) > 0 {
		t.Errorf("%d values too many", len(values))
	}
	h := calibrate.Entropy(p)
	for name, want := range map[string][]float64{
		"prediction": {1}, "confidence": {0.4}, "predictive_entropy": {h}, "expected_entropy": {1}, "mutual_information": {h - 1},
		"nll": {-math.Log(0.4)}, "brier": {0.1*0.1*2 + 0.4*0.4 + 0.6*0.6}, "top": {1, 0.4, 2, 0.4, 0, 0.1}, "probs": p,
	} {
		if !slices.EqualFunc(got[name], want, func(a, b float64) bool { return math.Abs(a-b) < 1e-15 }) {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	for i, m := range got["member_probs"] {
		if float32(m) != members[i] {
			t.Errorf("member_probs: %v, want %v", got["member_probs"], members)
		}
	}
	// Calibration changes the prediction's uncertainty, not that of the members.
	flat := func(p []float64) { copy(p, []float64{0.25, 0.25, 0.25, 0.25}) }
	values = x.Values(nil, task.RowOptions{}, task.Average{Outcome: slices.Clone(p), Entropy: 1, Calibrate: flat}, target.Target{})
	if values[1] != 0.25 || math.Abs(values[2]-math.Log(4)) > 1e-15 || math.Abs(values[4]-(h-1)) > 1e-15 || !math.IsNaN(values[5]) || !math.IsNaN(values[6]) {
		t.Errorf("calibrated: %v", values)
	}
}

// The ranking is that of a stable sort.
func TestRanked(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 2 + rng.IntN(9)
		x := must(t, "", task.OutputSpec{Count: n})
		p := make([]float64, n)
		for c := range p {
			p[c] = float64(rng.IntN(4)) // ties abound
		}
		order := make([]int, n)
		for c := range order {
			order[c] = c
		}
		sort.SliceStable(order, func(i, j int) bool { return p[order[i]] > p[order[j]] })
		k := 1 + rng.IntN(n+2)
		values := x.Values(nil, task.RowOptions{Top: k}, task.Average{Outcome: slices.Clone(p)}, class(-1))[7:]
		if len(values) != 2*min(k, n) {
			t.Fatalf("top %d of %d: %v", k, n, values)
		}
		for i := range min(k, n) {
			if int(values[2*i]) != order[i] || values[2*i+1] != p[order[i]] {
				t.Fatalf("top %d of %v: %v, want %v", k, p, values, order)
			}
		}
	}
}

// What is added up row by row is what all rows together give.
func TestSummary(t *testing.T) {
	x := must(t, "", task.OutputSpec{Count: 3})
	rng := rand.New(rand.NewPCG(3, 4))
	s := task.NewEvaluator(x, task.EvaluateOptions{MainOnly: true})
	var all []float64
	var labels []int
	for range 500 {
		p := calibrate.Softmax(nil, []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}, 3, 1)
		label := rng.IntN(3)
		s.AddRow(x.Values(nil, task.RowOptions{}, task.Average{Outcome: slices.Clone(p)}, class(label)), label, nil)
		all, labels = append(all, p...), append(labels, label)
	}
	e, err := task.Evaluate(x, all, target.Target{Classes: labels}, task.EvaluateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, score := range computed(s.Evaluation()) {
		if want := e.Value(score.Key); math.Abs(score.Value-want) > 1e-12 { // sums in another order
			t.Errorf("%s: %v, want %v", score.Key, score.Value, want)
		}
	}
	if w := s.Evaluation().Warnings; w != nil {
		t.Errorf("warns: %s", w)
	}
	s.AddRow(x.Values(nil, task.RowOptions{}, task.Average{Outcome: []float64{1, 0, 0}}, class(2)), 2, nil)
	if w, want := s.Evaluation().Warnings, "NLL is infinite: 1 of 501 labels have probability 0"; len(w) != 1 || !strings.HasPrefix(w[0].Error(), want) {
		t.Errorf("warns %q, want %q", w, want)
	}
	if mean := e.Loss("nll"); math.Abs(e.Value("nll")-average(mean)) > 1e-12 {
		t.Errorf("NLL %v, and its mean over examples %v", e.Value("nll"), average(mean))
	}
	if _, err := task.Evaluate(x, all, class(labels[0]), task.EvaluateOptions{}); err == nil {
		t.Error("labels of one example are taken for those of all")
	}
}

// computed returns the scores that are known.
func computed(e *task.Evaluation) []task.Score {
	return slices.DeleteFunc(e.Scores, func(s task.Score) bool { return s.Value != s.Value })
}

func average(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// The curvature is the second derivative of the expected loss, by differences.
func TestCurvature(t *testing.T) {
	for _, scores := range [][]float64{{0.7}, {0.3, -1.2, 0.5}} {
		x := must(t, "", task.OutputSpec{Count: len(scores)}).(task.Curved)
		k := len(scores)
		hessian := mat.NewDense(k, k, nil)
		x.AddCurvature(hessian, mat.NewDense(2, k, slices.Concat(scores, scores)))
		got := hessian.RawMatrix().Data
		p := make([]float64, x.About().Width)
		outcome := func(z []float64) []float64 {
			out := make([]float64, x.About().Width)
			x.Link(out, z)
			return out
		}
		copy(p, outcome(scores))
		loss := func(z []float64) (sum float64) {
			for c, q := range outcome(z) {
				sum -= p[c] * math.Log(q)
			}
			return sum
		}
		const h = 1e-4
		at := func(i, j int, a, b float64) float64 {
			z := slices.Clone(scores)
			z[i] += a
			z[j] += b
			return loss(z)
		}
		for i := range k {
			for j := range k {
				want := (at(i, j, h, h) - at(i, j, h, -h) - at(i, j, -h, h) + at(i, j, -h, -h)) / (2 * h * h) // of two examples
				if math.Abs(got[i*k+j]-want) > 1e-6 {                                                         // h² and rounding by h²
					t.Errorf("%v: curvature %d,%d is %v, want %v", scores, i, j, got[i*k+j], want)
				}
			}
		}
	}
}

func Example() {
	t, _ := task.New("", task.OutputSpec{Output: "logits", Count: 3})
	p := make([]float64, t.About().Width)
	entropy, _ := t.Outcome(p, []float32{2, 0, 1})
	fmt.Println(t.About().Meaning)
	fmt.Printf("%.3f %.3f\n", p, entropy)
	// Output:
	// output "logits": 3 classes, a logit for each
	// [0.665 0.090 0.245] 0.832
}

// What scores mean is told by their activation or the names of their classes, or
// must be told by the user: the numbers themselves never do.
func TestTell(t *testing.T) {
	for _, tt := range []struct {
		s     task.OutputSpec
		names int
		want  string // or what the error holds
		hints int    // of an unclear case
	}{
		{task.OutputSpec{Count: 10, Activation: "softmax"}, 0, "classes", 0},
		{task.OutputSpec{Count: 10, Activation: "logsoftmax"}, 0, "classes", 0},
		{task.OutputSpec{Count: 1, Activation: "sigmoid"}, 0, "binary", 0},
		{task.OutputSpec{Activation: "softmax"}, 0, "classes", 0},
		{task.OutputSpec{Activation: "sigmoid"}, 0, "binary", 0},
		{task.OutputSpec{Count: 3, Activation: "sigmoid"}, 3, "do not exclude each other", 2},
		{task.OutputSpec{Count: 1, Activation: "logsoftmax"}, 0, "which is always 0", 0},
		{task.OutputSpec{Count: 10}, 10, "classes", 0},
		{task.OutputSpec{Count: 1}, 2, "binary", 0},
		{task.OutputSpec{}, 3, "classes", 0},
		{task.OutputSpec{}, 2, "numbers for an example, with no activation", 1}, // two classes, or one score of two
		{task.OutputSpec{}, 0, "numbers for an example, with no activation", 1},
		{task.OutputSpec{Count: 1}, 0, "one number for an example", 1},
		{task.OutputSpec{Count: 10}, 0, "10 numbers for an example", 1},
	} {
		got, err := task.InferTask(tt.s, tt.names)
		if err == nil {
			if got != tt.want {
				t.Errorf("%+v with %d names: %q, want %q", tt.s, tt.names, got, tt.want)
			}
			continue
		}
		unclear := new(task.AmbiguousTask)
		if !strings.Contains(err.Error(), tt.want) || errors.As(err, &unclear) != (tt.hints > 0) || tt.hints > 0 && len(unclear.Hints()) != tt.hints+1 { // the last is for networks without scores
			t.Errorf("%+v with %d names: %v, hints %q", tt.s, tt.names, err, unclear.Hints())
		}
	}
}

// Labels choose among the tasks that ambiguous scores may be of. Labels that fit several tasks choose none.
func TestFromLabels(t *testing.T) {
	values := func(width int, v ...float64) target.Target { return target.Target{Values: v, Width: width} }
	for _, tt := range []struct {
		activation string
		count      int
		labels     target.Target
		want, head string
	}{
		{"", 1, values(1, 0, 1, 1), "binary", ""},
		{"", 1, values(1, 0, 1, 2), "regression", "none"},
		{"", 1, values(1, 0.5, -3), "regression", "none"},
		{"", 10, values(1, 0, 9, 3), "classes", ""},
		{"", 0, values(1, 0, 9, 3), "classes", ""},
		{"", 10, values(1, 0, 10), "", ""}, // a class that the network does not have
		{"", 2, values(1, 0, 1, 1), "classes", ""},
		{"", 2, values(1, 0.2, 7), "regression", ""}, // with a variance head
		{"", 3, values(3, 1, 1, 0, 0, 0, 0), "labels", ""},
		{"", 3, values(3, 1, target.Unknown, 0, 0, 1, 1), "labels", ""},
		{"", 3, values(3, 1, 0, 0, 0, 1, 0), "", ""}, // one-hot classes, or labels
		{"", 3, values(3, 1, 0.5, 0), "regression", "none"},
		{"sigmoid", 3, values(3, 1, 1, 0), "labels", ""},
		{"sigmoid", 3, values(3, 1, 0.5, 0), "", ""},
		{"", 4, values(3, 1, 1, 0), "", ""},
	} {
		name, head, ok := task.FromLabels(task.OutputSpec{Count: tt.count, Activation: tt.activation}, tt.labels)
		if !ok {
			name = ""
		}
		if name != tt.want || head != tt.head {
			t.Errorf("%d scores of %q, labels %v: %q and head %q, want %q and %q", tt.count, tt.activation, tt.labels.Values, name, head, tt.want, tt.head)
		}
	}
}

// class is what is known of an example of that class.
func class(c int) target.Target { return target.Target{Classes: []int{c}} }

// What scores come out of, and how many they are, against every task: what the graph
// contradicts is refused with the reason, and auto takes what one reason is left for.
func TestContradictions(t *testing.T) {
	const takes, asks = "takes", "asks"
	numbers := &task.RegressionSpec{Noise: []float64{1}}
	reason := map[string]string{
		"constant": "over a single score, which is always", "excludes": "its classes exclude each other: no independent labels", "probabilities": "gives probabilities of classes and no numbers",
		"labels": "do not exclude each other are independent labels, Task labels", "one": "a single score is that of class 1 of two, Task binary",
		"each": "these are independent labels, Task labels", "several": "a score for each of several classes is Task classes",
	}
	for _, tt := range []struct {
		activation                                string
		count                                     int
		binary, classes, labels, regression, auto string
	}{
		{"", 1, takes, "one", takes, takes, asks},
		{"", 2, "several", takes, takes, takes, asks},
		{"", 5, "several", takes, takes, takes, asks},
		{"softmax", 1, "constant", "constant", "excludes", "probabilities", "constant"},
		{"softmax", 2, "several", takes, "excludes", "probabilities", "classes"},
		{"softmax", 5, "several", takes, "excludes", "probabilities", "classes"},
		{"logsoftmax", 1, "constant", "constant", "excludes", "probabilities", "constant"},
		{"logsoftmax", 5, "several", takes, "excludes", "probabilities", "classes"},
		{"sigmoid", 1, takes, "one", takes, takes, "binary"},
		{"sigmoid", 2, "each", "labels", takes, takes, asks},
		{"sigmoid", 5, "each", "labels", takes, takes, asks},
	} {
		s := task.OutputSpec{Output: "y", Activation: tt.activation, Count: tt.count, Regression: numbers}
		taken := 0
		for name, want := range map[string]string{"binary": tt.binary, "classes": tt.classes, "labels": tt.labels, "regression": tt.regression} {
			got, err := task.New(name, s)
			switch {
			case want == takes:
				if err != nil || got.About().Name != name {
					t.Errorf("%d of %q as %s: %v", tt.count, tt.activation, name, err)
				}
				if taken++; name == "labels" && tt.count == 1 || name == "regression" && tt.activation != "" {
					taken-- // one label is binary, and few regressions end in a sigmoid: no hint
				}
			case err == nil || !strings.Contains(err.Error(), reason[want]) || !strings.HasPrefix(err.Error(), `tensor "y": `):
				t.Errorf("%d of %q as %s: %v, want %q", tt.count, tt.activation, name, err, reason[want])
			}
		}
		got, err := task.InferTask(s, 0)
		unclear := new(task.AmbiguousTask)
		switch {
		case tt.auto == asks:
			hints := 2 // the last is for networks without scores
			if tt.activation != "" {
				hints++ // the steps of an ordinal scale are no task
			}
			if !errors.As(err, &unclear) || len(unclear.Hints()) != hints || strings.Count(unclear.Hints()[0], setting.Task.String()) != taken {
				t.Errorf("%d of %q: %q, %v, hints %q, want %d with %d tasks", tt.count, tt.activation, got, err, unclear.Hints(), hints, taken)
			}
		case reason[tt.auto] != "":
			if err == nil || errors.As(err, &unclear) || !strings.Contains(err.Error(), reason[tt.auto]) {
				t.Errorf("%d of %q: %v, want %q", tt.count, tt.activation, err, reason[tt.auto])
			}
		case err != nil || got != tt.auto:
			t.Errorf("%d of %q: %q, %v, want %s", tt.count, tt.activation, got, err, tt.auto)
		}
	}
}
