package calibrate

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const badGroups = "calibrate: losses of groups are not those of the same images, or weights are missing"

// Draws is what the choice of random draws, such as the members of an ensemble, does
// to a mean loss on given images.
//
// With draws m and images i a mean loss varies by
//
//	σ²_image/n + σ²_draw/S + σ²_both/nS
//
// where σ²_both is that draws help other images than they harm. A bootstrap over
// images, which holds the draws fixed, estimates the first and the last term, and what
// varies on given images is the last two. So Own is told apart: it is counted once (Owen,
// "The pigeonhole bootstrap", Annals of Applied Statistics 2007).
type Draws struct {
	Variance float64 // of the mean loss on these images; +Inf where it cannot be told
	Own      float64 // the part of it that is of single images, σ²_both/nS
	DoF      float64 // degrees of freedom of Variance
	// Bias is how much of the loss is there because the draws are few: an average over
	// infinitely many has a loss that is lower by it, in expectation.
	Bias float64
}

// Standard is the standard error for the choice of the draws.
func (d Draws) Standard() float64 { return math.Sqrt(d.Variance) }

// Plus is what independent draws do together, with Satterthwaite's degrees of
// freedom.
func (d Draws) Plus(o Draws) Draws {
	return Draws{d.Variance + o.Variance, d.Own + o.Own, satterthwaite(d.Variance, d.DoF, o.Variance, o.DoF), d.Bias + o.Bias}
}

// satterthwaite returns the degrees of freedom of the sum of two variances
// (Satterthwaite 1946).
func satterthwaite(v, vDoF, w, wDoF float64) float64 {
	share := func(v, dof float64) float64 {
		if v == 0 {
			return 0
		}
		return v * v / dof
	}
	if math.IsInf(v+w, 1) {
		return 1
	}
	if below := share(v, vDoF) + share(w, wDoF); below > 0 {
		return (v + w) * (v + w) / below
	}
	return math.Inf(1)
}

// Jackknife measures what the choice of members does to the losses of their average,
// by leaving out one group of them after the other. all are the losses of the average
// of all, without those of the averages without one group, and weights those of the groups.
//
// It is the jackknife for groups of unequal size of Busing, Meijer and van der Leeden
// ("Delete-m jackknife for unequal m", Statistics and Computing 1999): with h_g the
// weight of all over that of group g, θ the mean loss of all and θ_g that without
// group g, and pseudo-values τ_g = h_g θ − (h_g−1) θ_g,
//
//	θ_J = Σ_g τ_g/h_g,   Bias = θ − θ_J,   Variance = 1/G Σ_g (τ_g − θ_J)²/(h_g−1)
//
// θ_J has no bias of order 1/S, by which all θ_g are too large; the variance is that of
// θ_J, and what the θ_g have in common drops out of it. The pseudo-values of a single
// image give its part of Own, and its loss without bias: corrected has those, of which θ_J is
// the mean. A bootstrap of θ_J takes these, since what they vary by is more than the
// losses do.
//
// Where members matter in pairs alone, as they do where the average is calibrated best and
// the loss stationary, the variance is twice what it should be (Efron and Stein, "The jackknife
// estimate of variance", Annals of Statistics 1981). What pairs of groups do is told by leaving out two of
// them: pairs are the losses without groups g < g', in the order (0,1), (0,2) … (1,2) …, or nil. With
//
//	b_gg' = ½(G²θ − (G−1)²(θ_g + θ_g') + (G−2)²θ_gg') = μ + a_g + a_g' + e_gg'
//
// fitted by least squares the e have the variance σ² = Σ e²/(G(G−3)/2), and
// x = 2σ²/(G(G−1)) is taken off the variance, of which at least x is left. This takes the groups for
// equal, and there must be four.
//
// Errors, which count, are no smooth function of the members: Variance and Own are both
// too large, and their difference, which counts, holds; Bias is all noise.
//
// Of less than two groups nothing can be told, Variance is +Inf, and corrected is all.
// Jackknife panics if the images are not the same in all, or the weights not those of the
// groups.
func Jackknife(all []float64, without, pairs [][]float64, weights []float64) (d Draws, corrected []float64) {
	if len(without) != len(weights) || len(all) == 0 {
		panic(badGroups)
	}
	groups, n := float64(len(without)), float64(len(all))
	if len(without) < 2 {
		return Draws{Variance: math.Inf(1), DoF: 1}, all
	}
	h, means := make([]float64, len(without)), make([]float64, len(without))
	total := 0.0
	for _, w := range weights {
		total += w
	}
	for g, losses := range without {
		if len(losses) != len(all) {
			panic(badGroups)
		}
		h[g], means[g] = total/weights[g], stat.Mean(losses, nil)
	}
	variance := func(theta float64, without, pair func(g int) float64) (variance, center float64) {
		for g, h := range h {
			center += theta - (1-1/h)*without(g) // τ/h
		}
		for g, h := range h {
			d := h*theta - (h-1)*without(g) - center
			variance += d * d / (h - 1) / groups
		}
		if pairs != nil && len(h) > 3 {
			x := 2 * interaction(theta, len(h), without, pair) / (groups * (groups - 1))
			variance = max(variance-x, x)
		}
		return variance, center
	}
	theta := stat.Mean(all, nil)
	v, center := variance(theta, func(g int) float64 { return means[g] }, func(k int) float64 { return stat.Mean(pairs[k], nil) })
	d, corrected = Draws{Variance: v, DoF: groups - 1, Bias: theta - center}, make([]float64, len(all))
	for i, loss := range all {
		own, center := variance(loss, func(g int) float64 { return without[g][i] }, func(k int) float64 { return pairs[k][i] })
		d.Own += own / (n * n)
		corrected[i] = center
	}
	return d, corrected
}

// interaction returns σ² of [Jackknife].
func interaction(theta float64, groups int, without, pair func(int) float64) float64 {
	b, rows, total, k := make([][]float64, groups), make([]float64, groups), 0.0, 0
	for g := range b {
		b[g] = make([]float64, groups)
	}
	n := float64(groups)
	for g := range groups {
		for o := g + 1; o < groups; o++ {
			b[g][o] = (n*n*theta - (n-1)*(n-1)*(without(g)+without(o)) + (n-2)*(n-2)*pair(k)) / 2
			rows[g] += b[g][o]
			rows[o] += b[g][o]
			total += b[g][o]
			k++
		}
	}
	mean, sum := 2*total/(n*(n-1)), 0.0
	effect := func(g int) float64 { return (rows[g] - (n-1)*mean) / (n - 2) } // least squares, with Σ a = 0
	for g := range groups {
		for o := g + 1; o < groups; o++ {
			e := b[g][o] - mean - effect(g) - effect(o)
			sum += e * e
		}
	}
	return sum / (n * (n - 3) / 2)
}

// Replicated measures what the choice of a single draw does to losses, from those of
// other such draws: with two or more in all, by their variance; Bias is 0. It panics
// if the images are not the same in all.
func Replicated(draws [][]float64) Draws {
	n, count := float64(columns(draws)), float64(len(draws))
	if count < 2 {
		return Draws{Variance: math.Inf(1), DoF: 1}
	}
	means, one := make([]float64, len(draws)), make([]float64, len(draws))
	for r, losses := range draws {
		means[r] = stat.Mean(losses, nil)
	}
	out := Draws{Variance: stat.Variance(means, nil), DoF: count - 1}
	for i := range draws[0] {
		for r := range draws {
			one[r] = draws[r][i]
		}
		out.Own += stat.Variance(one, nil) / (n * n)
	}
	return out
}

// Difference is what is known of the difference of two mean losses.
type Difference struct {
	// Interval has the difference as measured, and the 95 % interval of that of
	// infinitely many members on all images of their kind.
	Interval
	Images float64 // standard error for the choice of the images
	Draws          // of the random draws
	// P is the two-sided probability of a difference so large where there is none,
	// with these members or with infinitely many, whichever is larger.
	P float64
}

// NewDifference puts together a difference as measured on n images, its variance for
// the choice of the images, as a bootstrap gives it, and what the draws do. With s² =
// Var_images + Var_draws − Own the interval is
//
//	mean − Bias ± t s
//
// t being Student's quantile with Satterthwaite's degrees of freedom: the draws'
// variance is known of few groups. All is NaN where the mean is not finite.
func NewDifference(mean, images float64, n int, draws Draws) Difference {
	d := Difference{Interval: Interval{mean, math.NaN(), math.NaN()}, Images: math.Sqrt(images), Draws: draws, P: math.NaN()}
	if math.IsInf(mean, 0) || math.IsNaN(mean) {
		return d
	}
	more := max(0, draws.Variance-draws.Own)
	if math.IsInf(draws.Variance, 1) {
		d.Low, d.High, d.P = math.Inf(-1), math.Inf(1), 1
		return d
	}
	t := distuv.StudentsT{Sigma: 1, Nu: min(max(satterthwaite(images, float64(n-1), more, draws.DoF), 1), 1e6)} // as good as normal beyond
	s, center := math.Sqrt(images+more), mean-draws.Bias
	half := t.Quantile(0.975) * s
	d.Low, d.High = center-half, center+half
	least := min(math.Abs(mean), math.Abs(center))
	if (mean > 0) != (center > 0) {
		least = 0
	}
	// Nor is it told by images that could not tell it from other draws.
	s = max(s, draws.Standard())
	switch {
	case least == 0:
		d.P = 1
	case s == 0:
		d.P = 0
	default:
		d.P = 2 * t.Survival(least/s)
	}
	return d
}
