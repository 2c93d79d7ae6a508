package task_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/task"
)

// settlings are a task of each kind, with scores of a member for one of three examples.
func settlings(t *testing.T) map[string]struct {
	task.Settling
	scores func(r *rand.Rand, example int) []float32
} {
	t.Helper()
	type kind = struct {
		task.Settling
		scores func(r *rand.Rand, example int) []float32
	}
	make := func(name string, s task.OutputSpec) task.Settling {
		x, err := task.New(name, s)
		if err != nil {
			t.Fatal(err)
		}
		return x.(task.Settling)
	}
	near := func(centres ...float64) func(r *rand.Rand, example int) []float32 {
		return func(r *rand.Rand, example int) (out []float32) {
			for k, c := range centres {
				out = append(out, float32(c+0.3*float64(example*(k%2))+0.15*r.NormFloat64()))
			}
			return out
		}
	}
	return map[string]kind{
		"classes":    {make("classes", task.OutputSpec{Count: 4}), near(1, 0, -1, -0.5)},
		"binary":     {make("binary", task.OutputSpec{Count: 1}), near(0.4)},
		"labels":     {make("labels", task.OutputSpec{Count: 3}), near(0.5, -1, 0.2)},
		"regression": {make("regression", task.OutputSpec{Count: 4, Regression: &task.RegressionSpec{Head: regression.ByLogVariance}}), near(1, 2, 0.1, -0.5)},
	}
}

// averageOf averages members of an example.
func averageOf(t *testing.T, x task.Task, scores [][]float32) (task.Average, [][]float64) {
	t.Helper()
	var all [][]float64
	a := task.Average{Outcome: make([]float64, x.About().Width)}
	for _, s := range scores {
		outcome := make([]float64, x.About().Width)
		h, err := x.Outcome(outcome, s)
		if err != nil {
			t.Fatal(err)
		}
		for c, v := range outcome {
			a.Outcome[c] += v / float64(len(scores))
		}
		a.Entropy += h / float64(len(scores))
		all = append(all, outcome)
	}
	return a, all
}

// TestUnsettled compares the expected divergence of an average over 8 of 400 members with the mean of the exact
// divergence over 4,000 draws. Both differ by the higher orders of the delta method and by chance: 5 %.
func TestUnsettled(t *testing.T) {
	for name, x := range settlings(t) {
		r := rand.New(rand.NewPCG(3, 4))
		const ran, all, draws = 8, 400, 4000
		var expected, exact []float64
		for range draws {
			var scores [][]float32
			for range ran {
				scores = append(scores, x.scores(r, 0))
			}
			few, outcomes := averageOf(t, x, scores)
			variance := make([]float64, len(few.Outcome))
			for c := range variance {
				var values []float64
				for _, o := range outcomes {
					values = append(values, o[c])
				}
				variance[c] = stat.Variance(values, nil) / ran
			}
			nats, _ := x.Unsettled(few.Outcome, variance, 0)
			expected = append(expected, nats)
		}
		var scores [][]float32
		for range all * 50 {
			scores = append(scores, x.scores(r, 0))
		}
		whole, outcomes := averageOf(t, x, scores)
		for range draws {
			few := make([]float64, len(whole.Outcome))
			for range ran {
				for c, v := range outcomes[r.IntN(len(outcomes))] {
					few[c] += v / ran
				}
			}
			exact = append(exact, divergence(name, whole.Outcome, few))
			if got := task.Increase(x.Settling, whole.Outcome, few); math.Abs(got-exact[len(exact)-1]) > 1e-12 {
				t.Fatalf("%s: increase %v, want %v", name, got, exact[len(exact)-1])
			}
		}
		if a, b := stat.Mean(expected, nil), stat.Mean(exact, nil); math.Abs(a/b-1) > 0.05 {
			t.Errorf("%s: expected divergence %.3g, in fact %.3g", name, a, b)
		}
	}
}

// divergence is KL(p‖q), for each label or target.
func divergence(name string, p, q []float64) (sum float64) {
	switch name {
	case "regression":
		for k := 0; k < len(p); k += 3 {
			m, n := regression.MomentsOf(p[k], p[k+1], p[k+2]), regression.MomentsOf(q[k], q[k+1], q[k+2])
			v, w, d := m.Variance(), n.Variance(), m.Mean-n.Mean
			sum += (v/w - 1 - math.Log(v/w) + d*d/w) / 2 / float64(len(p)/3)
		}
		return sum
	case "labels":
		n := len(p) / 3
		for k := range n {
			sum += (p[k]*math.Log(p[k]/q[k]) + p[n+k]*math.Log(p[n+k]/q[n+k])) / float64(n)
		}
		return sum
	}
	for c := range p {
		sum += p[c] * math.Log(p[c]/q[c])
	}
	return sum
}

// TestDecisionDistance gives distances in standard errors that are computed by hand.
func TestDecisionDistance(t *testing.T) {
	all := settlings(t)
	for _, c := range []struct {
		task              string
		average, variance []float64
		threshold, want   float64
	}{
		{"classes", []float64{0.2, 0.5, 0.3, 0}, []float64{1, 0.0004, 0.0009, 0}, 0, 0.2 / (0.02 + 0.03)},
		{"classes", []float64{0.5, 0.5, 0, 0}, []float64{0, 0, 0, 0}, 0, 0},
		{"classes", []float64{1, 0, 0, 0}, []float64{0, 0, 0, 0}, 0, math.Inf(1)},
		{"binary", []float64{0.4, 0.6}, []float64{0.0004, 0.0004}, 0, 5},
		{"binary", []float64{0.4, 0.6}, []float64{0.0004, 0.0004}, 0.7, 5},
		{"labels", []float64{0.9, 0.1, 0.6, 0.1, 0.9, 0.4, 0, 0, 0}, []float64{0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0, 0, 0}, 0, 1},
		{"regression", []float64{0, 0, 1, 0, 0, 1}, []float64{1, 1, 1, 1, 1, 1}, 0, math.Inf(1)},
	} {
		if _, got := all[c.task].Unsettled(c.average, c.variance, c.threshold); math.Abs(got-c.want) > 1e-9 && got != c.want {
			t.Errorf("%s, threshold %v: %v standard errors, want %v", c.task, c.threshold, got, c.want)
		}
	}
}

// TestStages: averages over 5 of 30 members, of examples of different certainty, come nearer to those over all. The
// mean disagreement becomes that of all, and the parts of the uncertainty still add up.
func TestStages(t *testing.T) {
	for name, x := range settlings(t) {
		r := rand.New(rand.NewPCG(5, 6))
		var few, all []task.Average
		for i := range 600 {
			var scores [][]float32
			for range 30 {
				one := x.scores(r, i%3)
				if name != "regression" {
					for c := range one {
						one[c] += float32(r.NormFloat64()) // members differ more than in the other tests
					}
				}
				scores = append(scores, one)
			}
			a, _ := averageOf(t, x, scores[:5])
			b, _ := averageOf(t, x, scores)
			few, all = append(few, a), append(all, b)
		}
		stage := x.Match(few, all)
		if name != "regression" && !(stage.Temperature > 1) {
			t.Errorf("%s: temperature %v, want more than 1: few members are too certain", name, stage.Temperature)
		}
		before, after, want, got := 0.0, 0.0, 0.0, 0.0
		for i := range few {
			before += divergence(name, all[i].Outcome, few[i].Outcome)
			a := task.Average{Outcome: slices.Clone(few[i].Outcome), Entropy: few[i].Entropy}
			x.Complete(&a, stage)
			after += divergence(name, all[i].Outcome, a.Outcome)
			want += disagreement(t, x, all[i])
			got += disagreement(t, x, a)
		}
		if !(after < before) {
			t.Errorf("%s: divergence from all members %.4g, and %.4g without the correction", name, after, before)
		}
		if math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s: disagreement %.4g, want %.4g", name, got, want)
		}
	}
	x := settlings(t)["classes"]
	same := task.Average{Outcome: []float64{0.1, 0.2, 0.3, 0.4}, Entropy: 1}
	x.Complete(&same, task.NoStage)
	if !slices.EqualFunc(same.Outcome, []float64{0.1, 0.2, 0.3, 0.4}, func(a, b float64) bool { return math.Abs(a-b) < 1e-15 }) || math.Abs(same.Entropy-1) > 1e-12 {
		t.Errorf("NoStage changes an average to %v", same)
	}
}

// disagreement is the mutual information or the epistemic part of the variance, summed over labels or targets.
func disagreement(t *testing.T, x task.Task, a task.Average) float64 {
	t.Helper()
	switch x.About().Name {
	case "regression":
		sum := 0.0
		for k := 0; k < len(a.Outcome); k += 3 {
			m := regression.MomentsOf(a.Outcome[k], a.Outcome[k+1], a.Outcome[k+2])
			sum += m.Epistemic / m.Variance()
		}
		return sum
	case "labels":
		n := len(a.Outcome) / 3
		sum := 0.0
		for k := range n {
			sum += calibrate.Entropy([]float64{a.Outcome[k], a.Outcome[n+k]}) - a.Outcome[2*n+k]
		}
		if total := floats.Sum(a.Outcome[2*n:]); math.Abs(total-a.Entropy) > 1e-9 {
			t.Errorf("entropies of labels add up to %v, want %v", total, a.Entropy)
		}
		return sum
	}
	return calibrate.Entropy(a.Outcome) - a.Entropy
}
