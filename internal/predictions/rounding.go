package predictions

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/task"
)

// sumTolerance is the largest distance of a row's sum of probabilities from 1 that needs no explanation. A softmax in float32
// over 1,000 classes is off by about 1e-7.
const sumTolerance = 1e-6

// A rounding says how exactly numbers were saved.
type rounding struct {
	tolerance float64 // how far a row of probabilities may add up from 1
	what      string  // in words; "" if nothing shows that they were rounded
}

// Limits of what counts as rounding.
const (
	mostDecimals = 6
	mostOff      = 0.5 // with few decimals and many classes, sums say nothing
	enoughRows   = 8   // so many sums near 1 are no coincidence
	mostLost     = 0.3 // of the last decimal, in 16 bits
)

// roundingOf finds out how the numbers of rows were rounded. All are in [0, 1].
func roundingOf(values []float64, classes int) rounding {
	r := rounding{tolerance: sumTolerance}
	if len(values)/classes >= enoughRows {
		r.tolerance = task.SumTolerance // of a softmax in 16 bits, or of clipped probabilities
	}
	add := func(tolerance float64, what string) {
		if r.what == "" {
			r.tolerance, r.what = max(r.tolerance, min(tolerance, mostOff)), what
		}
	}
	inBits := func(bits int) bool {
		return !slices.ContainsFunc(values, func(v float64) bool { return !short(v, bits) })
	}
	bits := 23 // of a float32, whose error is 2^-23 at most
	if inBits(11) {
		bits = 11
	}
	if inBits(8) {
		bits = 8
	}
	for d := 1; d <= mostDecimals; d++ {
		// Decimals that are saved in 16 bits lose digits again: 0.17 becomes 0.16998.
		unit, lost := math.Pow10(d), math.Ldexp(1, -bits)
		if !slices.ContainsFunc(values, func(v float64) bool { return !isInteger(v*unit, min(max(v, lost)*lost*unit, mostLost)) }) {
			add((0.45/unit+lost/2)*float64(classes)+sumTolerance, // half a unit each, but for ties
				fmt.Sprintf("rounded to %d decimals", d))
			break
		}
	}
	for _, t := range []struct {
		bits int
		what string
	}{{11, "in float16"}, {8, "in bfloat16"}} {
		if inBits(t.bits) {
			const least = 1.0 / (1 << 25) // half of the least float16
			add(math.Ldexp(1, -t.bits)+least*float64(classes), t.what)
		}
	}
	return r
}

// isInteger reports whether v is a whole number, up to the rounding of a float32.
func isInteger(v, tolerance float64) bool { return math.Abs(v-math.Round(v)) <= tolerance+1e-9 }

// short reports whether bits bits are enough for the digits of v. The smallest numbers of float16 have fewer.
func short(v float64, bits int) bool {
	const least = 1 << 24
	digits, _ := math.Frexp(v)
	digits = math.Ldexp(digits, bits)
	return digits == math.Trunc(digits) || v < 1.0/(1<<14) && v*least == math.Trunc(v*least)
}

// inUnit reports whether a number may be a probability, up to rounding in float32.
func inUnit(v float64) bool { return v >= -task.Rounding && v <= 1+task.Rounding }

// normalize makes a row of probabilities add up to 1, if it is further off than a float32 explains.
func normalize(row []float64) {
	sum := 0.0
	for c, v := range row {
		row[c] = min(max(v, 0), 1)
		sum += row[c]
	}
	if math.Abs(sum-1) <= sumTolerance {
		return
	}
	for c := range row {
		row[c] /= sum
	}
}

// percentages reports whether all rows add up to 100, as those of no logits do.
func (p *Set) percentages() bool {
	if len(p.Rows) < enoughRows {
		return false
	}
	for row := range slices.Chunk(p.Values, p.Classes) {
		sum := 0.0
		for _, v := range row {
			if v < 0 {
				return false
			}
			sum += v
		}
		if math.Abs(sum-100) > 0.5*float64(min(p.Classes, 10)) {
			return false
		}
	}
	return true
}
