package swag

import (
	"sort"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
)

// A Trajectory is the input of [FitOptions.Health]: the iterates at some weights, spread evenly over the vector.
type Trajectory struct {
	Weights    int64       // d, of the whole vector
	Iterates   [][]float32 // T rows, in training order; finite
	Mean       []float32   // the given mean at the same weights, or nil
	Deviations [][]float32 // the columns of D at the same weights, as rows; empty with the diagonal alone
	Divisor    int         // Σ_lr = DDᵀ/Divisor
	Frozen     int64       // weights that never moved: variance at most 1e-30, the reference's lower bound
	SubUlp     int64       // moved, but with a standard deviation below half an ulp of the mean as float32
}

// maxTrajectory is the number of weights that a posterior keeps of every model. Their inner products have a relative
// error of about one per cent, which is enough for the health of a trajectory. They take a megabyte for 20 models.
const maxTrajectory = 1 << 14

// frozenVariance is the largest variance at which a weight counts as one that never moved. It is the lower bound of the
// reference's code.
const frozenVariance = 1e-30

// trajectoryLen returns the number of weights of d that are kept.
func trajectoryLen(d int64) int64 { return min(d, maxTrajectory) }

// trajectoryIndex returns the index in the vector of the j-th kept weight. Kept weights are spread evenly.
func trajectoryIndex(d int64, j int) int64 {
	m := trajectoryLen(d)
	return d/m*int64(j) + d%m*int64(j)/m
}

// trajectoryRange returns the range of kept weights whose index is in [from, to).
func trajectoryRange(d, from, to int64) (first, last int) {
	m := int(trajectoryLen(d))
	at := func(i int64) int {
		return sort.Search(m, func(j int) bool { return trajectoryIndex(d, j) >= i })
	}
	return at(from), at(to)
}

// sampled returns the trajectory of all models seen.
func (f *fitter) sampled() Trajectory {
	o, theta := f.options, f.trajectory
	t := Trajectory{Weights: f.d, Divisor: o.Divisor, Frozen: f.frozen, SubUlp: f.subUlp, Iterates: theta, Mean: f.centre}
	if len(theta) > 0 && o.Columns > 0 {
		n := len(theta[0])
		mean, variance := make([]float64, n), make([]float64, n)
		t.Deviations = dense.Rows[float32](o.Columns, n)
		switch {
		case o.Compat == compatReference:
			reference(theta, mean, variance, t.Deviations)
		case o.Deviations == Given:
			about(theta, f.centre, mean, variance, t.Deviations)
		case o.Deviations == Final:
			running(theta, 0, 0, mean, variance, nil)
			mixedDeviations(theta, f.mixing, mean, t.Deviations)
		default:
			running(theta, 0, o.Power, mean, variance, t.Deviations)
		}
	}
	if o.Theta0 {
		t.Iterates = theta[1:]
	}
	return t
}
