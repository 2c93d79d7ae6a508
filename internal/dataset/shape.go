package dataset

import (
	"fmt"
	"slices"
	"strings"
)

// accept is like the function accept. A network whose shape is unknown or open takes all examples.
func (o Options) accept(shape []int64) ([]int64, bool) {
	if len(o.Shape) == 0 || slices.Max(o.Shape) < 1 {
		return shape, true
	}
	return accept(shape, o.Shape)
}

// accept reports whether a network that takes want takes stored examples of this shape unchanged. It returns the shape
// that the network sees. Dimensions of size 1 do not count, unless want has open dimensions.
func accept(shape, want []int64) ([]int64, bool) {
	if !slices.ContainsFunc(want, func(d int64) bool { return d < 1 }) {
		return want, slices.Equal(squeeze(shape), squeeze(want)) // the layout in memory is the same
	}
	return shape, slices.EqualFunc(shape, want, func(have, want int64) bool { return want < 1 || have == want })
}

// squeeze removes the dimensions of size 1. Two shapes that are equal afterwards have the same layout in memory.
func squeeze(shape []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(shape), func(d int64) bool { return d == 1 })
}

// mismatch returns the error for examples that the network does not take, with the likely cause.
func mismatch(shape, want []int64) error {
	return fmt.Errorf("examples of shape %d, want %d%s", shape, want, cause(shape, want))
}

// cause describes why the shape of the examples is wrong. It returns "" if the cause is unknown.
func cause(shape, want []int64) string {
	declared := slices.Min(want) > 0
	switch pictures := len(shape) == 3 && len(want) == 3; {
	case pictures && !slices.Equal(shape, want) && slices.Equal(open(want, shape[2], shape[0], shape[1]), want):
		return ": channels come last; save it again as np.ascontiguousarray(a.transpose(0, 3, 1, 2))"
	case pictures && slices.Equal(open(want, shape[1], shape[2], shape[0]), want):
		return ": channels come first; save it again as np.ascontiguousarray(a.transpose(0, 2, 3, 1))"
	case len(shape) == len(want)-1:
		return ": a dimension is missing; if this is a single example, save it again as a[None]"
	case declared && product(shape) == product(want):
		dims := strings.Trim(strings.ReplaceAll(fmt.Sprint(want), " ", ", "), "[]")
		return fmt.Sprintf(": as many elements; if they lie in that order, save it again as a.reshape(-1, %s)", dims)
	case pictures && shape[0] != want[0] && slices.Equal(shape[1:], want[1:]):
		return fmt.Sprintf(": %d channels, and the network takes %d", shape[0], want[0])
	case pictures:
		return ": pictures of another size; floats are taken as they are, uint8 pictures would be resized"
	}
	return ""
}

// open replaces the dimensions of shape that the network leaves open.
func open(want []int64, shape ...int64) []int64 {
	for i, d := range want {
		if d < 1 {
			shape[i] = d
		}
	}
	return shape
}

func product[T int | int64](shape []T) int {
	n := 1
	for _, d := range shape {
		n *= int(d)
	}
	return n
}

// unravel converts a flat index to one index per dimension.
func unravel(flat int, shape []int64) []int64 {
	at := make([]int64, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		at[k] = int64(flat) % shape[k]
		flat /= int(shape[k])
	}
	return at
}
