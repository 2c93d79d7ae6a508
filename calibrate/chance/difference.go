package chance

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Difference is the difference of the mean losses of two predictors on test examples, with its 95 % interval for new
// examples of the same kind. Both predictors are given: their random draws are no source of chance. Mean is always
// inside of the interval.
type Difference struct {
	Interval
	Standard float64 // standard error from the choice of the examples, and of the labels of fits
	DoF      float64 // degrees of freedom of Standard²
	P        float64 // two-sided probability of a difference at least this large if there is none
}

// FewErrors is the number of errors that at least one of two predictors must make for the interval of a difference in NLL. With fewer
// errors a loss depends on a handful of examples, and the normal approximation fails: with 3 to 10 errors, 95 % intervals hold in 79 to
// 92 %. From 30 on they hold in 94 %: see TestDifferenceOfLosses.
const FewErrors = 30

// NewDifference returns the difference for the differences of the losses by example. The argument fits is the variance
// that fitted numbers add: see [NewRefit]. The interval is Student's,
//
//	mean ± t·√(Var/n + fits)
//
// All is NaN if the mean is not finite. NewDifference panics without examples.
func NewDifference(losses []float64, fits float64) Difference {
	n := float64(len(losses))
	if n == 0 {
		panic(badPairs)
	}
	mean, variance := stat.MeanVariance(losses, nil)
	d := Difference{Interval: Interval{mean, math.NaN(), math.NaN()}, Standard: math.NaN(), DoF: n - 1, P: math.NaN()}
	if math.IsInf(mean, 0) || math.IsNaN(mean) {
		return d
	}
	if n < 2 {
		d.Low, d.High, d.Standard, d.P = math.Inf(-1), math.Inf(1), math.Inf(1), 1
		return d
	}
	d.Standard = math.Sqrt(variance/n + fits)
	half := quantile(d.DoF) * d.Standard
	d.Interval = Interval{mean, mean - half, mean + half}
	d.P = twoSided(mean, d.Standard, d.DoF)
	return d
}

// twoSided returns the p-value of Student's test that the target is 0.
func twoSided(mean, standard, dof float64) float64 {
	switch {
	case mean == 0:
		return 1
	case standard == 0:
		return 0
	}
	return 2 * student(dof).Survival(math.Abs(mean)/standard)
}

func student(dof float64) distuv.StudentsT {
	return distuv.StudentsT{Sigma: 1, Nu: min(max(dof, 1), 1e6)}
} // normal beyond

// quantile returns Student's t of a 95 % interval.
func quantile(dof float64) float64 { return student(dof).Quantile(0.975) }

// OtherDraws returns the difference that as many other draws would have on new examples, with its 95 % interval. Its
// mean is the measured difference.
//
// The interval is mean ± t·s with s² = Standard² + Variance. t is the mean of Student's quantiles for the degrees of freedom of the two
// variances, weighted by the variances (Cochran and Cox, "Experimental Designs", 1957, section 4.14). Three antithetic pairs give two
// degrees of freedom. There Satterthwaite's number for the sum is too large: a small estimate of the variance hides that it is
// hardly known, and intervals hold in 91 %.
//
// If few draws give much higher losses, most ensembles lack them, and the true difference is higher more often than not. Therefore
// the end on the side of the skewness γ = Third/s³ is moved by γ(1+2t²)s/6 (Johnson, "Modified t tests and confidence intervals for
// asymmetrical populations", JASA 1978), with |γ| ≤ 1.
func (d Difference) OtherDraws(draws Draws) Interval { return d.drawn(d.Mean, draws) }

// ManyDraws returns the difference that infinitely many draws would have on new examples, with its 95 % interval. Bias, too, is an
// estimate from the draws: a sum of squares, with a variance of 2·Bias²/DoF in one direction, and of Bias²/DoF in two alike. The
// interval takes the second: draws move losses in several directions.
func (d Difference) ManyDraws(draws Draws) Interval {
	center := d.Mean - draws.Bias
	if draws.Bias != 0 {
		d.Standard = math.Hypot(d.Standard, draws.Bias/math.Sqrt(draws.DoF))
	}
	return d.drawn(center, draws)
}

func (d Difference) drawn(center float64, draws Draws) Interval {
	if math.IsNaN(d.Low) {
		return d.Interval
	}
	if math.IsInf(draws.Variance, 1) || math.IsInf(d.Standard, 1) {
		return Interval{center, math.Inf(-1), math.Inf(1)}
	}
	v, w := d.Standard*d.Standard, draws.Variance
	if v+w == 0 {
		return Interval{center, center, center}
	}
	t := (v*quantile(d.DoF) + w*quantile(draws.DoF)) / (v + w)
	return skewed(center, math.Sqrt(v+w), t, draws.Third)
}

// skewed returns the interval center ± t·standard with the end on the side of the skewness moved: see [Difference.OtherDraws]. third is
// the third cumulant of the mean.
func skewed(center, standard, t, third float64) Interval {
	i := Interval{center, center - t*standard, center + t*standard}
	if standard > 0 {
		shift := skewness(third, standard) * (1 + 2*t*t) / 6 * standard
		i.Low, i.High = i.Low+min(0, shift), i.High+max(0, shift)
	}
	return i
}

func skewness(third, standard float64) float64 {
	return max(-1, min(1, third/(standard*standard*standard)))
}

// twoSidedSkewed returns the level at which the interval of skewed reaches 0: it solves |mean|/s = t + γ(1+2t²)/6 for t, if the
// skewness γ moves the end on the side of 0.
func twoSidedSkewed(mean, standard, dof, third float64) float64 {
	if mean == 0 || standard == 0 {
		return twoSided(mean, standard, dof)
	}
	gamma := max(0, -math.Copysign(1, mean)*skewness(third, standard))
	t := math.Abs(mean) / standard
	if gamma > 1e-9 {
		t = (math.Sqrt(max(0, 1+4*gamma/3*(t-gamma/6))) - 1) * 3 / (2 * gamma)
	}
	return 2 * student(dof).Survival(max(0, t))
}

// refitStep is the step in the logarithm of a number for numerical derivatives of the losses that it was fitted to. Their
// relative error is of the order of its square, 1e-4.
const refitStep = 0.01

// Refit is what is known about the fit of a positive number, such as a temperature, without other fits of it.
type Refit struct {
	// Variances has the variance that the fit adds to mean losses of other examples, by loss.
	Variances []float64
	// Unseen has the loss of each example of the fit for a fit without it, to first order (Beirami et al. 2017). It is nil if the
	// examples do not determine the number.
	Unseen []float64
}

// NewRefit returns what is known about the fit of a number. The function at returns the losses of the examples that the number was
// fitted to, and the losses of the other examples by loss, for the fitted number times a factor.
//
// Let x be the logarithm of the number, s the slopes of the fitted losses, and H their mean curvature. The variance of
// x is that of an M-estimator with m examples, v = Σ s²/(m·H)² (Huber 1967). With the mean curvature h of a loss of the
// other examples the variance is
//
//	½(h·v)²
//
// This is the variance of the excess loss ½·h·(x̂−x)². The variance of the losses at the fitted number already includes the
// choice of both sets of examples. The step for h is √v, so that a loss with jumps, such as the error rate, has
// the curvature that x̂ meets. It is 0 if the examples do not determine the number.
//
// A fit without example i has x̂ + d, where d = s_i/(m·H − h_i) is Newton's step and h_i its curvature. So its loss is
// l_i + s_i·d + ½·h_i·d².
func NewRefit(
	at func(factor float64) (fitted []float64, applied [][]float64, err error),
) (r Refit, err error) {
	var fitted [3][]float64
	var middle [][]float64
	for k := range fitted {
		on, of, err := at(math.Exp(refitStep * float64(k-1)))
		if err != nil {
			return r, err
		}
		if fitted[k] = on; k == 1 {
			middle = of
		}
	}
	squares, curvature := 0.0, 0.0
	slopes, curvatures := make([]float64, len(fitted[1])), make([]float64, len(fitted[1]))
	for i, loss := range fitted[1] {
		less, more := fitted[0][i], fitted[2][i]
		slopes[i], curvatures[i] = (more-less)/(2*refitStep), (more-2*loss+less)/(refitStep*refitStep)
		squares += slopes[i] * slopes[i]
		curvature += curvatures[i]
	}
	v := squares / (curvature * curvature)
	r.Variances = make([]float64, len(middle))
	step := min(math.Sqrt(v), 1)
	if !(step > 0) {
		return r, nil
	}
	for i, loss := range fitted[1] {
		d := slopes[i] / (curvature - curvatures[i])
		r.Unseen = append(r.Unseen, loss+slopes[i]*d+curvatures[i]*d*d/2)
	}
	_, low, err := at(math.Exp(-step))
	if err != nil {
		return r, err
	}
	_, high, err := at(math.Exp(step))
	if err != nil {
		return r, err
	}
	for l := range r.Variances {
		second := 0.0
		for i, loss := range middle[l] {
			second += (high[l][i] - 2*loss + low[l][i]) / float64(len(middle[l]))
		}
		h := second / (step * step)
		if r.Variances[l] = h * v * h * v / 2; math.IsNaN(r.Variances[l]) || math.IsInf(r.Variances[l], 0) {
			r.Variances[l] = 0
		}
	}
	return r, nil
}
