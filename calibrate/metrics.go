package calibrate

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

const badTopK = "calibrate: k is less than 1"

// minPerBin is the number of predictions a bin should hold. With 10, the
// standard error of its accuracy is up to 0.16, far above most calibration
// errors; below that a bin says nothing.
const minPerBin = 10

// EvaluateOptions are the options of [Evaluate]. The zero value is ready to use.
type EvaluateOptions struct {
	ECE ECEOptions // zero: 20 bins of equal mass
}

// Metrics are the scores of a set of predictions.
type Metrics struct {
	N        int     // images
	Accuracy float64 // share of images, 0 to 1
	NLL      float64 // mean per image, nats; +Inf if a true class has probability 0
	Brier    float64 // mean per image, 0 to 2
	ECE      float64 // 0 to 1

	// Warnings say why a score should not be taken at face value. They are not
	// failures, but whoever reads the scores must see them.
	Warnings []error
}

// Evaluate returns the scores of p.
//
// It warns if true classes have probability 0, if there are fewer than 10
// predictions to a bin, if bins of equal mass stay empty, and if
// [SwagReference] leaves predictions out.
func Evaluate(p Predictions, opts EvaluateOptions) Metrics {
	bins := Reliability(p, opts.ECE)
	m := Metrics{
		N:        p.Len(),
		Accuracy: Accuracy(p),
		NLL:      NegLogLikelihood(p),
		Brier:    Brier(p),
		ECE:      calibrationError(bins, p.Len()),
	}
	if math.IsInf(m.NLL, 1) {
		count, first := impossible(p)
		m.warnf("NLL is infinite: %d of %d true classes have probability 0, the first in row %d", count, m.N, first)
	}
	if want := opts.ECE.bins(); m.N/want < minPerBin {
		m.warnf("ECE is mostly noise: %d predictions, want at least %d (%d per bin)", m.N, minPerBin*want, minPerBin)
	}
	var empty, counted int
	for _, b := range bins {
		counted += b.Count
		if b.Count == 0 {
			empty++
		}
	}
	// Bins of equal width are empty as a matter of course: no confidence is
	// below 1/Classes.
	if opts.ECE.Binning == EqualMass && empty > 0 {
		m.warnf("ECE: %d of %d bins are empty, because confidences are equal or few", empty, len(bins))
	}
	if counted < m.N {
		m.warnf("ECE leaves out %d of %d predictions, on the edges of %v bins", m.N-counted, m.N, opts.ECE.Binning)
	}
	return m
}

func (m *Metrics) warnf(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Errorf(format, args...))
}

// impossible returns how many true classes have probability 0, and the first
// row where that is so.
func impossible(p Predictions) (count, first int) {
	for i, label := range p.Labels {
		if p.Row(i)[label] == 0 {
			if count == 0 {
				first = i
			}
			count++
		}
	}
	return count, first
}

// Accuracy returns the share of images whose most probable class is the true
// one. Of equally probable classes the first counts, as in NumPy's argmax.
func Accuracy(p Predictions) float64 { return TopK(p, 1) }

// TopK returns the share of images whose true class is among the k most
// probable. Of equally probable classes the first rank higher. TopK panics if k
// is less than 1.
func TopK(p Predictions, k int) float64 {
	p.check()
	if k < 1 {
		panic(badTopK)
	}
	var hits int
	for i, label := range p.Labels {
		row := p.Row(i)
		var above int
		for c, x := range row {
			if x > row[label] || x == row[label] && c < label {
				above++
			}
		}
		if above < k {
			hits++
		}
	}
	return float64(hits) / float64(p.Len())
}

// NegLogLikelihood returns the mean of -log p(true class) over the images, in
// nats. It is +Inf if any true class has probability 0.
func NegLogLikelihood(p Predictions) float64 {
	return stat.Mean(NegLogLikelihoods(nil, p), nil)
}

// NegLogLikelihoods stores -log p(true class) of each image in dst, in nats. dst
// has the length p.Len().
func NegLogLikelihoods(dst []float64, p Predictions) []float64 {
	p.check()
	dst = destination(dst, p.Len())
	for i, label := range p.Labels {
		dst[i] = 0 - math.Log(p.Row(i)[label]) // a plain minus would turn 0 into -0
	}
	return dst
}

// Brier returns the mean over the images of Σ_c (p_c − 1[c is the true class])²,
// Brier's own form (1950), which goes from 0 to 2.
func Brier(p Predictions) float64 {
	p.check()
	var sum float64
	for i, label := range p.Labels {
		for c, x := range p.Row(i) {
			if c == label {
				x--
			}
			sum += x * x
		}
	}
	return sum / float64(p.Len())
}

// top returns the most probable class, the first of equals, and its probability.
func top(row []float64) (class int, confidence float64) {
	class = floats.MaxIdx(row)
	return class, row[class]
}
