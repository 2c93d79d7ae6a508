package task_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// What learnt nothing says shares, rates, or mean and variance, in each task. Its first loss on the targets that it knows is the
// entropy of these. Targets that are not known count nowhere.
func TestConstant(t *testing.T) {
	t.Parallel()
	entropy := func(shares ...float64) (sum float64) {
		for _, p := range shares {
			sum -= p * math.Log(p)
		}
		return sum
	}
	const n = 4000
	var classes, halves []int
	var labels, numbers []float64
	for i := range n {
		classes, halves = append(classes, min(i%4, 2)), append(halves, i%2)
		label := 0.0
		if i%10 == 0 {
			label = 1
		}
		labels = append(labels, label, float64(i%2))
		numbers = append(numbers, 50+3*float64(1-i%2*2)) // mean 50, standard deviation 3
	}
	for name, c := range map[string]struct {
		task    string
		spec    task.OutputSpec
		targets target.Target
		says    string
		loss    float64
	}{
		"classes":    {"classes", task.OutputSpec{Count: 3}, target.Target{Classes: append(classes, target.Unknown)}, "class shares", entropy(0.25, 0.25, 0.5)},
		"binary":     {"binary", task.OutputSpec{Count: 1}, target.Target{Classes: halves}, "class shares", math.Ln2},
		"labels":     {"labels", task.OutputSpec{Count: 2}, target.Target{Values: labels, Width: 2}, "label rates", (entropy(0.1, 0.9) + math.Ln2) / 2},
		"regression": {"regression", task.OutputSpec{Count: 1}, target.Target{Values: numbers, Width: 1}, "mean and variance", math.Log(2*math.Pi*math.E*9) / 2},
		"in units":   {"regression", task.OutputSpec{Count: 1, Regression: &task.RegressionSpec{}}, target.Target{Values: numbers, Width: 1}, "mean and variance", math.Log(2*math.Pi*math.E*9) / 2},
		"pixels":     {"classes", task.OutputSpec{Count: 3, Axis: 1, Positions: 4, Sides: [3]int{2, 2}}, target.Target{Classes: classes, Positions: 4}, "class shares", entropy(0.25, 0.25, 0.5)},
	} {
		x, err := task.New(c.task, c.spec)
		if err != nil {
			t.Fatal(err)
		}
		same := task.NewConstant(x)
		for i := range c.targets.Len() {
			same.Add(c.targets.At(i))
		}
		e := task.NewEvaluator(x, task.EvaluateOptions{MainOnly: true, NoIntervals: true})
		for i := range c.targets.Len() {
			if !c.targets.At(i).Known() {
				continue
			}
			if err := e.Add(same.Outcome(x), c.targets.At(i)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		losses := e.Losses()[0].Values
		mean := floats.Sum(losses) / float64(len(losses))
		if math.Abs(mean-c.loss) > 2e-3 || same.Name(x) != c.says {
			t.Errorf("%s: %s with a loss of %v, want %s with %v", name, same.Name(x), mean, c.says, c.loss)
		}
	}
	nobody := task.NewConstant(mustOf(t, "classes", 3))
	nobody.Add(target.Target{Classes: []int{target.Unknown}})
	if got := nobody.Outcome(mustOf(t, "classes", 3)); nobody.Known() != 0 || math.Abs(got[0]-1./3) > 1e-15 {
		t.Errorf("without targets it says %v", got)
	}
}

func mustOf(t *testing.T, name string, count int) task.Task {
	t.Helper()
	x, err := task.New(name, task.OutputSpec{Count: count})
	if err != nil {
		t.Fatal(err)
	}
	return x
}
