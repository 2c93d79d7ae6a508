package compare

import (
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// pick returns the examples with these numbers.
func (s *seen) pick(rows []int) *seen {
	out := &seen{}
	for _, i := range rows {
		out.target, out.classes = append(out.target, s.target[i]), append(out.classes, s.classes[i])
		for k := range s.noise {
			out.noise[k] = append(out.noise[k], s.noise[k][i])
		}
	}
	return out
}

// Validation and test data of one kind, which permutations make of one pool, are called perhaps of another kind in at most 0.5 %.
// Networks of temperature 1 are the hardest: a fit can only make them worse. Wrong labels in the validation data are found all
// the same.
func TestUnlike(t *testing.T) {
	permutations := reliability.Figure(60, 2500)
	for _, w := range []world{
		{name: "calibrated", sgd: quality{1, 0, 0}, swa: quality{1, 0, 0}, swag: quality{1, 0, 0}, spread: 2.5, tests: 1000, validates: 500},
		{name: "few labels", sgd: quality{1, 0, 0}, swa: quality{1, 0, 0}, swag: quality{1, 0, 0}, spread: 2.5, tests: 600, validates: 100},
		{name: "too sure", sgd: quality{1.6, 0, 1.2}, swa: quality{1.6, 0, 1.2}, swag: quality{1.6, 0, 1.2}, shared: 0.9, spread: 2.5, tests: 1000, validates: 500},
	} {
		rng, alarms := rand.New(rand.NewPCG(5, 0)), 0
		pool := w.see(rng, w.tests+w.validates)
		for k := range permutations {
			if k%50 == 0 {
				pool = w.see(rng, w.tests+w.validates)
			}
			order := rng.Perm(pool.Len())
			if w.plain(t, pool.pick(order[:w.tests]), pool.pick(order[w.tests:])) {
				alarms++
			}
		}
		t.Logf("%s: %d alarms in %d permutations", w.name, alarms, permutations)
		if float64(alarms) > 0.005*float64(permutations) {
			t.Errorf("%s: %d alarms in %d permutations", w.name, alarms, permutations)
		}
		if w.sgd.slope == 1 && !w.plain(t, w.see(rng, w.tests), w.see(rng, w.validates).mislabelled(rng)) {
			t.Errorf("%s: wrong labels in validation data are not found", w.name)
		}
	}
}

// mislabelled gives a fifth of the examples the other class.
func (s *seen) mislabelled(rng *rand.Rand) *seen {
	for i := range s.classes {
		if rng.IntN(5) == 0 {
			s.classes[i] = 1 - s.classes[i]
		}
	}
	return s
}

// plain reports whether a comparison doubts the validation data.
func (w world) plain(t *testing.T, test, val *seen) bool {
	t.Helper()
	r, _ := w.compared(t, test, val, &seen{}, 1, false)
	r.compare()
	r.adjust()
	return r.betterPlain(r.base()) != nil
}
