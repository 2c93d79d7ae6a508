package bnupdate

import (
	"math"

	"github.com/swagwrap/swagwrap/weights"
)

// Check holds the statistics that the last checkpoint stores against those
// recomputed for its own weights. Where the images are not those that it was
// trained on, or are not prepared as they were then, the two differ by more than
// training explains, and the statistics of SWA and of members are as wrong.
type Check struct {
	Images int          `json:"images"` // that the statistics were recomputed from
	Layers []LayerCheck `json:"layers"` // in the network's order, first that nearest to its input
	// Unchecked is the number of layers whose statistics are equal in all
	// checkpoints: they say nothing of the images.
	Unchecked int `json:"unchecked,omitempty"`
}

// LayerCheck is a [Check] of one layer. Differences are root mean squares over
// channels: of means in standard deviations, and of logarithms of variances.
type LayerCheck struct {
	Layer     string  `json:"layer"` // the name of its running mean
	Means     float64 `json:"means"`
	Variances float64 `json:"variances"`
	// What training explains of them: see [Plan.Check].
	ExpectedMeans     float64 `json:"expected_means"`
	ExpectedVariances float64 `json:"expected_variances"`
}

// Score is the root mean square of both differences in units of what training
// explains.
func (l LayerCheck) Score() float64 {
	m, v := ratio(l.Means, l.ExpectedMeans), ratio(l.Variances, l.ExpectedVariances)
	return math.Sqrt((m*m + v*v) / 2)
}

func ratio(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return a / b
}

// leastBatches is the number below which the scatter between batches is known too
// badly to go by.
const leastBatches = 8

// Limits of [LayerCheck.Off]. docs/batch-norm.md has the networks that they were
// measured on.
const (
	maxScore = 1.3
	// Differences below these move no prediction that anyone would notice.
	leastMeans     = 0.01
	leastVariances = 0.03
)

// Off reports whether training does not explain the differences.
func (l LayerCheck) Off() bool {
	return l.Score() > maxScore && (l.Means > leastMeans || l.Variances > leastVariances)
}

// Off returns the layers that are off.
func (c *Check) Off() (off []LayerCheck) {
	for _, l := range c.Layers {
		if l.Off() {
			off = append(off, l)
		}
	}
	return off
}

// FirstOff reports whether the layer nearest to the input is off. It sees the
// images through one convolution or so: what is wrong is the images themselves,
// or how they are prepared. Where only later layers are off, it is what the images
// show, or the size of the batches.
func (c *Check) FirstOff() bool { return len(c.Layers) > 0 && c.Layers[0].Off() }

// Check compares what the last checkpoint stores with fresh, a recomputation for
// its weights. stored has a row for each checkpoint, in the order of training and
// each in the layout's order.
//
// It returns nil where there are too few batches to tell: fewer than 8.
//
// Two things separate the two where the images are right. What is stored is a
// moving average over the last batches of training: with a momentum a (ONNX's;
// 1−a is PyTorch's) its variance is (1−a)/(1+a) of that between batches. And the
// weights moved while it was taken. How far is not known, but they moved further
// from one checkpoint to the next, and so did what these store, which has the
// noise of two moving averages besides. So the expected square is that of the
// differences between consecutive checkpoints, or twice that of the moving average
// if it is more, and the squared standard error of what was recomputed.
func (p *Plan) Check(stored [][]float32, fresh Result) *Check {
	if len(fresh.batches) < leastBatches {
		return nil
	}
	c := &Check{Images: fresh.Images}
	last := stored[len(stored)-1]
	for i, l := range p.layers {
		if alike(stored, l.mean) && alike(stored, l.vari) {
			c.Unchecked++
			continue
		}
		out := LayerCheck{Layer: l.name}
		out.Means, out.Variances = l.distance(last, fresh.Statistics)
		var steps, stepsVar float64
		n := float64(len(stored) - 1)
		for t := 1; t < len(stored); t++ {
			m, v := l.distance(stored[t-1], stored[t])
			steps, stepsVar = steps+m*m, stepsVar+v*v
		}
		noise, noiseVar := p.noise(i, fresh.batches)
		window := 2 * (1 - l.momentum) / (1 + l.momentum) * float64(len(fresh.batches))
		out.ExpectedMeans = math.Sqrt(max(steps/n, window*noise) + noise)
		out.ExpectedVariances = math.Sqrt(max(stepsVar/n, window*noiseVar) + noiseVar)
		c.Layers = append(c.Layers, out)
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

// distance returns how far two vectors of statistics are apart in a layer, as
// [LayerCheck] has it, with the variances of b. As in the layer itself, epsilon is
// added to variances: channels that are dead do not count.
func (l layer) distance(a, b []float32) (means, variances float64) {
	for c := range l.mean.Len() {
		va, vb := float64(a[l.vari.Offset+c])+l.epsilon, float64(b[l.vari.Offset+c])+l.epsilon
		d := float64(a[l.mean.Offset+c]) - float64(b[l.mean.Offset+c])
		r := math.Log(va / vb)
		means, variances = means+d*d/vb, variances+r*r
	}
	n := float64(l.mean.Len())
	return math.Sqrt(means / n), math.Sqrt(variances / n)
}

// noise returns the squared standard errors of layer i's statistics in the units
// of distance.
func (p *Plan) noise(i int, batches []Batch) (means, variances float64) {
	l := p.layers[i]
	for c := range int(l.mean.Len()) {
		_, se := scatter(batches, func(b Batch) float64 { return float64(b.Mean[i][c]) })
		v, seVar := scatter(batches, func(b Batch) float64 { return b.variance(i, c) })
		v += l.epsilon
		means += se / v
		variances += seVar / (v * v)
	}
	n := float64(l.mean.Len())
	return means / n, variances / n
}
