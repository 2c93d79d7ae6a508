package calibrate

import (
	"math"
	"testing"
)

func TestExp(t *testing.T) {
	t.Parallel()
	for x := -699.9; x <= 0; x += 0.0137 {
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 2e-13*want {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	for _, x := range []float64{-701, math.Inf(-1), math.NaN()} {
		if got := exp(x); got != 0 {
			t.Errorf("exp(%v) = %v", x, got)
		}
	}
	if exp(0) != 1 {
		t.Error(exp(0))
	}
}
