package chance

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// oneSided is the probability that the target exceeds a one-sided bound.
const oneSided = 0.05

// MostMean returns the one-sided 95 % upper bound of the mean of losses. It is Student's, with the correction for skewness of
// Johnson ("Modified t tests and confidence intervals for asymmetrical populations", JASA 1978):
//
//	mean + s·(t + γ(1+2t²)/(6√n))
//
// with the standard error s and the skewness γ of the losses. A negative skewness changes nothing. It is +Inf for fewer than
// two losses, and the mean if that is not finite.
func MostMean(losses []float64) float64 {
	n := float64(len(losses))
	mean, deviation := stat.MeanStdDev(losses, nil)
	switch {
	case math.IsInf(mean, 0) || math.IsNaN(mean):
		return mean
	case n < 2:
		return math.Inf(1)
	case deviation == 0:
		return mean
	}
	third := 0.0
	for _, v := range losses {
		d := (v - mean) / deviation
		third += d * d * d / n
	}
	t := student(n - 1).Quantile(1 - oneSided)
	return mean + deviation/math.Sqrt(n)*(t+max(0, third)*(1+2*t*t)/(6*math.Sqrt(n)))
}

// MostShare returns the exact one-sided 95 % upper bound of a share, after it was seen in some of n trials.
func MostShare(seen, n int) float64 {
	_, high := clopperPearson(float64(seen), float64(n), 2*oneSided)
	return high
}
