package bnupdate

import "math"

// FirstShift compares the means and variances of a batch at the first layer with the statistics that the last
// checkpoint stores for it.
//
// mean and variance are root mean squares over the channels. mean is in stored standard deviations, and variance is
// of the logarithms of the ratios. spread is the mean logarithm of the ratios of standard deviations.
func (p *Plan) FirstShift(stored, means, variances []float32) (layer string, mean, variance, spread float64) {
	l := p.layers[0]
	n := float64(l.mean.Len())
	for c := range int(n) {
		was := float64(stored[int(l.vari.Offset)+c]) + l.epsilon
		d := float64(means[c]) - float64(stored[int(l.mean.Offset)+c])
		r := math.Log((float64(variances[c]) + l.epsilon) / was)
		mean, variance, spread = mean+d*d/was, variance+r*r, spread+r/2
	}
	return l.name, math.Sqrt(mean / n), math.Sqrt(variance / n), spread / n
}
