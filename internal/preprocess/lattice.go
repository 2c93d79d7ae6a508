package preprocess

import (
	"math"
	"slices"
	"strconv"
)

// levels is the largest value of an 8-bit pixel.
const levels = 255

// Normalized finds the normalisation of values that were 8-bit pixels of one channel. Each value is (k/255 − mean) / std
// for a whole number k from 0 to 255. ok is false if the values have another form, or if nothing tells which k the lowest of
// them has. Zeros, which padding leaves, may be off the scale.
//
// Pixels have 256 levels only, so normalised values lie on an equidistant lattice. The spacing is 1/(255·std), and the
// lowest point is (k/255 − mean)/std. If the values span the whole scale, k is 0. If not, each k gives another mean, and the
// one mean with few digits is taken: see [lattice.shifted]. Both numbers are returned with as few digits as reproduce the
// lattice to 2e-6 of its length, which is above the rounding of float32.
func Normalized(values []float32) (mean, std float64, ok bool) {
	points := slices.Clone(values)
	slices.Sort(points)
	points = slices.Compact(points)
	if mean, std, ok = normalized(points); !ok {
		if i, zero := slices.BinarySearch(points, 0); zero {
			mean, std, ok = normalized(slices.Delete(points, i, i+1))
		}
	}
	return mean, std, ok
}

// normalized is Normalized for sorted, distinct values.
func normalized(points []float32) (mean, std float64, ok bool) {
	l, ok := latticeOf(points)
	if !ok {
		return 0, 0, false
	}
	if l.steps == levels {
		mean, std, _ = l.fewest(0)
		return mean, std, true
	}
	return l.shifted()
}

// A lattice is a range of equidistant points that differ by whole numbers of steps.
type lattice struct {
	low, spacing float64
	steps        int // from the lowest point to the highest
}

// latticeOf returns the lattice of sorted, distinct values. ok is false if there is none, if it may be that of every second
// level, or if it has more levels than pixels have.
func latticeOf(points []float32) (l lattice, ok bool) {
	const least = 16 // levels: fewer may lie on a lattice by chance
	if len(points) < least || len(points) > 4*(levels+1) {
		return l, false
	}
	low, length := float64(points[0]), float64(points[len(points)-1])-float64(points[0])
	if !(length > 0) || math.IsInf(length, 1) {
		return l, false
	}
	const tolerance = 1e-3 // in levels: float32 rounding is below it
	gap := length
	for i, p := range points[1:] {
		if d := float64(p) - float64(points[i]); d > tolerance*length/levels { // equal levels may differ by rounding
			gap = min(gap, d)
		}
	}
	l = lattice{low, 0, int(math.Round(length / gap))}
	if l.steps > levels || l.steps <= levels/2 {
		return l, false
	}
	l.spacing = length / float64(l.steps)
	for _, p := range points {
		if at := (float64(p) - low) / l.spacing; math.Abs(at-math.Round(at)) > tolerance {
			return l, false
		}
	}
	return l, true
}

// fewest returns mean and standard deviation with the fewest digits if the lowest point is level k, and the number of digits.
func (l lattice) fewest(k int) (mean, std float64, digits int) {
	length := l.spacing * levels // of the whole scale
	low := l.low - float64(k)*l.spacing
	mean, std = -low/length, 1/length
	const most = 7
	for digits = 1; digits <= most; digits++ {
		m, s := rounded(mean, digits), rounded(std, digits)
		if math.Abs(-m/s-low) <= 2e-6*length && math.Abs((1-m)/s-low-length) <= 2e-6*length {
			return m, s, digits
		}
	}
	return mean, std, digits
}

// shifted finds the level of the lowest point from the digits of the mean. People write means with few digits. A wrong level has
// a mean of d digits with a probability of 4e-6·10^d: the tolerance, on both sides, in units of the last digit. The one mean of d digits
// is taken if all wrong levels together have one with a probability of at most 5 %.
func (l lattice) shifted() (mean, std float64, ok bool) {
	const chance, most = 4e-6, 0.05
	wrong := float64(levels - l.steps)
	for d := 1; wrong*chance*math.Pow10(d) <= most; d++ {
		found := 0
		for k := range levels - l.steps + 1 {
			if m, s, digits := l.fewest(k); digits == d {
				mean, std = m, s
				found++
			}
		}
		if found > 0 {
			return mean, std, found == 1
		}
	}
	return 0, 0, false
}

// rounded returns v rounded to a number of digits behind the point.
func rounded(v float64, digits int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', digits, 64), 64)
	return r
}
