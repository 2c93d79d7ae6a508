package calibrate

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const badGroups = "calibrate: losses of groups are not those of the same images, or weights are missing"

// Draws is the effect of random draws, such as the members of an ensemble, on a mean loss on given images.
//
// With S draws and n images the variance of a mean loss is
//
//	σ²_image/n + σ²_draw/S + σ²_both/nS
//
// where σ²_both arises because draws help some images and harm others. A bootstrap over images, with fixed draws,
// estimates the first and the last term. The variance on given images is the last two. Own holds the last term, so
// that it is counted only once (Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 2007).
type Draws struct {
	Variance float64 // of the mean loss on these images; +Inf if unknown
	Own      float64 // the part of Variance that belongs to single images, σ²_both/nS
	DoF      float64 // degrees of freedom of Variance
	// Bias is the part of the loss that comes from the small number of draws. The expected loss of an average over
	// infinitely many draws is lower by Bias.
	Bias float64
}

// Standard returns the standard error from the choice of the draws.
func (d Draws) Standard() float64 { return math.Sqrt(d.Variance) }

// Plus returns the combined effect of independent draws, with Satterthwaite's degrees of freedom.
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

// Jackknife measures the effect of the choice of members on the losses of their average, by leaving out one group of
// members at a time. The argument all holds the losses of the average of all members. The slices of without hold the
// losses of the averages without one group, and weights the weights of the groups.
//
// It is the jackknife for groups of unequal size of Busing, Meijer and van der Leeden ("Delete-m jackknife for
// unequal m", Statistics and Computing 1999). Let h_g be the total weight over that of group g, θ the mean loss of
// all members, and θ_g that without group g. With pseudo-values τ_g = h_g θ − (h_g−1) θ_g,
//
//	θ_J = Σ_g τ_g/h_g,   Bias = θ − θ_J,   Variance = 1/G Σ_g (τ_g − θ_J)²/(h_g−1)
//
// All θ_g have a bias of order 1/S, and θ_J does not. The variance is that of θ_J, and the common part of the θ_g
// cancels. The pseudo-values of a single image give its part of Own and its loss without bias. The result corrected
// holds these losses, whose mean is θ_J. A bootstrap of θ_J must use them, because they vary more than the losses.
//
// If members have an effect only in pairs, the variance is twice too large. This happens where the loss is stationary
// because the average is calibrated best (Efron and Stein, "The jackknife estimate of variance", Annals of Statistics
// 1981). Leaving out two groups measures the effect of pairs. The argument pairs is nil or holds the losses without
// groups g < g', in the order (0,1), (0,2) … (1,2) …. The model
//
//	b_gg' = ½(G²θ − (G−1)²(θ_g + θ_g') + (G−2)²θ_gg') = μ + a_g + a_g' + e_gg'
//
// is fitted by least squares. The e have the variance σ² = Σ e²/(G(G−3)/2), and x = 2σ²/(G(G−1)) is subtracted from
// the variance, which stays at least x. This assumes groups of equal size, and needs at least four.
//
// An error count is not a smooth function of the members. Variance and Own are then both too large, but their
// difference, from which the interval of [NewDifference] is made, is right. Bias is then only noise.
//
// With fewer than two groups, Variance is +Inf and corrected is all. Jackknife panics if the numbers of images
// differ, or if weights does not match the groups.
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

// Replicated measures the effect of a single draw on losses, given the losses of two or more such draws. It uses
// their variance, and Bias is 0. It panics if the numbers of images differ.
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

// Difference is the difference of two mean losses with its uncertainty.
type Difference struct {
	// Interval holds the measured difference, and the 95 % interval of the difference for infinitely many members on
	// all images of this kind.
	Interval
	Images float64 // standard error from the choice of the images
	Draws          // the effect of the random draws
	// P is the two-sided probability of a difference at least this large if there is none. It is the larger of the
	// values for these members and for infinitely many.
	P float64
}

// NewDifference combines a difference measured on n images with its two errors. One is its variance from the choice
// of the images, as a bootstrap estimates it, and the other is the effect of the draws. With s² = Var_images +
// Var_draws − Own the interval is
//
//	mean − Bias ± t s
//
// where t is Student's quantile with Satterthwaite's degrees of freedom, because the draws' variance is estimated
// from few groups. All is NaN if the mean is not finite.
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
	t := distuv.StudentsT{Sigma: 1, Nu: min(max(satterthwaite(images, float64(n-1), more, draws.DoF), 1), 1e6)} // normal beyond
	s, center := math.Sqrt(images+more), mean-draws.Bias
	half := t.Quantile(0.975) * s
	d.Low, d.High = center-half, center+half
	least := min(math.Abs(mean), math.Abs(center))
	if (mean > 0) != (center > 0) {
		least = 0
	}
	// P must not be smaller than the standard error of the draws alone allows.
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
