package task_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

func denseOf(b testing.TB, classes, side int) (task.Task, []float32, target.Target) {
	x, err := task.New("classes", task.OutputSpec{Output: "y", Count: classes, Axis: 1, Positions: side * side, Sides: [3]int{side, side}})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	scores, labels := make([]float32, classes*side*side), make([]int, side*side)
	for i := range scores {
		scores[i] = float32(3 * r.NormFloat64())
	}
	for i := range labels {
		labels[i] = r.IntN(classes)
	}
	return x, scores, target.Target{Classes: labels, Positions: side * side}
}

func BenchmarkDenseOutcome(b *testing.B) {
	x, scores, _ := denseOf(b, 19, 256)
	sum := make([]float64, x.About().Width)
	for b.Loop() {
		if _, err := task.AddPositions(x, sum, scores, 1, 0, task.Positions(x)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(256*256), "ns/position")
}

func BenchmarkDenseRead(b *testing.B) {
	x, scores, labels := denseOf(b, 19, 256)
	outcome := make([]float64, x.About().Width)
	if _, err := task.AddPositions(x, outcome, scores, 1, 0, task.Positions(x)); err != nil {
		b.Fatal(err)
	}
	var r task.Reading
	for b.Loop() {
		if err := task.Read(x, &r, task.RowOptions{Target: true}, task.Average{Outcome: outcome}, labels); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(256*256), "ns/position")
}

// The softmax of positions equals that of the task of one position.
func TestDenseOutcome(t *testing.T) {
	t.Parallel()
	x, scores, _ := denseOf(t, 19, 32)
	scores[5], scores[7], scores[1024+7] = -1e30, 900, 899 // far below, and far above the others
	sum, one, want := make([]float64, x.About().Width), make([]float32, 19), make([]float64, 19)
	entropies, err := task.AddPositions(x, sum, scores, 2, 0, task.Positions(x))
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for p := range 1024 {
		for c := range one {
			one[c] = scores[c*1024+p]
		}
		entropy, err := task.OnePosition(x).Outcome(want, one)
		if err != nil {
			t.Fatal(err)
		}
		row, h := sum[p*20:][:19], sum[p*20+19]
		for c, v := range row {
			if math.Abs(v-2*want[c]) > 1e-12 || math.Abs(h-2*entropy) > 1e-11 {
				t.Fatalf("position %d: %v, entropy %v, want twice %v, %v", p, row, h, want, entropy)
			}
		}
		total += entropy
	}
	if math.Abs(entropies-total) > 1e-9 {
		t.Errorf("entropies %v, want %v", entropies, total)
	}
	scores[0] = float32(math.NaN())
	if _, err := task.AddPositions(x, sum, scores, 1, 0, task.Positions(x)); err == nil || !strings.Contains(err.Error(), "position (0, 0): the network's output is not finite") {
		t.Errorf("NaN: %v", err)
	}
}

// The evidence of an example is the mean over its positions, in both orders of axes.
func TestDenseEvidence(t *testing.T) {
	t.Parallel()
	first := []float32{1, 2, -1, 0, 3, 0.5} // two positions of three classes, the classes first
	last := []float32{1, -1, 3, 2, 0, 0.5}
	total := (math.Log(math.E+math.Exp(-1)+math.Exp(3)) + math.Log(math.Exp(2)+1+math.Exp(0.5))) / 2
	for axis, scores := range map[int][]float32{1: first, -1: last} {
		x, err := task.New("classes", task.OutputSpec{Output: "y", Count: 3, Axis: axis, Positions: 2, Sides: [3]int{2}})
		if err != nil {
			t.Fatal(err)
		}
		e := x.(task.Evident)
		if sum, most := e.Evidence(scores, 2); !e.Evident() || math.Abs(sum-total) > 1e-12 || most != 2.5 {
			t.Errorf("axis %d: %v and %v, want %v and 2.5", axis, sum, most, total)
		}
		if _, most := e.Evidence(scores, 1); most != 3 {
			t.Errorf("axis %d: the largest logit of the first position is %v", axis, most)
		}
	}
	x, err := task.New("labels", task.OutputSpec{Output: "y", Count: 3, Axis: 1, Positions: 2, Sides: [3]int{2}})
	if err != nil || x.(task.Evident).Evident() {
		t.Errorf("independent labels have evidence, %v", err)
	}
}

// Evaluators that saw parts of the examples give together what one gives that saw all, also if they saw examples of one
// group.
func TestMergedEvaluators(t *testing.T) {
	x, scores, label := denseOf(t, 3, 4)
	r := rand.New(rand.NewPCG(2, 2))
	whole, a, b := task.NewEvaluator(x, task.EvaluateOptions{}), task.NewEvaluator(x, task.EvaluateOptions{}), task.NewEvaluator(x, task.EvaluateOptions{})
	for i := range 12 {
		for k := range scores {
			scores[k] = float32(r.NormFloat64())
		}
		outcome := make([]float64, x.About().Width)
		if _, err := x.Outcome(outcome, scores); err != nil {
			t.Fatal(err)
		}
		for _, e := range []*task.Evaluator{whole, map[bool]*task.Evaluator{true: a, false: b}[i < 7]} {
			if i%4 != 3 { // others are units of their own
				e.Unit(string(rune('A' + i%4)))
			} else {
				e.Unit("")
			}
			if err := e.Add(outcome, label); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.Merge(b)
	got, want := a.Evaluation(), whole.Evaluation()
	for k, l := range want.Losses {
		for i, v := range l.Values {
			if len(got.Losses[k].Values) != 6 || math.Abs(got.Losses[k].Values[i]-v) > 1e-12 {
				t.Fatalf("%s: %v, want %v", l.Key, got.Losses[k].Values, l.Values)
			}
		}
	}
	for _, s := range want.Scores {
		if v := got.Value(s.Key); !(math.Abs(v-s.Value) < 1e-12) && s.Value == s.Value {
			t.Errorf("%s: %v, want %v", s.Key, v, s.Value)
		}
	}
}
