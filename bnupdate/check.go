package bnupdate

import (
	"math"

	"github.com/swagwrap/swagwrap/weights"
)

// Compared is the recommended number of checkpoints for a [Check]. More checkpoints average out the steps of the
// weights further, but need more passes.
const Compared = 5

// Check compares the statistics that the last checkpoints store with those that the images give for the same weights.
// If the images are not those of training, or are prepared differently, the two differ in the same direction at every
// checkpoint. Then the statistics of SWA and of members are just as wrong.
type Check struct {
	Examples    int          `json:"examples"`       // examples that each checkpoint's statistics were recomputed from
	Wide        int          `json:"wide,omitempty"` // examples of the pass that removes their noise: see [Wide]; or 0
	Checkpoints int          `json:"checkpoints"`    // number of checkpoints compared
	Layers      []LayerCheck `json:"layers"`         // in the network's order, starting at its input
	// Unchecked is the number of layers whose statistics are equal in all checkpoints. They say nothing about the
	// images.
	Unchecked int `json:"unchecked,omitempty"`
}

// LayerCheck is the [Check] of one layer. All numbers are root mean squares over channels.
type LayerCheck struct {
	Layer string `json:"layer"` // the name of its running mean
	// Means and Variances are the differences that are common to all checkpoints. Those of means are in standard
	// deviations. Those of variances are differences of logarithms.
	Means     float64 `json:"means"`
	Variances float64 `json:"variances"`
	// ExpectedMeans and ExpectedVariances are the standard errors of the differences: see [Plan.Check].
	ExpectedMeans     float64 `json:"expected_means"`
	ExpectedVariances float64 `json:"expected_variances"`
}

// Limits of [Check.Off]. fixtures/bncheck lists the networks that they were measured on.
const (
	maxScore = 2.5
	// Differences below these move no prediction that anyone would notice.
	leastMeans     = 0.02
	leastVariances = 0.05
)

// Score returns the difference of layer i in units of its standard error. For the layer nearest to the input it is
// the larger of the scores of means and variances. For later layers it is the score of means only. Dropout and
// stochastic depth are on in training and off when statistics are recomputed. They change variances, but not means.
func (c *Check) Score(i int) float64 {
	l := c.Layers[i]
	score := over(l.Means, l.ExpectedMeans, leastMeans)
	if i == 0 {
		score = max(score, over(l.Variances, l.ExpectedVariances, leastVariances))
	}
	return score
}

// over returns the ratio of a difference to its standard error, or 0 if the difference is too small to matter.
func over(difference, expected, least float64) float64 {
	if difference <= least {
		return 0
	}
	return difference / expected
}

// Off returns the indexes of the layers whose differences neither chance nor training explains.
func (c *Check) Off() (off []int) {
	for i := range c.Layers {
		if c.Score(i) > maxScore {
			off = append(off, i)
		}
	}
	return off
}

// FirstOff reports whether the layer nearest to the input is off. About one convolution lies between the images and
// that layer. So the images themselves, or their preparation, are wrong. If only later layers are off, the images
// show something else.
func (c *Check) FirstOff() bool { return len(c.Layers) > 0 && c.Score(0) > maxScore }

// Check compares the statistics that the checkpoints store with fresh ones. The argument fresh holds recomputations
// from the same batches for the last of these checkpoints, oldest first. The argument stored has a row for each
// checkpoint, in the order of training. Each row is in the layout's order.
//
// Check returns nil if there are fewer than 2 batches, because then the noise of the images is unknown. With wide, which
// may be nil, the statistics are nearly those of wide's many images.
//
// Stored statistics are an average over iterations before the checkpoint. It is a moving average with any momentum,
// or the cumulative average of PyTorch's momentum=None. The graph does not show reliably which. But from checkpoint
// t−1 to checkpoint t any of them moves by a share 1/f towards x_t, the average over the iterations in between:
//
//	s_t = s_(t−1) + (x_t − s_(t−1))/f
//
// f is common to all layers with the same momentum and the same number of updates, and is fitted (see fitted). Then
//
//	y_t = s_(t−1) + f·(s_t − s_(t−1)) − r_t
//
// is the difference between what training saw and r_t, which the images give between the two checkpoints. The
// movement of the weights makes y_t scatter, in another direction at each t. Wrong images move all y_t alike. So the
// mean over t is compared with its standard error. That error contains the scatter over t and the noise of the
// images, which all t share. A single interval has no scatter. Check then uses the mean square of all steps between
// checkpoints, or the noise of the moving average if that is larger.
func (p *Plan) Check(stored [][]float32, fresh []Result, wide *Wide) *Check {
	last := fresh[len(fresh)-1]
	if len(last.batches) < 2 {
		return nil
	}
	c := &Check{Examples: last.Images, Checkpoints: len(fresh)}
	if wide != nil {
		c.Wide = wide.All.Images
	}
	fresh = p.corrected(fresh, wide)
	var tracks []track
	var of []pace // the layers
	paced, shares := map[pace][]track{}, map[pace]float64{}
	for i, l := range p.layers {
		if alike(stored, l.mean) && alike(stored, l.vari) {
			c.Unchecked++
			continue
		}
		c.Layers = append(c.Layers, LayerCheck{Layer: l.name})
		means, variances := p.tracks(i, stored, fresh, wide)
		tracks = append(tracks, means, variances)
		paced[l.pace] = append(paced[l.pace], means, variances)
		of = append(of, l.pace)
	}
	for pace, tracks := range paced {
		shares[pace] = fitted(tracks)
	}
	for i := range c.Layers {
		l, f := &c.Layers[i], shares[of[i]]
		l.Means, l.ExpectedMeans = tracks[2*i].bias(f, false)
		l.Variances, l.ExpectedVariances = tracks[2*i+1].bias(f, true)
	}
	return c
}

// alike reports whether all rows have the same elements of t.
func alike(rows [][]float32, t weights.Tensor) bool {
	for _, row := range rows[1:] {
		for i := t.Offset; i < t.Offset+t.Len(); i++ {
			if row[i] != rows[0][i] {
				return false
			}
		}
	}
	return true
}

// noise returns the squared standard errors of layer i's statistics, averaged over channels. Those of means are in
// standard deviations, those of variances are relative. Epsilon is added to variances, as in the layer itself, so
// that dead channels do not count.
func (p *Plan) noise(i int, batches []Batch) (means, variances float64) {
	l := p.layers[i]
	for c := range int(l.mean.Len()) {
		_, se := scatter(batches, func(k int) float64 { return float64(batches[k].Mean[i][c]) })
		v, seVar := scatter(batches, func(k int) float64 { return batches[k].variance(i, c) })
		v += l.epsilon
		means += se / v
		variances += seVar / (v * v)
	}
	n := float64(l.mean.Len())
	return means / n, variances / n
}

// scatter measures how much the values of batches differ, which shows how far their statistics are from those of endless data. Let
// the batches be random draws of b_k among N images. Then the variance of their statistics x_k goes as 1/b_k, and the
// weighted mean Σ (b_k/N)·x_k has the squared standard error
//
//	SE² = Σ_k (b_k/N)·(x_k − x̄)² / (K − 1)
//
// Its expectation is exact for any sizes of the K batches.
func scatter(batches []Batch, value func(k int) float64) (mean, squaredError float64) {
	var images, squares float64
	for k, b := range batches { // West 1979, "Updating mean and variance estimates"
		w, x := float64(b.Images), value(k)
		images += w
		d := x - mean
		mean += d * w / images
		squares += w * d * (x - mean)
	}
	return mean, squares / images / float64(len(batches)-1)
}

// FirstShift compares the means and variances of a batch at the first layer with the statistics that the last
// checkpoint stores for it.
//
// The results mean and variance are root mean squares over the channels. The mean is in stored standard deviations. The
// variance is of the logarithms of the ratios. The spread is the mean logarithm of the ratios of standard deviations.
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
