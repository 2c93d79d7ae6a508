package bnupdate

import (
	"math"
	"slices"
)

// Mix returns the statistics of a mixture: a share w of its elements comes from the target, and the rest from the source.
// For each channel
//
//	mean = (1−w)·μ_s + w·μ_t      variance = (1−w)·σ²_s + w·σ²_t + w·(1−w)·(μ_s − μ_t)²
//
// which are the mixture's mean and second moment. Nado et al. 2020 (arXiv 2006.10963) take w = 1. Schneider et al. 2020
// (arXiv 2006.16971) mix the variances alone. What is no statistic of the plan's layers is that of the source.
func (p *Plan) Mix(source, target []float32, w float64) []float32 {
	mixed := slices.Clone(source)
	for _, l := range p.layers {
		for c := range l.mean.Len() {
			mean, variance := l.mean.Offset+c, l.vari.Offset+c
			s, t := float64(source[mean]), float64(target[mean])
			mixed[mean] = float32(float64((1-w)*s) + float64(w*t))
			within := float64((1-w)*float64(source[variance])) + float64(w*float64(target[variance]))
			mixed[variance] = float32(within + float64(w*(1-w)*(s-t)*(s-t)))
		}
	}
	return mixed
}

// Moved says how far the statistics of the first layer are from each other: the root mean square over channels of the differences of
// means, in standard deviations of the source. It is 0 for a plan without layers.
func (p *Plan) Moved(source, target []float32) float64 {
	if len(p.layers) == 0 {
		return 0
	}
	return p.layers[0].moved(source, target)
}

func (l layer) moved(source, target []float32) float64 {
	sum, n := 0.0, 0.0
	for c := range l.mean.Len() {
		d := float64(target[l.mean.Offset+c]) - float64(source[l.mean.Offset+c])
		if v := float64(source[l.vari.Offset+c]) + l.epsilon; v > 0 {
			sum, n = sum+float64(d*d/v), n+1
		}
	}
	return math.Sqrt(sum / max(n, 1))
}
