package settling

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

const members = 30

// simulated makes examples of three classes as a run leaves them. Each has logits and a disagreement of its own, and its label
// follows the average over infinitely many members.
func simulated(t *testing.T, n int, spread float64, seed uint64) *seen {
	t.Helper()
	x, err := task.New("classes", task.OutputSpec{Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := &seen{task: x.(task.Settling), ensemble: &ensemble.Ensemble{Components: []ensemble.Component{{Members: members, Weight: 1}}}, seed: 1}
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
		var outcomes []float32
		var entropies []float64
		for range members {
			p, h := draw()
			entropies = append(entropies, h)
			for _, v := range p {
				outcomes = append(outcomes, float32(v))
			}
		}
		s.members, s.entropies = append(s.members, outcomes), append(s.entropies, entropies)
	}
	return s
}

// looked returns x after the look that a run takes.
func looked(x *seen) *seen {
	x.look()
	return x
}

// TestCurve: smaller tolerances let more members run. The correction of early averages lowers the divergence of other examples.
func TestCurve(t *testing.T) {
	r, err := looked(simulated(t, 4000, 1.5, 1)).choose(ensemble.StoppingGuarantee{NLL: 0.002, Decisions: 0.998}, "val")
	if err != nil {
		t.Fatal(err)
	}
	rule := r.Chosen
	if c := rule.Cost; c.Members > 22 || c.Examples != 4000 || !c.Labelled || !(c.Divergence < c.DivergenceMost) || !(c.NLL < c.NLLMost) {
		t.Fatalf("%+v: this tests little", c)
	}
	for i := 1; i < len(r.Curve); i++ {
		if a, b := r.Curve[i-1], r.Curve[i]; a.Tolerance <= b.Tolerance || a.Cost.Members >= b.Cost.Members {
			t.Errorf("after %v nats, %v members: %v nats, %v members", a.Tolerance, a.Cost.Members, b.Tolerance, b.Cost.Members)
		}
	}
	fresh := simulated(t, 8000, 1.5, 2)
	fresh.follow(rule)
	uncorrected := *rule
	uncorrected.Stages = slices.Repeat([]task.Stage{task.NoStage}, len(rule.Stages))
	corrected, plain := fresh.apply(t, rule), fresh.apply(t, &uncorrected)
	if math.Abs(corrected.members-rule.Cost.Members) > 0.5 {
		t.Errorf("%.2f members ran, on validation data %.2f", corrected.members, rule.Cost.Members)
	}
	if !(corrected.divergence < plain.divergence) {
		t.Errorf("divergence %.5f, without the correction %.5f", corrected.divergence, plain.divergence)
	}
}

// TestUnlabelled: labels change what is known of a rule, and not which rule is chosen.
func TestUnlabelled(t *testing.T) {
	x := looked(simulated(t, 500, 1.5, 3))
	wanted := ensemble.StoppingGuarantee{NLL: 0.01, Decisions: 0.9}
	with, err := x.choose(wanted, "val")
	if err != nil {
		t.Fatal(err)
	}
	x.labels, x.before = target.Target{}, nil
	r, err := x.choose(wanted, "val")
	if err != nil || r.Chosen.Cost.Labelled || r.Chosen.Tolerance != with.Chosen.Tolerance || !with.Chosen.Cost.Labelled {
		t.Errorf("%+v, with labels %+v, %v", r.Chosen, with.Chosen, err)
	}
}

// TestKept: a rule behind one that breaks the guarantee is not chosen, although chance makes it look good.
func TestKept(t *testing.T) {
	rule := func(tolerance, most float64, changed int) ensemble.Stopping {
		return ensemble.Stopping{Tolerance: tolerance, Guarantee: ensemble.StoppingGuarantee{NLL: 0.01, Decisions: 0.99}, Cost: ensemble.StoppingCost{Examples: 100, DivergenceMost: most, Changed: changed}}
	}
	for _, c := range []struct {
		curve []ensemble.Stopping
		want  float64
	}{
		{[]ensemble.Stopping{rule(3, 0.008, 0), rule(2, 0.011, 0), rule(1, 0.01, 0)}, 1},
		{[]ensemble.Stopping{rule(3, 0.011, 0), rule(2, 0.008, 1), rule(1, 0.001, -1)}, 2},
		{[]ensemble.Stopping{rule(3, 0.008, 2), rule(2, 0.008, 1)}, 2},
		{[]ensemble.Stopping{rule(3, 0.001, 0), rule(2, math.NaN(), 0)}, 0},
		{[]ensemble.Stopping{rule(2, math.Inf(1), 0)}, 0},
	} {
		got := kept(c.curve)
		if got == nil && c.want != 0 || got != nil && got.Tolerance != c.want {
			t.Errorf("%+v: chosen is %+v, want %v", c.curve, got, c.want)
		}
	}
}

// TestBroken: a guarantee that no rule keeps, and members that no example can skip.
func TestBroken(t *testing.T) {
	if r, err := looked(simulated(t, 300, 1.5, 4)).choose(ensemble.StoppingGuarantee{NLL: -1, Decisions: 1}, "val"); !errors.Is(err, ErrBroken) || r == nil || len(r.Section().Rows) == 0 {
		t.Errorf("error %v", err)
	}
	x := looked(simulated(t, 300, 1.5, 5))
	for k := range x.checks {
		for i := range x.nats[k] {
			x.nats[k][i] = 1
		}
	}
	if _, err := x.choose(Usual, "val"); !errors.Is(err, ErrNone) {
		t.Errorf("error %v", err)
	}
}

// TestOrder: pairs stay together and a member without a partner comes last. Each weight is the best, given the others.
func TestOrder(t *testing.T) {
	x, err := task.New("classes", task.OutputSpec{Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*ensemble.Ensemble{
		{Components: []ensemble.Component{{Members: 9, Weight: 1}}},
		{Components: []ensemble.Component{{Members: 4, Weight: 0.3}, {Members: 6, Weight: 0.7}}},
		{Components: []ensemble.Component{{Members: 11, Weight: 1}}, Sampling: ensemble.Draw{Antithetic: true}},
	} {
		all, unit := e.Members(), e.Unit()
		r := rand.New(rand.NewPCG(7, 8))
		s := &seen{task: x.(task.Settling), ensemble: e}
		for range 200 {
			var outcomes []float32
			for k := range all {
				p, sum := make([]float64, 3), 0.0
				for c := range p {
					p[c] = math.Exp(r.NormFloat64())
					if k == 5 { // a member that is unlike the others
						p[c] = 1
					}
					sum += p[c]
				}
				for _, v := range p {
					outcomes = append(outcomes, float32(v/sum))
				}
			}
			s.members = append(s.members, outcomes)
		}
		s.full = make([]task.Average, len(s.members))
		u, checks := s.units(s.rows()), e.StoppingChecks()
		order := u.members(u.order())
		rule := ensemble.Stopping{Tolerance: 1, Order: order, Checks: checks, Weights: u.weights(order, checks), Stages: make([]task.Stage, len(checks))}
		if sorted := slices.Sorted(slices.Values(order)); len(order) != all || sorted[0] != 0 || sorted[all-1] != all-1 {
			t.Errorf("order %v", order)
		}
		if all%unit > 0 && order[all-1] != all-1 {
			t.Errorf("order %v: the member without a partner is not the last", order)
		}
		for at := range all / unit {
			if first := order[at*unit]; first%unit != 0 || order[at*unit+unit-1] != first+unit-1 {
				t.Errorf("order %v: pairs are apart", order)
			}
		}
		for n, check := range checks {
			if w := rule.Weights[n]; len(w) != check || math.Abs(floats.Sum(w)-1) > 1e-9 || floats.Min(w) < 0 {
				t.Errorf("weights %v", w)
			}
			var of []int
			for at := 0; at < check; at += unit {
				of = append(of, order[at]/unit)
			}
			m := &mixture{of: u, weights: make([]float64, len(u.outcomes)), outcomes: make([]float64, len(u.all))}
			for at, k := range order[:check] {
				m.weights[k/unit] += rule.Weights[n][at]
			}
			for k, w := range m.weights {
				floats.AddScaled(m.outcomes, w, u.outcomes[k])
			}
			m.divergence = u.divergence(m.outcomes)
			for _, k := range of {
				for _, by := range []float64{0.03, -0.03} {
					if m.weights[k]+by*(1-m.weights[k]) < 0 {
						continue
					}
					if d := m.try(k, by); d < m.divergence*0.99 {
						t.Errorf("after %d members: divergence %.6f, with %v more of unit %d %.6f", check, m.divergence, by, k, d)
					}
				}
			}
		}
	}
}
