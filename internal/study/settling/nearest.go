package settling

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/task"
)

// units are the outcomes of the members of an ensemble that are drawn together, averaged: one member, or an antithetic pair. They
// are mixed so that the mean divergence of the mixture from the average over all members is small. It is a convex function of the
// weights for classes and labels.
//
// Members differ in quality. One that is far from the others moves the average of nearly every example by a little. If it comes
// late, or counts as much as the others, averages over few members are far from those over all.
type units struct {
	task     task.Settling
	ensemble *ensemble.Ensemble
	width    int
	all      []float64   // the average over all members, n×width
	outcomes [][]float64 // of each unit, n×width
	scratch  []float64
}

// A mixture is a weighted average of units.
type mixture struct {
	of         *units
	weights    []float64 // of each unit; the sum is 1
	outcomes   []float64 // n×width
	divergence float64
}

// mostMixed bounds the numbers of a unit's outcomes that decide on its weight, and leastMixed the examples. Of more examples, some
// are left out.
const mostMixed, leastMixed = 1 << 15, 1000

// units returns the units of some examples.
func (x *seen) units(rows []int) *units {
	width, unit, weights := x.task.About().Width, x.ensemble.Unit(), x.ensemble.Weights()
	every := 1 + (len(rows)-1)/max(mostMixed/width, leastMixed)
	u := &units{task: x.task, ensemble: x.ensemble, width: width, outcomes: make([][]float64, len(weights)/unit)}
	for at := 0; at < len(rows); at += every {
		members, all := x.outcomesOf(rows[at]), make([]float64, width)
		for k, w := range weights {
			floats.AddScaled(all, w, members[k])
		}
		for k := range u.outcomes {
			own := weights[k*unit:][:unit]
			for c := range width {
				mean := 0.0
				for j, w := range own {
					mean += w * members[k*unit+j][c]
				}
				// A small part of all keeps the divergence finite where members exclude a class.
				u.outcomes[k] = append(u.outcomes[k], mean/floats.Sum(own)*(1-1e-6)+all[c]*1e-6)
			}
		}
		u.all = append(u.all, all...)
	}
	u.scratch = make([]float64, len(u.all))
	return u
}

// divergence returns the mean divergence of outcomes from those of all members.
func (u *units) divergence(outcomes []float64) (mean float64) {
	for at := 0; at < len(outcomes); at += u.width {
		mean += task.Increase(u.task, u.all[at:][:u.width], outcomes[at:][:u.width])
	}
	return mean * float64(u.width) / float64(len(outcomes))
}

// try returns the divergence of (1−by)·mixture + by·unit.
func (m *mixture) try(unit int, by float64) float64 {
	for i, v := range m.of.outcomes[unit] {
		m.of.scratch[i] = m.outcomes[i] + by*(v-m.outcomes[i])
	}
	return m.of.divergence(m.of.scratch)
}

// move sets the mixture to (1−by)·mixture + by·unit.
func (m *mixture) move(unit int, by, divergence float64) {
	for i, v := range m.of.outcomes[unit] {
		m.outcomes[i] += by * (v - m.outcomes[i])
	}
	floats.Scale(1-by, m.weights)
	m.weights[unit] = max(0, m.weights[unit]+by)
	m.divergence = divergence
}

// improve moves the mixture towards a unit or away from it, to the minimum of a parabola through three points.
func (m *mixture) improve(unit int) {
	least, step := -m.weights[unit]/(1-m.weights[unit]), 0.02
	if m.weights[unit] == 1 {
		return
	}
	a, b := step, max(least, -step)
	if b > -step/2 {
		b = 2 * step
	}
	da, db := (m.try(unit, a)-m.divergence)/a, (m.try(unit, b)-m.divergence)/b
	curvature := (da - db) / (a - b) // the divergence is that of now + slope·by + curvature·by²
	slope := da - curvature*a
	by := math.Copysign(0.3, -slope)
	if curvature > 0 {
		by = min(max(-slope/(2*curvature), -0.3), 0.3)
	}
	by = max(by, least)
	if d := m.try(unit, by); d < m.divergence {
		m.move(unit, by, d)
	}
}

func (u *units) mixture(unit int) *mixture {
	m := &mixture{of: u, weights: make([]float64, len(u.outcomes)), outcomes: slices.Clone(u.outcomes[unit])}
	m.weights[unit], m.divergence = 1, u.divergence(m.outcomes)
	return m
}

// add adds a unit with a share of the weight, and adapts all weights.
func (m *mixture) add(unit int, share float64, order []int) {
	m.move(unit, share, m.try(unit, share))
	for _, k := range order {
		m.improve(k)
	}
}

// order orders the units. The next is always the one that lowers the divergence most, with a weight of one of the chosen ones, or
// a half or a quarter of that. The weights of all chosen ones then adapt. This is the algorithm of Frank and Wolfe (1956).
func (u *units) order() (order []int) {
	first := 0
	for k := range u.outcomes {
		if u.divergence(u.outcomes[k]) < u.divergence(u.outcomes[first]) {
			first = k
		}
	}
	m := u.mixture(first)
	for order = []int{first}; len(order) < len(u.outcomes); {
		best, by, least := -1, 0.0, math.Inf(1)
		for k := range u.outcomes {
			if slices.Contains(order, k) {
				continue
			}
			for _, share := range []float64{1, 0.5, 0.25} {
				share /= float64(len(order) + 1)
				if d := m.try(k, share); best < 0 || d < least {
					best, by, least = k, share, d
				}
			}
		}
		order = append(order, best)
		m.add(best, by, order)
	}
	return order
}

func (u *units) members(order []int) (members []int) {
	unit := u.ensemble.Unit()
	for _, k := range order {
		for j := range unit {
			members = append(members, k*unit+j)
		}
	}
	for k := len(members); k < u.ensemble.Members(); k++ {
		members = append(members, k) // it has no partner
	}
	return members
}

// weights returns the best weights of the first members in an order, for each check.
func (u *units) weights(order, checks []int) (weights [][]float64) {
	unit, own := u.ensemble.Unit(), u.ensemble.Weights()
	of := []int{order[0] / unit}
	m := u.mixture(of[0])
	for _, check := range checks {
		for at := len(of) * unit; at < check; at += unit {
			of = append(of, order[at]/unit)
			m.add(order[at]/unit, 1/float64(len(of)), of)
		}
		for _, k := range of {
			m.improve(k)
		}
		var list []float64
		for _, k := range order[:check] {
			list = append(list, m.weights[k/unit]*own[k]/floats.Sum(own[k/unit*unit:][:unit]))
		}
		weights = append(weights, list)
	}
	return weights
}
