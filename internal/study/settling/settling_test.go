package settling

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// TestShrunk: exact labels decide alone, useless ones not at all. Equal errors give the middle. Increases above the
// divergence stay.
func TestShrunk(t *testing.T) {
	for _, c := range []struct{ increase, err, divergence, want float64 }{
		{-0.2, 0, 0.1, -0.2}, {-5, 1e9, 0.1, 0.1}, {-0.1, 0.1, 0.1, 0}, {0.3, 9, 0.1, 0.3}, {0, 1, 0, 0}, {0.2, 1, math.Inf(1), 0.2},
	} {
		if got := shrunk(c.increase, c.err, c.divergence); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

const members = 30

// simulated makes examples of three classes. Each has logits and a disagreement of its own, and its label follows the
// average over infinitely many members. seen has them as a run with Observe leaves them.
func simulated(t *testing.T, n int, spread float64, seed uint64) *seen {
	t.Helper()
	x, err := task.Of("classes", task.OutputSpec{Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	e := &ensemble.Ensemble{Components: []ensemble.Component{{Members: members, Weight: 1}}}
	s := &seen{task: x.(task.Settling), ensemble: e, checks: e.StoppingChecks(), seed: 1}
	for range s.checks {
		s.early, s.nats, s.errors = append(s.early, nil), append(s.nats, nil), append(s.errors, nil)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for range n {
		centre := []float64{3 * r.NormFloat64(), 3 * r.NormFloat64(), 0}
		width := spread * r.Float64()
		draw := func() (p []float64, h float64) {
			scores := make([]float32, 3)
			for c := range scores {
				scores[c] = float32(centre[c] + width*r.NormFloat64())
			}
			p = make([]float64, 3)
			h, err := x.Outcome(p, scores)
			if err != nil {
				t.Fatal(err)
			}
			return p, h
		}
		many := make([]float64, 3)
		for range 300 {
			p, _ := draw()
			for c, v := range p {
				many[c] += v / 300
			}
		}
		u, label := r.Float64(), 0
		for u -= many[0]; u > 0 && label < 2; u -= many[label] {
			label++
		}
		s.labels.Classes = append(s.labels.Classes, label)

		sum, squares, entropy := make([]float64, 3), make([]float64, 3), 0.0
		for k := 1; k <= members; k++ {
			p, h := draw()
			mean, variance := make([]float64, 3), make([]float64, 3)
			entropy += h
			for c, v := range p {
				sum[c], squares[c] = sum[c]+v, squares[c]+v*v
				mean[c] = sum[c] / float64(k)
				variance[c] = max(0, squares[c]/float64(k)-mean[c]*mean[c]) / float64(max(k-1, 1)) * (1 - float64(k)/members)
			}
			a := task.Average{Outcome: mean, Entropy: entropy / float64(k)}
			if k == members {
				s.full = append(s.full, a)
			}
			if at, ok := slices.BinarySearch(s.checks, k); ok {
				nats, distance := s.task.Unsettled(mean, variance, 0)
				s.early[at], s.nats[at], s.errors[at] = append(s.early[at], a), append(s.nats[at], nats), append(s.errors[at], distance)
			}
		}
	}
	return s
}

// TestPromise chooses a rule on 4,000 examples, and applies it to 8,000 others. There the promise is kept up to
// chance: the standard error of the increase is about 0.0005.
func TestPromise(t *testing.T) {
	x := simulated(t, 4000, 1.5, 1)
	promise := ensemble.StoppingPromise{NLL: 0.002, Decisions: 0.998}
	r, err := x.choose(promise, "val")
	if err != nil {
		t.Fatal(err)
	}
	rule := r.Chosen
	if rule.Cost.Members > 22 || rule.Cost.Examples != 4000 || !rule.Cost.Labelled {
		t.Fatalf("%+v: this tests little", rule.Cost)
	}
	for i := 1; i < len(r.Curve); i++ {
		if a, b := r.Curve[i-1], r.Curve[i]; a.Tolerance <= b.Tolerance || a.Cost.Members >= b.Cost.Members {
			t.Errorf("after %v nats, %v members: %v nats, %v members", a.Tolerance, a.Cost.Members, b.Tolerance, b.Cost.Members)
		}
	}

	fresh := simulated(t, 8000, 1.5, 2)
	increase, plain, changed, ran := 0.0, 0.0, 0, 0.0
	n := float64(len(fresh.full))
	for i, full := range fresh.full {
		p, uncorrected := full.Outcome, full.Outcome
		stop := members
		for k, check := range rule.Checks {
			if fresh.nats[k][i] <= rule.Tolerance && fresh.errors[k][i] >= rule.Errors {
				a := fresh.early[k][i]
				uncorrected = slices.Clone(a.Outcome)
				fresh.task.Complete(&a, rule.Stages[k])
				p, stop = a.Outcome, check
				break
			}
		}
		label := fresh.labels.Classes[i]
		increase += (math.Log(full.Outcome[label]) - math.Log(p[label])) / n
		plain += (math.Log(full.Outcome[label]) - math.Log(uncorrected[label])) / n
		ran += float64(stop) / n
		if fresh.task.Changed(p, full.Outcome, 0) {
			changed++
		}
	}
	if increase > promise.NLL+0.001 || float64(changed)/n > 1-promise.Decisions+0.001 {
		t.Errorf("the NLL rises by %.5f, and %d of 8,000 decisions change", increase, changed)
	}
	if math.Abs(ran-rule.Cost.Members) > 0.5 {
		t.Errorf("%.2f members ran, on validation data %.2f", ran, rule.Cost.Members)
	}
	if !(increase < plain) {
		t.Errorf("the NLL rises by %.5f, without the correction by %.5f", increase, plain)
	}
}

// TestUnlabelled: without labels the divergence bounds the choice. It is never below 0.
func TestUnlabelled(t *testing.T) {
	x := simulated(t, 500, 1.5, 3)
	x.labels = truth.Truth{}
	r, err := x.choose(ensemble.StoppingPromise{NLL: 0.01, Decisions: 0.9}, "val")
	if err != nil || r.Chosen.Cost.Labelled || !(r.Chosen.Cost.NLL > 0) {
		t.Errorf("%+v, %v", r.Chosen, err)
	}
}

// TestBroken: a promise that no rule keeps, and members that no example can skip.
func TestBroken(t *testing.T) {
	if r, err := simulated(t, 300, 1.5, 4).choose(ensemble.StoppingPromise{NLL: -1, Decisions: 1}, "val"); !errors.Is(err, ErrBroken) || r == nil || r.Table() == nil {
		t.Errorf("error %v", err)
	}
	x := simulated(t, 300, 1.5, 5)
	for k := range x.checks {
		for i := range x.nats[k] {
			x.nats[k][i] = 1
		}
	}
	if _, err := x.choose(Usual, "val"); !errors.Is(err, ErrNone) {
		t.Errorf("error %v", err)
	}
}

// TestHerd compares the order with one that takes the best next members by going through the examples. Pairs stay
// together, and members of a mixture count by their weights.
func TestHerd(t *testing.T) {
	x, err := task.Of("classes", task.OutputSpec{Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*ensemble.Ensemble{
		{Components: []ensemble.Component{{Members: 9, Weight: 1}}},
		{Components: []ensemble.Component{{Members: 4, Weight: 0.3}, {Members: 6, Weight: 0.7}}},
		{Components: []ensemble.Component{{Members: 8, Weight: 1}}, Sampling: ensemble.Draw{Antithetic: true}},
	} {
		all, unit, weights := e.Members(), e.Unit(), e.Weights()
		r := rand.New(rand.NewPCG(7, 8))
		s := &seen{task: x.(task.Settling), ensemble: e}
		for range 20 {
			var outcomes []float32
			for range 3 * all {
				outcomes = append(outcomes, r.Float32())
			}
			s.members = append(s.members, outcomes)
		}
		distance := func(members []int) (sum float64) {
			for _, outcomes := range s.members {
				for c := range 3 {
					mean, whole, weight := 0.0, 0.0, 0.0
					for k := range all {
						whole += weights[k] * float64(outcomes[3*k+c])
					}
					for _, k := range members {
						mean, weight = mean+weights[k]*float64(outcomes[3*k+c]), weight+weights[k]
					}
					sum += (mean/weight - whole) * (mean/weight - whole)
				}
			}
			return sum
		}
		var want []int
		for len(want) < all {
			var best []int
			for k := 0; k < all; k += unit {
				next := slices.Clone(want)
				for a := k; a < k+unit; a++ {
					next = append(next, a)
				}
				if !slices.Contains(want, k) && (best == nil || distance(next) < distance(best)) {
					best = next
				}
			}
			want = best
		}
		if got := s.herd(); !slices.Equal(got, want) {
			t.Errorf("order %v, want %v", got, want)
		}
	}
}
