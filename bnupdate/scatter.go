package bnupdate

import "math"

// DefaultTolerance is small enough to cost nothing in likelihood: see
// docs/results.md.
const DefaultTolerance = 0.01

// minBatches is the least number of batches that a pass with a tolerance ends
// after: from fewer, the scatter between them is known too badly to go by.
const minBatches = 8

// scatter follows how much batches differ, to tell how far the statistics of
// those seen so far are from those of endless data. Batches that are random
// draws, of b_k among N images, have statistics x_k whose variance goes as
// 1/b_k. Then the weighted mean Σ (b_k/N)·x_k has the squared standard error
//
//	SE² = Σ_k (b_k/N)·(x_k − x̄)² / (K − 1)
//
// of which the expectation is exact for any sizes of the K batches.
type scatter struct {
	plan    *Plan
	images  float64
	batches int
	mean    []float64 // x̄ of each statistic, in the layout's order
	squares []float64 // Σ b_k·(x_k − x̄)²
}

func newScatter(p *Plan) *scatter {
	return &scatter{plan: p, mean: make([]float64, p.length), squares: make([]float64, p.length)}
}

// add takes in the next batch (West 1979, "Updating mean and variance
// estimates").
func (s *scatter) add(b Batch) {
	s.batches++
	w := float64(b.Images)
	s.images += w
	update := func(at int64, x float64) {
		d := x - s.mean[at]
		s.mean[at] += d * w / s.images
		s.squares[at] += w * d * (x - s.mean[at])
	}
	for i, l := range s.plan.layers {
		for c := range l.mean.Len() {
			update(l.mean.Offset+c, float64(b.Mean[i][c]))
			update(l.vari.Offset+c, b.variance(i, int(c)))
		}
	}
}

// standardError returns what the error of the statistics does to the layers'
// outputs. A layer gives out (x − μ)/√(v + ε), times a weight, so that errors
// of its statistics move its output, before the weight, by a root mean square of
//
//	e² = SE(μ)²/(v + ε) + ¼·v·SE(v)²/(v + ε)³
//
// in a channel. That is a share of the output's standard deviation, which is 1.
// The result is the root mean square over the channels of a layer, and then over
// layers; +Inf where there are fewer than two batches.
func (s *scatter) standardError() float64 {
	if s.batches < 2 {
		return math.Inf(1)
	}
	total := 0.0
	for _, l := range s.plan.layers {
		layer := 0.0
		for c := range l.mean.Len() {
			v := s.mean[l.vari.Offset+c]
			scale := v + l.epsilon
			if scale == 0 {
				continue // a constant channel of a layer without epsilon: it has no error
			}
			layer += s.squaredError(l.mean.Offset+c)/scale + v*s.squaredError(l.vari.Offset+c)/(4*scale*scale*scale)
		}
		total += layer / float64(l.mean.Len())
	}
	return math.Sqrt(total / float64(len(s.plan.layers)))
}

// squaredError returns SE² of the statistic at a place of the layout.
func (s *scatter) squaredError(at int64) float64 {
	return s.squares[at] / s.images / float64(s.batches-1)
}
