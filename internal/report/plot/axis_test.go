package plot

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		axis axis
		n    int
		want string
	}{
		{axis{min: 0, max: 1}, 5, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{axis{min: -0.19, max: 0.13}, 5, "−0.1 0.0 0.1"},
		{axis{min: 0, max: 0.173, percent: true}, 5, "0 % 5 % 10 % 15 %"},
		{axis{min: 0, max: 0.012, percent: true}, 4, "0.0 % 0.5 % 1.0 %"},
		{axis{min: 3, max: 4000}, 5, "1000 2000 3000 4000"},
		{axis{min: 0, max: 0.0009}, 5, "0 0.0002 0.0004 0.0006 0.0008"},
		{axis{min: 0, max: 5e-9}, 5, "0 1e−9 2e−9 3e−9 4e−9 5e−9"},
		{axis{min: 0, max: 1e30}, 5, "0 2e29 4e29 6e29 8e29 1e30"},
		{axis{min: 1000000, max: 1000004}, 4, "1000000 1000001 1000002 1000003 1000004"},
		{axis{kind: logarithmic, min: 1e-8, max: 3}, 9, "1e−8 1e−7 1e−6 1e−5 0.0001 0.001 0.01 0.1 1"},
		{axis{kind: logarithmic, min: 1e-8, max: 3}, 4, "1e−8 1e−5 0.01"},
		{axis{kind: logarithmic, min: 0.4, max: 60}, 9, "0.5 1 2 5 10 20 50"},
		{axis{kind: logarithmic, min: 2, max: 8}, 4, "2 4 6 8"},
		{axis{kind: confidence, min: 0.3, max: 0.99995}, 6, "0.5 0.8 0.9 0.99 0.999 0.9999"},
		{axis{kind: confidence, min: 0.3, max: 0.9992}, 10, "0.5 0.8 0.9 0.95 0.98 0.99 0.995 0.998 0.999"},
		{axis{kind: confidence, min: 0, max: 0.9}, 6, "0 0.5 0.8 0.9"},
	} {
		var got []string
		ticks := tt.axis.ticks(tt.n, 55*float64(tt.n), func(label string) float64 { return textWidth(label, smallText) + 6 })
		for _, tick := range ticks {
			got = append(got, tick.Label)
		}
		if s := strings.Join(got, " "); s != tt.want {
			// A percentage holds a space.
			t.Errorf("%+v: %s, want %s", tt.axis, s, tt.want)
		}
		if !slices.IsSortedFunc(ticks, func(a, b Tick) int { return int(math.Copysign(1, a.At-b.At)) }) {
			t.Errorf("%+v: not in order", tt.axis)
		}
	}
}

func TestAxisSpans(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tt := range []struct {
		values   []float64
		zero     bool
		min, max float64
	}{
		{nil, false, 0, 1},
		{[]float64{nan, inf}, true, 0, 1},
		{[]float64{2, nan, 5, -inf}, false, 2, 5},
		{[]float64{2, 5}, true, 0, 5},
		{[]float64{3}, false, 2.7, 3.3},
		{[]float64{0, 0}, true, -0.5, 0.5},
	} {
		a := spanAxis("", tt.zero, tt.values)
		if math.Abs(a.min-tt.min) > 1e-12 || math.Abs(a.max-tt.max) > 1e-12 {
			t.Errorf("%v: [%v, %v], want [%v, %v]", tt.values, a.min, a.max, tt.min, tt.max)
		}
	}
	if a := (axis{min: 0, max: 2}).padded(0.1); a.min != 0 || a.max != 2.2 {
		t.Errorf("padded to [%v, %v]: zero is to stay", a.min, a.max)
	}
	// In a logarithm, a part of the span is a factor.
	if a := (axis{kind: logarithmic, min: 1, max: 100}).padded(0.5); math.Abs(a.min-0.1) > 1e-12 || math.Abs(a.max-1000) > 1e-9 {
		t.Errorf("padded to [%v, %v], want [0.1, 1000]", a.min, a.max)
	}
}
