package target

import (
	"math"
	"slices"
	"testing"
)

func TestRows(t *testing.T) {
	classes, values := Target{Classes: []int{3, Unknown, 5}}, Target{Values: []float64{0, 1, 2, 3, 4, 5}, Width: 2}
	if classes.Len() != 3 || values.Len() != 3 || (Target{}).Len() != 0 || !(Target{}).None() || values.None() {
		t.Error("lengths")
	}
	if got := classes.Pick([]int{2, 0}); !slices.Equal(got.Classes, []int{5, 3}) || got.Values != nil {
		t.Errorf("picked classes %v", got)
	}
	if got := values.Pick([]int{2, 0}); !slices.Equal(got.Values, []float64{4, 5, 0, 1}) || got.Len() != 2 || got.Classes != nil {
		t.Errorf("picked values %v", got)
	}
	if got := (Target{}).Pick([]int{1}); !got.None() {
		t.Errorf("picked of nothing %v", got)
	}
	if got := values.Part(1, 3); !slices.Equal(got.Values, []float64{2, 3, 4, 5}) {
		t.Errorf("part %v", got)
	}
	if pixels := (Target{Classes: []int{3, Unknown, 5, 7}, Positions: 2}); pixels.Len() != 2 || pixels.At(1).Class() != Unknown || !slices.Equal(pixels.Pick([]int{1, 0}).Classes, []int{5, 7, 3, Unknown}) ||
		!pixels.At(0).Known() || (Target{Classes: []int{Unknown, Unknown}, Positions: 2}).Known() {
		t.Error("two positions of an example")
	}
	if pixels := (Target{Values: []float64{0, 1, 2, 3, 4, 5, 6, 7}, Width: 2, Positions: 2}); pixels.Len() != 2 || !slices.Equal(pixels.At(1).Values, []float64{4, 5, 6, 7}) {
		t.Error("two positions of two numbers")
	}
	for i, want := range []int{3, Unknown, 5} {
		if one := classes.At(i); one.Class() != want || one.Known() != (want >= 0) {
			t.Errorf("class %d is %d", i, one.Class())
		}
	}
	if one := (Target{}).At(7); one.Class() != Unknown || one.Known() || !values.At(0).Known() {
		t.Error("what is known of one")
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		kind Kind
		row  []float64
		want string
	}{
		{Labels, []float64{0, 1, -1}, ""},
		{Labels, []float64{0, 0.5}, "label 1 is 0.5, want 0, 1, or -1 where it is not known"},
		{Labels, []float64{math.NaN()}, "label 0 is NaN, want 0, 1, or -1 where it is not known"},
		{Numbers, []float64{-7, 1e300}, ""},
		{Numbers, []float64{0, math.Inf(1)}, "target 1 is +Inf, want a finite number"},
	} {
		got := ""
		if err := tt.kind.Check(tt.row); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%v %v: %q, want %q", tt.kind, tt.row, got, tt.want)
		}
	}
}
