package bnupdate

import (
	"math"
	"slices"
)

// Wide gives a [Plan.Check] of few images the precision of many. It holds two passes with weights near those of the
// checkpoints, such as SWA's. Their difference is the noise of the few images, as in [Control].
type Wide struct {
	Some Result // from the batches of the check
	All  Result // from many more images
}

// corrected returns copies of fresh results without the noise that the wide passes show.
func (p *Plan) corrected(fresh []Result, w *Wide) []Result {
	if w == nil {
		return fresh
	}
	fresh = slices.Clone(fresh)
	for i := range fresh {
		fresh[i].Statistics = slices.Clone(fresh[i].Statistics)
		p.Correct(fresh[i].Statistics, Control{Some: w.Some.Statistics, All: w.All.Statistics})
	}
	return fresh
}

// wideNoise is noise after the correction: that of the many images, and that of the difference between the checkpoint's
// and the other weights, which the few images show.
func (p *Plan) wideNoise(i int, batches []Batch, w *Wide) (means, variances float64) {
	if all := w.All.batches; len(all) > 1 {
		means, variances = p.noise(i, all)
	} else {
		share := float64(w.Some.Images) / float64(w.All.Images)
		means, variances = p.noise(i, w.Some.batches)
		means, variances = means*share, variances*share
	}
	l := p.layers[i]
	n := float64(l.mean.Len())
	for c := range int(n) {
		ratio := math.Sqrt((w.Some.variance(l, c) + l.epsilon) / (w.All.variance(l, c) + l.epsilon)) // that of Correct, nearly
		meanDifference := func(k int) float64 {
			a, b := batches[k], w.Some.batches[k]
			return float64(a.Mean[i][c])/math.Sqrt(a.variance(i, c)+l.epsilon) - float64(b.Mean[i][c])/math.Sqrt(b.variance(i, c)+l.epsilon)
		}
		varianceDifference := func(k int) float64 {
			return math.Log((batches[k].variance(i, c) + l.epsilon) / (w.Some.batches[k].variance(i, c) + l.epsilon))
		}
		_, se := scatter(batches, meanDifference)
		_, seVar := scatter(batches, varianceDifference)
		means, variances = means+ratio*ratio*se/n, variances+seVar/n
	}
	return means, variances
}

// variance returns the variance of channel c of a layer.
func (r Result) variance(l layer, c int) float64 {
	return float64(r.Statistics[l.vari.Offset+int64(c)])
}
