package bnupdate

import (
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

// By hand: means 4 and 2 where 2 and 2 are stored with variances 4 and 1, variances 16 and 1.
func TestFirstShift(t *testing.T) {
	p := &Plan{layers: []layer{{name: "bn", mean: weights.Tensor{Shape: []int64{2}}, vari: weights.Tensor{Shape: []int64{2}, Offset: 2}}}}
	name, mean, variance, spread := p.FirstShift([]float32{2, 2, 4, 1}, []float32{4, 2}, []float32{16, 1})
	want := []float64{math.Sqrt(0.5), math.Log(4) / math.Sqrt2, math.Log(2) / 2}
	for i, got := range []float64{mean, variance, spread} {
		if name != "bn" || math.Abs(got-want[i]) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, want[i])
		}
	}
}
