package calibrate

import "math"

const badCount = "calibrate: number of examples is less than 1"

// normal975 is the 97.5 % quantile of the normal distribution.
const normal975 = 1.959963984540054

// Interval is a mean, or another statistic of examples, with a confidence interval.
type Interval struct {
	Mean, Low, High float64
}

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
