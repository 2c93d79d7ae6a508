package chance

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Family is the number of groups whose intervals hold together with 95 %. Then the interval of the worst group holds
// too, although it is the data that chose it. The zero value is not valid; 1 gives usual intervals.
//
// Each interval has the level 0.95^(1/k) for k groups (Šidák, "Rectangular confidence regions for the means of
// multivariate normal distributions", JASA 1967). Groups share no example, so their intervals are independent.
type Family int

// level returns the probability that one interval misses the target.
func (k Family) level() float64 { return -math.Expm1(math.Log(0.95) / float64(k)) }

// Mean returns the mean of a group's losses with its interval. Each loss is of one unit of chance. The interval is
// Student's, corrected for the skewness by the cubic transformation of Hall ("On the removal of skewness by
// transformation", JRSS B 1992):
//
//	(mean−μ)/s = ((1 + 3a(q − a/2))^⅓ − 1)/a,  a = γ/(3√n)
//
// with q the quantiles of Student's distribution, γ the skewness of the losses, and s the standard error. NLLs are so skewed that
// Student's interval for 30 examples misses a high mean 20 times too often.
//
// The interval is infinite for fewer than two losses, and NaN if the mean is not finite.
func (k Family) Mean(losses []float64) Interval {
	n := float64(len(losses))
	mean, deviation := stat.PopMeanStdDev(losses, nil)
	switch {
	case math.IsInf(mean, 0) || math.IsNaN(mean):
		return Interval{mean, math.NaN(), math.NaN()}
	case n < 2:
		return Interval{mean, math.Inf(-1), math.Inf(1)}
	case deviation == 0:
		return Interval{mean, mean, mean}
	}
	third := 0.0
	for _, v := range losses {
		d := (v - mean) / deviation
		third += d * d * d / n
	}
	a, s := third/(3*math.Sqrt(n)), deviation/math.Sqrt(n-1)
	q := student(n - 1).Quantile(1 - k.level()/2)
	studentised := func(q float64) float64 {
		if math.Abs(a) < 1e-6 {
			return q // the limit
		}
		return (math.Cbrt(1+3*a*(q-a/2)) - 1) / a
	}
	return Interval{mean, mean - s*studentised(q), mean - s*studentised(-q)}
}

// Share returns a group's share of errors, or of another loss between 0 and 1, with its exact interval (Clopper and
// Pearson, Biometrika 1934). Each loss is of one unit of chance. If units have several examples, so that losses are not
// 0 or 1, the interval has the effective number of examples (Korn and Graubard, "Confidence intervals for proportions with
// small expected number of positive counts", Survey Methodology 1998). As they say, that is at most the number of examples.
func (k Family) Share(losses []float64, examples int) Interval {
	mean, variance := stat.PopMeanVariance(losses, nil)
	n, p := float64(len(losses)), min(max(mean, 0), 1)
	if n > 1 && variance > 0 && slices.ContainsFunc(losses, func(v float64) bool { return v != 0 && v != 1 }) {
		t := distuv.UnitNormal.Quantile(1-k.level()/2) / student(n-1).Quantile(1-k.level()/2)
		n = min(p*(1-p)/(variance/(n-1))*t*t, float64(examples))
	}
	low, high := clopperPearson(p*n, n, k.level())
	return Interval{mean, low, high}
}
