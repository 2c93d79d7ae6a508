package trajectory

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/internal/dense"
)

// Health says whether SWAG can describe a trajectory. SWAG needs iterates that move around one centre, and enough of
// them. All sums run over all weights together: γ_k below is the sum over the weights of their autocovariances at lag
// k. The norm ‖·‖ is Euclidean.
//
// Everything except the frozen weights, the spectrum and the offset comes from the T(T−1)/2 squared distances between iterates.
type Health struct {
	Checkpoints int `json:"checkpoints"` // T

	// Effective is n_eff, the number of independent iterates whose mean would be as precise as θ_SWA, from 1 to T. It
	// is γ_0 divided by the variance of θ_SWA. It is T for independent iterates. A random walk or a straight line has
	// no centre, so it gives about 2 at any length.
	Effective float64 `json:"effective"`
	// Drift is the share of the scatter that lies between the two halves of the trajectory: T/4·‖m₂−m₁‖² over
	// Σ‖θ_t−θ_SWA‖², where m₁ and m₂ are the means of the halves. An iterate in the middle is left out. For n
	// independent iterates it is 1/(n−1), for a random walk ½, and for a straight line ¾. It is 0 for fewer than four
	// iterates.
	Drift float64 `json:"drift"`
	// Start is the first checkpoint after the initial approach to the region of the others, or 0: see start and straight.
	Start int `json:"start"`

	// Spread is the root mean square of the weights' standard deviations over that of the weights. It is the relative
	// distance of members from θ_SWA.
	Spread float64 `json:"spread"`
	// Offset is the distance of a given mean from the checkpoints' own, over the root mean square of the checkpoints'
	// distances from their own mean. It is 0 if no mean was given. The last iterate of a long random walk has √2.
	Offset float64 `json:"offset,omitempty"`
	// Step is the median of ‖θ_t+1−θ_t‖ over the root mean square of ‖θ_t‖.
	Step float64 `json:"step"`
	// Slowing is the median step of the last quarter over that of the first. It is 1 for fewer than eight iterates.
	Slowing float64 `json:"slowing"`
	// Trend is Spearman's rank correlation of the steps' lengths with time: −1 if each step is shorter than the one
	// before. It is 0 for fewer than eight iterates.
	Trend  float64 `json:"trend"`
	Frozen float64 `json:"frozen"`  // share of the weights, see [swag.Trajectory]
	SubUlp float64 `json:"sub_ulp"` // share of the weights, see [swag.Trajectory]

	// Groups are sets of checkpoints that are far from one another, as those of different runs are: see groups. It is
	// empty if there is one set.
	Groups [][]int `json:"groups,omitempty"`
	// Restarts are the checkpoints at which training seems to begin again. Several runs from one network look so. See
	// restarts.
	Restarts []int `json:"restarts,omitempty"`
	// Outliers are the checkpoints that are far from the others: see strays.
	Outliers []int `json:"outliers,omitempty"`
	// Order is a more likely training order of the checkpoints without the outliers, or its reverse. It is empty if
	// the given order is plausible. Misplaced is the smallest set of checkpoints whose move gives that order. See
	// reorder.
	Order     []int `json:"order,omitempty"`
	Misplaced []int `json:"misplaced,omitempty"`

	// Spectrum holds the eigenvalues of the low-rank part DDᵀ/Divisor as shares of their sum, largest first. A long
	// random walk has shares 6/(π²k²), a straight line a single one.
	Spectrum []float64 `json:"spectrum,omitempty"`
	// Dimensions is the participation ratio of Spectrum, (Σλ)²/Σλ²: the number of equal eigenvalues that would be as
	// concentrated.
	Dimensions float64 `json:"dimensions"`
	// LowRank is the trace of DDᵀ/Divisor over that of Σ_diag. It is about 1 if the deviations describe the variance.
	// With few iterates it is less, because the first deviations from a running mean are near zero.
	LowRank float64 `json:"low_rank"`
}

// Describe is [NewHealth] for [swag.FitOptions.Health].
func Describe(t swag.Trajectory) any { return NewHealth(t) }

// Check returns the health that a posterior's file stores.
func Check(p *swag.Posterior) (h Health, err error) {
	if err = json.Unmarshal(p.Health, &h); err != nil {
		err = fmt.Errorf("%s: health of the trajectory: %w", p.Path, err)
	}
	return h, err
}

// NewHealth computes the health of a trajectory. Figures are 0 if they are not defined for so few iterates, or if all
// iterates are equal.
func NewHealth(t swag.Trajectory) Health {
	h := Health{Checkpoints: len(t.Iterates), Effective: float64(len(t.Iterates)), Slowing: 1}
	if len(t.Iterates) < 2 {
		return h
	}
	if t.Weights > 0 {
		h.Frozen, h.SubUlp = float64(t.Frozen)/float64(t.Weights), float64(t.SubUlp)/float64(t.Weights)
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
	if h.Start = start(sq); t.Weights >= leastWeights {
		h.Start = max(h.Start, straight(sq))
	}
	if h.Groups = groups(sq); h.Groups == nil && 2*h.Effective < float64(len(sq)) { // else there is no way to begin anew
		h.Restarts = restarts(sq)
	}
	if h.Groups == nil && h.Restarts == nil {
		h.Outliers, h.Order, h.Misplaced = reorder(sq, given)
	}

	norm := math.Sqrt(total/float64(len(sq)) + floats.Dot(mean, mean)) // root mean square of ‖θ_t‖
	h.Spread = math.Sqrt(total/float64(len(sq))) / norm
	steps := stepLengths(sq, given)
	h.Step = median(steps) / norm
	if quarter := len(steps) / 4; len(sq) >= 8 {
		if first := median(steps[:quarter]); first > 0 {
			h.Slowing = median(steps[len(steps)-quarter:]) / first
		}
		h.Trend = trend(steps)
	}
	variance := total / float64(len(sq))
	if t.Mean != nil {
		h.Offset = floats.Distance(widened(t.Mean), mean, 2) / math.Sqrt(variance)
		variance *= 1 + h.Offset*h.Offset // about the given mean
	}
	h.spectrum(t, variance)
	return h
}

// spectrum sets the figures of the low-rank part. The argument variance is the trace of Σ_diag.
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

func widened(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// centredGram returns the mean of the rows and the inner products of their deviations from it. The mean is updated
// row by row, as in a fit.
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

// squaredDistances returns ‖θ_i−θ_j‖², given the inner products.
func squaredDistances(g *mat.SymDense) [][]float64 {
	sq := dense.Rows[float64](g.SymmetricDim(), g.SymmetricDim())
	for i := range sq {
		for j := range sq {
			sq[i][j] = max(0, g.At(i, i)+g.At(j, j)-2*g.At(i, j))
		}
	}
	return sq
}

// scatter returns Σ‖θ_t−θ̄‖² over some iterates, where θ̄ is their mean. It equals the sum of the squared distances
// of all pairs, divided by the number of iterates.
func scatter(sq [][]float64, some []int) float64 {
	var sum float64
	for i, a := range some {
		for _, b := range some[:i] {
			sum += sq[a][b]
		}
	}
	return sum / float64(len(some))
}

// variogram returns V_k for k = 0…T−1, half the mean squared distance of iterates k steps from each other. In a stationary trajectory
// V_k = γ_0 − γ_k. No mean is subtracted, so V_k is unbiased even for a short trajectory.
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

// effective returns n_eff = T/(1 + 2Σ(1−k/T)ρ_k), with autocorrelations ρ_k = 1 − V_k/γ_0 up to a window W. The
// sample's own variance is not an estimate of γ_0, because its mean follows the iterates. Instead γ_0 is the mean V
// of pairs more than W steps from each other. This makes n_eff unbiased if γ_k = 0 there.
//
// W is the end of Geyer's initial positive sequence ("Practical Markov chain Monte Carlo", Statistical Science 1992,
// section 3.3). Lags are added in pairs while the sum of a pair's autocorrelations is positive. W is at most T/2, to
// leave enough pairs for γ_0. Because of this limit n_eff is 2 for a long random walk and 1.6 for a long straight
// line.
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
	if time < 1 { // alternating iterates count as independent
		return float64(n)
	}
	return float64(n) / time
}

// drift computes [Health.Drift]. The total scatter is the sum of the scatter within the halves and between them.
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

// start returns the s < T/2 for which the mean of the iterates from s on has the least squared standard error,
// Σ‖θ_t−θ̄‖²/(T−s)². This is White's rule for the end of a simulation's warm-up ("An effective truncation heuristic
// for bias reduction in simulation output", Simulation 1997). It returns 0 unless the rule at least halves the
// squared error. It also returns 0 if the error still falls at T/2, because then the approach has not ended.
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

// A run that is saved from its first epoch on begins with steps in one direction. In testdata/approach.py the first steps of 57 of
// 88 runs from random weights have cosines of sameWay or more with the step before, for more than a quarter of the checkpoints. The
// average from the end of these steps on had a lower loss in 55 of them, by .162 on average. No run at a constant rate from
// trained weights has two such cosines: most are from −.33 to .18, and those of Adam up to .49.
const (
	sameWay      = 0.5
	leastWeights = 20 // with fewer, random steps go the same way by chance
)

// straight returns the first iterate at which the weights turn, after they went in one direction, or 0. It leaves at least half of the
// iterates, or five. It returns 0 if so few iterates come before that they matter little: averages forgive them.
func straight(sq [][]float64) int {
	const fewest, kept = 5, 5
	n := len(sq)
	if n < fewest {
		return 0
	}
	turn := 0 // the first iterate with another direction before it than behind it
	for turn = 1; turn+1 < n; turn++ {
		before, behind := sq[turn-1][turn], sq[turn][turn+1]
		if cosine := (sq[turn-1][turn+1] - before - behind) / 2 / math.Sqrt(before*behind); !(cosine >= sameWay) {
			break
		}
	}
	path := 0.0
	for t := range turn {
		path += math.Sqrt(sq[t][t+1])
	}
	if turn < 3 || 4*turn <= n || math.Sqrt(sq[0][turn]) < sameWay*path { // a smooth curve comes back
		return 0
	}
	return min(turn, n-min(kept, (n+1)/2))
}

// stepLengths returns the Euclidean lengths of the steps along an order.
func stepLengths(sq [][]float64, order []int) []float64 {
	steps := make([]float64, len(order)-1)
	for i := range steps {
		steps[i] = math.Sqrt(sq[order[i]][order[i+1]])
	}
	return steps
}

// trend returns Spearman's rank correlation of values with their places, or 0 if all values are equal. Equal values have
// the mean of their ranks.
func trend(values []float64) float64 {
	ranks, places := make([]float64, len(values)), make([]float64, len(values))
	for i, v := range values {
		places[i] = float64(i)
		for _, w := range values {
			switch {
			case w < v:
				ranks[i]++
			case w == v:
				ranks[i] += 0.5
			}
		}
	}
	r := stat.Correlation(ranks, places, nil)
	if math.IsNaN(r) {
		return 0
	}
	return r
}

// median returns the median of at least one value. For an even number it is the mean of the middle two.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
