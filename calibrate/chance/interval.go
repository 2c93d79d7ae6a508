package chance

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

const badCount = "chance: number of examples is less than 1"

// normal975 is the 97.5 % quantile of the normal distribution.
const normal975 = 1.959963984540054

// Interval is a mean, or another statistic of examples, with a confidence interval.
type Interval struct {
	Mean, Low, High float64
}

// Minus returns the interval of the negative.
func (i Interval) Minus() Interval { return Interval{-i.Mean, -i.High, -i.Low} }

// Wilson returns a share of n examples, such as an accuracy, with its 95 % score interval (Wilson 1927). Unlike the
// usual normal interval it is not empty for a share of 0 or 1. Wilson panics if n is less than 1.
func Wilson(share float64, n int) Interval {
	if n < 1 {
		panic(badCount)
	}
	const z = normal975
	m := float64(n)
	middle := (share + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(share*(1-share)/m+z*z/(4*m*m))
	return Interval{share, middle - half, middle + half}
}

// Exact returns a share of n examples, such as an accuracy, with an interval that holds for at least 95 % of data (Clopper and Pearson,
// Biometrika 1934).
func Exact(share float64, n int) Interval {
	if n < 1 {
		panic(badCount)
	}
	i := Interval{Mean: share}
	i.Low, i.High = clopperPearson(math.Round(share*float64(n)), float64(n), 0.05)
	return i
}

// ExactMean returns the mean of shares of n examples, each from 0 to 1, with an interval as that of [Exact] for as many examples as the
// variance of the shares is worth: shares of 0 and 1 have the variance mean·(1 − mean). Unlike Student's interval it holds if few shares
// differ from 1. sum and squares are those of the shares. miss is 0.05 for an interval of 95 %.
func ExactMean(sum, squares float64, n int, miss float64) Interval {
	if n < 1 {
		panic(badCount)
	}
	m := float64(n)
	mean := sum / m
	worth := m
	if most := mean * (1 - mean); n > 1 && most > 0 {
		variance := max(0, squares-m*mean*mean) / (m - 1)
		t := student(m-1).Quantile(1-miss/2) / distuv.UnitNormal.Quantile(1-miss/2)
		worth = m * most / max(min(variance, most), 1e-9*most) / (t * t)
	}
	i := Interval{Mean: mean}
	i.Low, i.High = clopperPearson(mean*worth, worth, miss)
	return i
}

// ErrorDifference returns (more − less)/n with its 95 % interval, for n pairs of which more have an error of the first predictor only,
// and less one of the second only. One of each is added, so the interval has a width without any (Bonett and Price, Journal of
// Educational and Behavioral Statistics 2012).
func ErrorDifference(more, less, n int) Interval {
	if n < 1 {
		panic(badCount)
	}
	m := float64(n) + 2
	a, b := float64(more+1)/m, float64(less+1)/m
	half := normal975 * math.Sqrt((a+b-(a-b)*(a-b))/m)
	return Interval{float64(more-less) / float64(n), a - b - half, a - b + half}
}

// clopperPearson returns the exact interval of a share that won of n trials show, and that misses the target with at most the
// given probability (Clopper and Pearson, Biometrika 1934).
func clopperPearson(won, n, miss float64) (low, high float64) {
	low, high = 0, 1
	if won > 1e-9 {
		low = distuv.Beta{Alpha: won, Beta: n - won + 1}.Quantile(miss / 2)
	}
	if n-won > 1e-9 {
		high = distuv.Beta{Alpha: won + 1, Beta: n - won}.Quantile(1 - miss/2)
	}
	return low, high
}
