package trajectory

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/internal/dense"
)

// Health says whether a trajectory is one that SWAG can describe: iterates that
// move, around one centre, often enough. All sums run over the weights together,
// so that one number stands for all of them: γ_k below is the sum over the
// weights of their autocovariances at lag k, and ‖·‖ is the Euclidean norm.
//
// Everything but the frozen weights and the spectrum comes from the T(T−1)/2
// squared distances between iterates.
type Health struct {
	Checkpoints int `json:"checkpoints"` // T

	// Effective is n_eff, the number of independent iterates whose mean would be
	// known as well as θ_SWA, from 1 to T: γ_0 over the variance of θ_SWA. It is
	// T for independent iterates and about 2 for a random walk or a straight
	// line, however long, since they have no centre.
	Effective float64 `json:"effective"`
	// Drift is the share of the scatter that lies between the two halves of the
	// trajectory: T/4·‖m₂−m₁‖² over Σ‖θ_t−θ_SWA‖², where m₁ and m₂ are the means
	// of the halves; an iterate in the middle is left out. n independent iterates
	// give 1/(n−1), a random walk ½ and a straight line ¾. It is 0 below four
	// iterates, where there is nothing to compare.
	Drift float64 `json:"drift"`
	// Start is the first checkpoint after the approach to the place where the
	// others vary, or 0: see start.
	Start int `json:"start"`

	// Spread is the root mean square of the weights' standard deviations over
	// that of the weights: how far members are from θ_SWA, relative to it.
	Spread float64 `json:"spread"`
	// Step is the median of ‖θ_t+1−θ_t‖ over the root mean square of ‖θ_t‖.
	Step float64 `json:"step"`
	// Slowing is the median step of the last quarter over that of the first; it
	// is 1 below eight iterates.
	Slowing float64 `json:"slowing"`
	Frozen  float64 `json:"frozen"`  // share of the weights, see [swag.Trajectory]
	SubUlp  float64 `json:"sub_ulp"` // share of the weights, see [swag.Trajectory]

	// Outliers are the checkpoints that stand apart from the others: see strays.
	Outliers []int `json:"outliers,omitempty"`
	// Order is a likelier training order of the checkpoints without the outliers,
	// or its reverse; empty if there is none. Misplaced are the fewest checkpoints
	// that would have to move. See reorder.
	Order     []int `json:"order,omitempty"`
	Misplaced []int `json:"misplaced,omitempty"`

	// Spectrum is the low-rank part's: eigenvalues of DDᵀ/Divisor, largest first,
	// as shares of their sum. A random walk of many steps has shares 6/(π²k²), a
	// straight line a single one.
	Spectrum []float64 `json:"spectrum,omitempty"`
	// Dimensions is their participation ratio, (Σλ)²/Σλ²: the number of equal
	// eigenvalues that would be as concentrated.
	Dimensions float64 `json:"dimensions"`
	// LowRank is the trace of DDᵀ/Divisor over that of Σ_diag. It is about 1 if
	// the deviations describe the variance; less with too few iterates, since the
	// first deviations from a running mean are near zero.
	LowRank float64 `json:"low_rank"`
}

// Describe is [NewHealth] for [swag.FitOptions.Health].
func Describe(t swag.Trajectory) any { return NewHealth(t) }

// Of returns what a posterior's file says of its trajectory.
func Of(p *swag.Posterior) (h Health, err error) {
	if err = json.Unmarshal(p.Health, &h); err != nil {
		err = fmt.Errorf("%s: health of the trajectory: %w", p.Path, err)
	}
	return h, err
}

// NewHealth reads a trajectory. It depends on nothing else. What is not defined
// for so few iterates, or for iterates that are all the same, is 0.
func NewHealth(t swag.Trajectory) Health {
	h := Health{Checkpoints: len(t.Iterates), Effective: float64(len(t.Iterates)), Slowing: 1}
	if t.Weights > 0 {
		h.Frozen, h.SubUlp = float64(t.Frozen)/float64(t.Weights), float64(t.SubUlp)/float64(t.Weights)
	}
	if len(t.Iterates) < 2 {
		return h
	}
	centred, mean := centredGram(t.Iterates)
	sq := squaredDistances(centred)
	given := make([]int, len(sq))
	for i := range given {
		given[i] = i
	}
	total := scatter(sq, given)
	if total == 0 {
		return h
	}
	h.Effective = effective(variogram(sq))
	h.Drift = drift(sq)
	h.Start = start(sq)
	h.Outliers, h.Order, h.Misplaced = reorder(sq, given)

	norm := math.Sqrt(total/float64(len(sq)) + floats.Dot(mean, mean)) // root mean square of ‖θ_t‖
	h.Spread = math.Sqrt(total/float64(len(sq))) / norm
	steps := stepLengths(sq, given)
	h.Step = median(steps) / norm
	if quarter := len(steps) / 4; len(sq) >= 8 {
		if first := median(steps[:quarter]); first > 0 {
			h.Slowing = median(steps[len(steps)-quarter:]) / first
		}
	}
	h.spectrum(t, total/float64(len(sq)))
	return h
}

// spectrum sets what is read from the low-rank part; variance is the trace of
// Σ_diag.
func (h *Health) spectrum(t swag.Trajectory, variance float64) {
	if len(t.Deviations) == 0 || t.Divisor < 1 {
		return
	}
	g := mat.NewSymDense(len(t.Deviations), nil)
	dense.AddGram(g, t.Deviations, make([]float64, len(t.Deviations[0])), nil)
	_, values, ok := dense.Principal(g, 0)
	sum := floats.Sum(values)
	if !ok || sum == 0 {
		return
	}
	h.LowRank = sum / float64(t.Divisor) / variance
	floats.Scale(1/sum, values)
	h.Spectrum, h.Dimensions = values, 1/floats.Dot(values, values)
}

// centredGram returns the inner products of the rows' deviations from their
// mean, and the mean, which runs as that of a fit does.
func centredGram(rows [][]float32) (*mat.SymDense, []float64) {
	mean := make([]float64, len(rows[0]))
	for t, row := range rows {
		share := 1 / float64(t+1)
		for i, v := range row {
			mean[i] += float64((float64(v) - mean[i]) * share)
		}
	}
	g := mat.NewSymDense(len(rows), nil)
	dense.AddGram(g, rows, mean, nil)
	return g, mean
}

// squaredDistances turns inner products into ‖θ_i−θ_j‖².
func squaredDistances(g *mat.SymDense) [][]float64 {
	sq := dense.Rows[float64](g.SymmetricDim(), g.SymmetricDim())
	for i := range sq {
		for j := range sq {
			sq[i][j] = max(0, g.At(i, i)+g.At(j, j)-2*g.At(i, j))
		}
	}
	return sq
}

// scatter is Σ‖θ_t−θ̄‖² over some iterates and their mean: the sum of the
// squared distances between them, over their number.
func scatter(sq [][]float64, some []int) float64 {
	var sum float64
	for i, a := range some {
		for _, b := range some[:i] {
			sum += sq[a][b]
		}
	}
	return sum / float64(len(some))
}

// variogram returns half the mean squared distance of iterates k apart, for
// k = 0…T−1: V_k, which is γ_0 − γ_k of a stationary trajectory. No mean is
// subtracted, so that nothing is biased in a short one.
func variogram(sq [][]float64) []float64 {
	v := make([]float64, len(sq))
	for k := range v {
		for i := range len(sq) - k {
			v[k] += sq[i][i+k]
		}
		v[k] /= float64(2 * (len(sq) - k))
	}
	return v
}

// effective is n_eff = T/(1 + 2Σ(1−k/T)ρ_k), with autocorrelations ρ_k = 1 − V_k/γ_0
// up to a window W. The sample's own variance is no estimate of γ_0, since its
// mean follows the iterates; γ_0 is the mean V of the pairs more than W apart,
// which is what makes n_eff unbiased if γ_k = 0 there.
//
// W is where Geyer's initial positive sequence ends ("Practical Markov chain
// Monte Carlo", Statistical Science 1992, section 3.3): lags are taken on in
// pairs, as long as the sum of the pair's autocorrelations is positive. It is at
// most T/2, so that enough pairs are left for γ_0. That limit is what makes n_eff
// 2 of a long random walk, and 1.6 of a long straight line.
func effective(v []float64) float64 {
	n := len(v)
	if n < 3 {
		return float64(n)
	}
	correlation := func(window int) (rho []float64) {
		var sum, pairs float64
		for k := window + 1; k < n; k++ {
			sum += float64(n-k) * v[k]
			pairs += float64(n - k)
		}
		for _, vk := range v[:window+1] {
			rho = append(rho, 1-vk*pairs/sum)
		}
		return rho
	}
	rho := correlation(1)
	for w := 3; w <= n/2; w += 2 {
		next := correlation(w)
		if next[w-1]+next[w] <= 0 {
			break
		}
		rho = next
	}
	time := 1.0 // the integrated autocorrelation time
	for k := 1; k < len(rho); k++ {
		time += 2 * (1 - float64(k)/float64(n)) * rho[k]
	}
	if time < 1 { // iterates that alternate are taken for independent ones
		return float64(n)
	}
	return float64(n) / time
}

// drift is [Health.Drift]. The scatter of the whole is that within the halves
// and that between them.
func drift(sq [][]float64) float64 {
	half := len(sq) / 2
	if half < 2 {
		return 0
	}
	var first, second []int
	for i := range half {
		first, second = append(first, i), append(second, len(sq)-half+i)
	}
	whole := scatter(sq, append(slices.Clone(first), second...))
	if whole == 0 {
		return 0
	}
	return max(0, 1-(scatter(sq, first)+scatter(sq, second))/whole)
}

// start returns the s < T/2 for which the mean of the iterates from s on has the
// least standard error, Σ‖θ_t−θ̄‖²/(T−s)²: White's rule for the end of the warm-up
// of a simulation ("An effective truncation heuristic for bias reduction in
// simulation output", Simulation 1997). It returns 0 unless the squared error is
// halved at least, or if it still falls at T/2, where the approach has not ended.
func start(sq [][]float64) int {
	n := len(sq)
	if n < 8 {
		return 0
	}
	var errors []float64
	for s := 0; s <= n/2; s++ {
		var rest []int
		for t := s; t < n; t++ {
			rest = append(rest, t)
		}
		errors = append(errors, scatter(sq, rest)/float64((n-s)*(n-s)))
	}
	best := floats.MinIdx(errors)
	if best == n/2 || errors[best] > errors[0]/2 {
		return 0
	}
	return best
}

// stepLengths returns the steps' Euclidean lengths along an order.
func stepLengths(sq [][]float64, order []int) []float64 {
	steps := make([]float64, len(order)-1)
	for i := range steps {
		steps[i] = math.Sqrt(sq[order[i]][order[i+1]])
	}
	return steps
}

// median of at least one value; of an even number, the mean of the middle two.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
