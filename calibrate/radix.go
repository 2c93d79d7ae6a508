package calibrate

import (
	"cmp"
	"math"
	"slices"
)

// fewToRadix is the length below which a comparison sort is faster.
const fewToRadix = 64

// A digit of [radix] has digitBits bits. The digits of topBits are sorted first: they hold the exponent and 20 bits of the
// fraction, so that few numbers share them.
const (
	digitBits = 8
	topBits   = 32
)

// keyed is a number and where it stood.
type keyed struct {
	key uint64
	at  int32
}

// sortKeyed sorts by ascending keys. Equal keys keep their order, which is that of at. It returns the sorted slice, which is
// values or other; both have the same length.
func sortKeyed(values, other []keyed) []keyed {
	if len(values) < fewToRadix {
		slices.SortFunc(values, byKey)
		return values
	}
	values = radix(values, other)
	for start, end := 0, 1; start < len(values); start, end = end, end+1 {
		for end < len(values) && values[end].key>>topBits == values[start].key>>topBits {
			end++
		}
		if end > start+1 {
			slices.SortFunc(values[start:end], byKey)
		}
	}
	return values
}

func byKey(a, b keyed) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return cmp.Compare(a.at, b.at)
}

// radix sorts by the upper bits of the keys, least digit first. A digit that all keys share is skipped.
func radix(values, other []keyed) []keyed {
	var counts [topBits / digitBits][1 << digitBits]int32
	for _, v := range values {
		for d := range counts {
			counts[d][v.key>>(topBits+d*digitBits)&(1<<digitBits-1)]++
		}
	}
	for d := range counts {
		count, shift := &counts[d], topBits+d*digitBits
		if int(count[values[0].key>>shift&(1<<digitBits-1)]) == len(values) {
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
