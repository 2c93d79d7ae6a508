package target

import (
	"math"
	"testing"
)

// Only a file with −1 and 1 and no other label may mean two things.
func TestSigns(t *testing.T) {
	for _, c := range []struct {
		labels []float64
		asked  bool
	}{
		{[]float64{-1, 1}, true}, {[]float64{1, -1, 1, math.NaN()}, true}, {[]float64{-1, 1, -100}, true},
		{[]float64{-1, 0, 1}, false}, {[]float64{-1, -1}, false}, {[]float64{1, 1}, false}, {[]float64{-1, 2}, false}, {nil, false}, {[]float64{1, 0}, false},
	} {
		var s Signs
		for _, v := range c.labels {
			s.Add(v)
		}
		if got := s.Err() != nil; got != c.asked {
			t.Errorf("%v: asked %t", c.labels, got)
		}
	}
	for v, want := range map[float64]bool{-1: true, -100: true, 0: false, -2: false, 255: false} {
		if NoClass(v) != want {
			t.Errorf("%v: %t", v, !want)
		}
	}
}
