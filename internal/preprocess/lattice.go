package preprocess

import (
	"math"
	"slices"
	"strconv"
)

// levels is the largest value of an 8-bit pixel.
const levels = 255

// Normalized finds the normalisation of values that were 8-bit pixels of one channel. Each value is (k/255 − mean) / std
// for a whole number k from 0 to 255. ok is false if the values have another form, or do not contain both ends of the
// scale. Zeros, which padding leaves, may be off the scale.
//
// Pixels have 256 levels only, so normalised values lie on an equidistant lattice. The spacing is 1/(255·std), and the
// lowest point is −mean/std. Both numbers are returned with as few digits as reproduce the lattice to 2e-6 of its
// length, which is above the rounding of float32.
func Normalized(values []float32) (mean, std float64, ok bool) {
	points := slices.Clone(values)
	slices.Sort(points)
	points = slices.Compact(points)
	if mean, std, ok = lattice(points); !ok {
		if i, zero := slices.BinarySearch(points, 0); zero {
			mean, std, ok = lattice(slices.Delete(points, i, i+1))
		}
	}
	return mean, std, ok
}

// lattice is Normalized for sorted, distinct values.
func lattice(points []float32) (mean, std float64, ok bool) {
	const least = 16 // levels: fewer may lie on a lattice by chance
	if len(points) < least || len(points) > 4*(levels+1) {
		return 0, 0, false
	}
	low, high := float64(points[0]), float64(points[len(points)-1])
	length := high - low
	if !(length > 0) || math.IsInf(length, 1) {
		return 0, 0, false
	}
	const tolerance = 1e-3 // in levels: float32 rounding is below it
	for _, p := range points {
		level := (float64(p) - low) / length * levels
		if math.Abs(level-math.Round(level)) > tolerance {
			return 0, 0, false
		}
	}
	if !adjacent(points, length/levels) {
		return 0, 0, false // a coarser lattice, with another number of levels
	}
	same := func(mean, std float64) bool {
		return math.Abs(-mean/std-low) <= 2e-6*length && math.Abs((1-mean)/std-high) <= 2e-6*length
	}
	mean, std = -low/length, 1/length
	for digits := 1; digits <= 7; digits++ {
		if m, s := rounded(mean, digits), rounded(std, digits); same(m, s) {
			return m, s, true
		}
	}
	return mean, std, true
}

// adjacent reports whether two of the points are neighbours on a lattice of this spacing.
func adjacent(points []float32, spacing float64) bool {
	for i := range points[1:] {
		if float64(points[i+1])-float64(points[i]) < 1.5*spacing {
			return true
		}
	}
	return false
}

// rounded returns v rounded to a number of digits behind the point.
func rounded(v float64, digits int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', digits, 64), 64)
	return r
}
