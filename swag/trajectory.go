package swag

import "sort"

// maxTrajectory is the number of weights that a posterior keeps of every model.
// Their inner products have a relative error of about a per cent, which is what
// the health of a trajectory needs, in a megabyte for 20 models.
const maxTrajectory = 1 << 14

// frozenVariance is the variance at and below which a weight counts as one that
// never moved: the floor of the reference's code.
const frozenVariance = 1e-30

// trajectoryLen is the number of weights of d that are kept.
func trajectoryLen(d int64) int64 { return min(d, maxTrajectory) }

// trajectoryIndex is the index in the vector of the j-th of them: they are
// spread evenly.
func trajectoryIndex(d int64, j int) int64 {
	m := trajectoryLen(d)
	return d/m*int64(j) + d%m*int64(j)/m
}

// trajectoryRange returns those whose index is in [from, to).
func trajectoryRange(d, from, to int64) (first, last int) {
	m := int(trajectoryLen(d))
	at := func(i int64) int {
		return sort.Search(m, func(j int) bool { return trajectoryIndex(d, j) >= i })
	}
	return at(from), at(to)
}

// health reads a posterior's trajectory.
func health(o Options, d int64, trajectory [][]float32, mixing [][]float64, frozen, subUlp int64) Health {
	t := Trajectory{Weights: d, Divisor: o.Divisor, Frozen: frozen, SubUlp: subUlp, Iterates: trajectory}
	if len(trajectory) > 0 && o.Columns > 0 {
		n := len(trajectory[0])
		mean, variance := make([]float64, n), make([]float64, n)
		t.Deviations = rows[float32](o.Columns, n)
		switch {
		case o.Compat == compatReference:
			reference(trajectory, mean, variance, t.Deviations)
		case o.Deviations == Final:
			running(trajectory, 0, mean, variance, nil)
			mixedDeviations(trajectory, mixing, mean, t.Deviations)
		default:
			running(trajectory, 0, mean, variance, t.Deviations)
		}
	}
	if o.Theta0 {
		t.Iterates = trajectory[1:]
	}
	return NewHealth(t)
}
