package calibrate

import (
	"cmp"
	"math"
	"slices"
)

// fewToRadix is the length below which a comparison sort is faster.
const fewToRadix = 64

// digitBits is the number of bits of a digit of [radix]. Eight passes sort 64 bits.
const digitBits = 8

// keyed is a number and where it stood.
type keyed struct {
	key uint64
	at  int32
}

// sortKeyed is [radix], or faster for few values.
func sortKeyed(values, other []keyed) []keyed {
	if len(values) >= fewToRadix {
		return radix(values, other)
	}
	slices.SortFunc(values, func(a, b keyed) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return cmp.Compare(a.at, b.at)
	})
	return values
}

// radix sorts by ascending keys, least digit first. Equal keys keep their order. It returns the sorted slice, which is values or
// other; both have the same length. A digit that all keys share is skipped.
func radix(values, other []keyed) []keyed {
	var counts [64 / digitBits][1 << digitBits]int32
	for _, v := range values {
		for d := range counts {
			counts[d][v.key>>(d*digitBits)&(1<<digitBits-1)]++
		}
	}
	for d := range counts {
		count, shift := &counts[d], d*digitBits
		if len(values) == 0 || int(count[values[0].key>>shift&(1<<digitBits-1)]) == len(values) {
			continue
		}
		next := int32(0)
		for digit, n := range count {
			count[digit], next = next, next+n
		}
		for _, v := range values {
			digit := v.key >> shift & (1<<digitBits - 1)
			other[count[digit]] = v
			count[digit]++
		}
		values, other = other, values
	}
	return values
}

// orderedBits returns bits that have the order of numbers of 0 and more.
func orderedBits(x float64) uint64 { return math.Float64bits(x + 0) } // −0 + 0 is 0
