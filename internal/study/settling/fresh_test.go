package settling

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

func TestMain(m *testing.M) { infertest.Main(m) }

// digits returns what the members of an ensemble say of the validation images of MNIST.
func digits(t *testing.T) *seen {
	t.Helper()
	n := infertest.Network(t, infertest.Posterior(t))
	run := infertest.Run(t)
	e := &ensemble.Ensemble{
		Path:       "e.safetensors",
		Components: []ensemble.Component{{Posterior: ensemble.Reference{ID: n.Posterior.ID}, Members: members, Weight: 1}},
		Sampling:   ensemble.Draw{Seed: 1, Scale: 0.5, Covariance: swag.LowRankPlusDiagonal.String()},
	}
	err := e.EachMember(t.Context(), nil, []*infer.Network{n}, 0, func(m ensemble.Member) error {
		fresh, err := batchnorm.Recompute(t.Context(), run, m.Network, m.Parameters, infertest.Training(t))
		e.Components[0].Statistics = append(e.Components[0].Statistics, fresh.Statistics)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	x, err := (&Study{Scoring: ensemble.Scoring{Ensemble: e, Networks: []*infer.Network{n}, Data: infertest.Digits(t, "val.npz")}, Seed: 1}).see(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// some returns a seen of the given examples, before look.
func (x *seen) some(rows []int) *seen {
	out := &seen{task: x.task, ensemble: x.ensemble, seed: x.seed, threshold: x.threshold}
	for _, i := range rows {
		out.members, out.entropies = append(out.members, x.members[i]), append(out.entropies, x.entropies[i])
	}
	out.labels = x.labels.Pick(rows)
	return out
}

// applied is what a rule does to examples on which it was not chosen.
type applied struct{ members, divergence, labels, changed float64 }

// follow runs the members over the examples of x as a rule says.
func (x *seen) follow(rule *ensemble.Stopping) *seen {
	x.order, x.checks, x.full = rule.Order, rule.Checks, make([]task.Average, len(x.members))
	x.make()
	x.run(rule.Weights, x.rows())
	return x
}

// apply stops the examples of x, which followed a rule, as the rule says.
func (x *seen) apply(t *testing.T, rule *ensemble.Stopping) (a applied) {
	t.Helper()
	n, width := len(x.full), x.task.About().Width
	followed := x.outcomes(x.rows(), func(i int) []float64 {
		for k, check := range rule.Checks {
			if rule.Settled(k, x.spread[k][i], x.doubt[k][i], x.errors[k][i]) {
				a.members += float64(check) / float64(n)
				return x.completed(i, k, rule.Stages[k])
			}
		}
		a.members += float64(len(rule.Order)) / float64(n)
		return x.full[i].Outcome
	})
	all := x.outcomes(x.rows(), func(i int) []float64 { return x.full[i].Outcome })
	for i := range n {
		a.divergence += task.Increase(x.task, all[i*width:][:width], followed[i*width:][:width]) / float64(n)
		if x.task.Changed(all[i*width:][:width], followed[i*width:][:width], x.threshold) {
			a.changed += 1 / float64(n)
		}
	}
	before, err := x.losses(all)
	if err != nil {
		t.Fatal(err)
	}
	after, err := x.losses(followed)
	if err != nil {
		t.Fatal(err)
	}
	a.labels = stat.Mean(floats.SubTo(after, after, before), nil)
	return a
}

// TestFresh chooses rules on random halves of examples, and follows them on the other halves. The bound of the divergence holds
// with 95 % for the mean over all future examples. The mean over the other half has its own chance, which makes 12 % of the
// halvings for normal errors of two equal halves. Of the simulated examples the other part is four times as large.
func TestFresh(t *testing.T) {
	mnist := digits(t)
	for _, c := range []struct {
		name      string
		of        *seen
		guarantee ensemble.StoppingGuarantee
		part      int // the examples of the choice
		share     float64
	}{
		{"MNIST", mnist, Usual, 1000, 0.12},
		{"MNIST", mnist, ensemble.StoppingGuarantee{NLL: 0.002, Decisions: 0.995}, 1000, 0.12},
		{"simulated", simulated(t, reliability.Figure(1500, 7500), 1.5, 1), ensemble.StoppingGuarantee{NLL: 0.002, Decisions: 0.998}, reliability.Figure(500, 1500), 0.07},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		halvings := reliability.Figure(3, 300)
		beyond, labels, refused, ran, worst := 0, 0, 0, 0.0, 0.0
		for range halvings {
			order := r.Perm(len(c.of.members))
			val, test := looked(c.of.some(order[:c.part])), c.of.some(order[c.part:])
			result, err := val.choose(c.guarantee, "val")
			if errors.Is(err, ErrBroken) || errors.Is(err, ErrNone) { // all members run
				refused, ran = refused+1, ran+members
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			a := test.follow(result.Chosen).apply(t, result.Chosen)
			if a.divergence > c.guarantee.NLL {
				beyond++
			}
			if a.labels > c.guarantee.NLL {
				labels++
			}
			ran, worst = ran+a.members, max(worst, a.divergence)
			if a.changed > 1-c.guarantee.Decisions+0.003 {
				t.Errorf("%s: %.4f of the decisions changed", c.name, a.changed)
			}
		}
		t.Logf("%s, %v nats: %.1f members in the mean of %d halvings, %d refused; the divergence is above in %d, at most %.5f; the NLL of labels in %d", c.name, c.guarantee.NLL,
			ran/float64(halvings), halvings, refused, beyond, worst, labels)
		n, p := float64(halvings), c.share
		if most := n*p + 3*math.Sqrt(n*p*(1-p)) + 0.5; float64(beyond) > most {
			t.Errorf("%s: above the guarantee in %d of %d halvings, want at most %.0f", c.name, beyond, halvings, most)
		}
		if worst > 3*c.guarantee.NLL || refused == halvings {
			t.Errorf("%s: divergence %.5f, %d refused", c.name, worst, refused)
		}
	}
}
