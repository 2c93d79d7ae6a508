package main

import (
	"math"
	"slices"
	"testing"
)

// Other units change geometric means by a factor, and so no order; rows that lack a number are
// left out.
func TestGeometricMeans(t *testing.T) {
	nan := math.NaN()
	got := geometricMeans([]float64{1, 4, 9, 1, nan, 2, 0, 5}, 2)
	if !slices.EqualFunc(got, []float64{2, 3, 0}, func(a, b float64) bool { return math.Abs(a-b) < 1e-15 }) {
		t.Errorf("%v", got)
	}
	if got := geometricMeans([]float64{0.5, nan, 0}, 1); !slices.Equal(got, []float64{0.5, 0}) {
		t.Errorf("%v", got)
	}
}
