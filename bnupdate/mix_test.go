package bnupdate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

// A mixture has the mean and the variance of all numbers together, if the weight is the target's share of them.
func TestMix(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	moments := func(x []float64) (mean, variance float64) {
		for _, v := range x {
			mean += v / float64(len(x))
		}
		for _, v := range x {
			variance += (v - mean) * (v - mean) / float64(len(x))
		}
		return mean, variance
	}
	const channels = 3
	p := &Plan{layers: []layer{{name: "bn", mean: weights.Tensor{Shape: []int64{channels}, Offset: 1}, vari: weights.Tensor{Shape: []int64{channels}, Offset: 1 + channels}}}}
	for _, share := range []float64{0.1, 0.2, 0.5, 1} {
		n := 400
		target := int(share * float64(n))
		source, of := make([]float32, 2+2*channels), make([]float32, 2+2*channels)
		source[0], source[1+2*channels], of[0] = 7, 8, 9 // no statistics of the layer
		var want []float64
		for c := range channels {
			var s, to []float64
			for range n - target {
				s = append(s, 1+0.5*rng.NormFloat64())
			}
			for range target {
				to = append(to, -2+3*rng.NormFloat64())
			}
			if s == nil {
				s = []float64{4, 5}
				want = append(want, to...)
			} else {
				want = append(want, slices.Concat(s, to)...)
			}
			for k, x := range map[*[]float32][]float64{&source: s, &of: to} {
				m, v := moments(x)
				(*k)[1+c], (*k)[1+channels+c] = float32(m), float32(v)
			}
		}
		got := p.Mix(source, of, share)
		for c := range channels {
			m, v := moments(want[c*n:][:n])
			if math.Abs(float64(got[1+c])-m) > 1e-6 || math.Abs(float64(got[1+channels+c])-v) > 1e-5 {
				t.Errorf("share %v, channel %d: %v and %v, want %v and %v", share, c, got[1+c], got[1+channels+c], m, v)
			}
		}
		if got[0] != 7 || got[1+2*channels] != 8 {
			t.Errorf("share %v: other numbers become %v and %v", share, got[0], got[1+2*channels])
		}
	}
}
