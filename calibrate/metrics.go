package calibrate

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
)

const badTopK = "calibrate: k is less than 1"

// ErrInfinite is the warning that true values have probability 0.
var ErrInfinite = errors.New("NLL is infinite")

// minPerBin is the number of predictions that a bin should contain. With 10, the standard error of its accuracy is up
// to 0.16, far above most calibration errors. Smaller bins are meaningless.
const minPerBin = 10

// EvaluateOptions are the options of [Evaluate]. The zero value is ready to use.
type EvaluateOptions struct {
	ECE ECEOptions // zero: 20 bins of equal mass

	// Seed cuts random halves of the examples. Each half gets the sets of classes, and the recalibration of [Refinement],
	// that were fitted on the other half.
	Seed uint64

	// Short leaves out what takes longer than all other scores of many classes: Refinement, SmoothECE, Entropy, and all sets but
	// APS. They are NaN.
	Short bool
}

// Metrics are the scores of a set of predictions.
type Metrics struct {
	N        int     // examples
	Accuracy float64 // share of examples, 0 to 1
	Top5     float64 // the same for the five most probable classes; NaN for at most five classes
	NLL      float64 // mean per example, nats; +Inf if a true class has probability 0
	Brier    float64 // mean per example, 0 to 2
	ECE      float64 // 0 to 1, with EvaluateOptions.ECE
	Entropy  float64 // mean predictive entropy, nats; 0 to ln(classes)

	// Calibration errors in other ways, with the same number of bins. The first two are [ECE] with EqualWidth and
	// SwagReference.
	ECEEqualWidth, ECEReference float64
	ClasswiseECE                float64 // see [ClasswiseECE]; with EvaluateOptions.ECE
	ECE15                       float64 // [ECE] with [GuoBins], always

	AURC          float64 // see [AURC]; 0 to 1
	SelectiveRisk float64 // share of wrong answers at a coverage of 90 %, 0 to 1; see [SelectiveRisk]

	Refinement float64 // see [Refinement]; nats
	SmoothECE  float64 // see [SmoothECE]; 0 to 1

	// Sets are the sets of classes for each level, in ascending order. [SetsAbove] selects the one to use.
	Sets []Sets

	// Warnings are reasons not to take a score at face value. They are not failures, but the user must see them.
	Warnings []error
}

// Evaluate returns the scores of p.
//
// It warns if true classes have probability 0, if there are fewer than 10 predictions per bin, and if bins of equal
// mass are empty. It also warns if [SwagReference] was requested and leaves predictions out, and if there are too few
// examples for sets.
func Evaluate(p Predictions, opts EvaluateOptions) Metrics {
	p.check()
	sorted := sortedTopLabels(p)
	bins := reliability(sorted, opts.ECE)
	risks := riskCoverage(sorted)
	m := Metrics{
		N:             p.Len(),
		Accuracy:      Accuracy(p),
		Top5:          math.NaN(),
		NLL:           NegLogLikelihood(p),
		Brier:         Brier(p),
		ECE:           calibrationError(bins, p.Len()),
		Entropy:       math.NaN(),
		ECEEqualWidth: calibrationError(equalWidth(sorted, opts.ECE.bins()), p.Len()),
		ECEReference:  calibrationError(swagReference(sorted, opts.ECE.bins()), p.Len()),
		ClasswiseECE:  ClasswiseECE(p, opts.ECE),
		ECE15:         calibrationError(reliability(sorted, GuoBins()), p.Len()),
		AURC:          areaUnder(risks),
		SelectiveRisk: riskAt(risks, 0.9),
		Refinement:    math.NaN(),
		SmoothECE:     math.NaN(),
	}
	if !opts.Short {
		m.Entropy = stat.Mean(PredictiveEntropy(nil, p.Probs, p.Classes), nil)
		m.Refinement, m.SmoothECE = Refinement(p, opts.Seed), SmoothECE(sorted)
	}
	if p.Classes > 5 {
		m.Top5 = TopK(p, 5)
	}
	if math.IsInf(m.NLL, 1) {
		count, first := impossible(p)
		m.warnf("%w: %d of %d true classes have probability 0, the first in row %d", ErrInfinite, count, m.N, first)
	}
	m.warnOfBins(bins, opts.ECE)
	m.conform(p, opts)
	return m
}

func (m *Metrics) conform(p Predictions, opts EvaluateOptions) {
	by := []method{aps, raps, classwise}
	if opts.Short {
		by = by[:1]
	}
	m.Sets = crossSets(p, by, opts.Seed)
	if s := SetsAbove(m.Sets, m.Accuracy); math.IsNaN(s.APS.Size) {
		m.warnf("set size: %d predictions, want at least %d in each half for sets of %g %%", m.N, fewest(s.Level), 100*s.Level)
	}
}

func (m *Metrics) warnOfBins(bins []ReliabilityBin, opts ECEOptions) {
	if want := opts.bins(); m.N/want < minPerBin {
		m.warnf("ECE is mostly noise: %d predictions, want at least %d (%d per bin)", m.N, minPerBin*want, minPerBin)
	}
	var empty, counted int
	for _, b := range bins {
		counted += b.Count
		if b.Count == 0 {
			empty++
		}
	}
	// Bins of equal width are often empty, because no confidence is below 1/Classes.
	if opts.Binning == EqualMass && empty > 0 {
		m.warnf("ECE: %d of %d bins are empty, because confidences are equal or few", empty, len(bins))
	}
	if counted < m.N {
		m.warnf("ECE leaves out %d of %d predictions, on the edges of %v bins", m.N-counted, m.N, opts.Binning)
	}
}

func (m *Metrics) warnf(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Errorf(format, args...))
}

// impossible returns the number of true classes with probability 0, and the first row with one.
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

// Accuracy returns the share of examples whose most probable class is the true one. Of equally probable classes the
// first counts, as in NumPy's argmax.
func Accuracy(p Predictions) float64 { return TopK(p, 1) }

// TopK returns the share of examples whose true class is among the k most probable. Of equally probable classes the
// first ranks higher. TopK panics if k is less than 1.
func TopK(p Predictions, k int) float64 {
	p.check()
	if k < 1 {
		panic(badTopK)
	}
	var hits int
	for i, label := range p.Labels {
		if rank(p.Row(i), label) < k {
			hits++
		}
	}
	return float64(hits) / float64(p.Len())
}

// NegLogLikelihood returns the mean of -log p(true class) over the examples, in
// nats. It is +Inf if any true class has probability 0.
func NegLogLikelihood(p Predictions) float64 {
	return stat.Mean(NegLogLikelihoods(nil, p), nil)
}

// NegLogLikelihoods stores -log p(true class) of each example in dst, in nats. dst
// has the length p.Len().
func NegLogLikelihoods(dst []float64, p Predictions) []float64 {
	return p.losses(dst, negLogLikelihood)
}

func negLogLikelihood(row []float64, label int) float64 {
	return 0 - math.Log(row[label]) // a plain minus would turn 0 into -0
}

// Brier returns the mean over the examples of Σ_c (p_c − 1[c is the true class])². This is Brier's original form
// (1950), with values from 0 to 2.
func Brier(p Predictions) float64 {
	return stat.Mean(Briers(nil, p), nil)
}

// Briers stores Σ_c (p_c − 1[c is the true class])² of each example in dst. dst has
// the length p.Len().
func Briers(dst []float64, p Predictions) []float64 {
	return p.losses(dst, brier)
}

func brier(row []float64, label int) (sum float64) {
	for c, x := range row {
		if c == label {
			x--
		}
		sum += x * x
	}
	return sum
}

// Judged holds the scores of one prediction, from which scores of many can be added up.
type Judged struct {
	TopLabel
	NLL, Brier float64
}

// JudgeRow scores the probabilities of one example with its true class.
func JudgeRow(row []float64, label int) Judged {
	class, confidence := top(row)
	return Judged{TopLabel{confidence, class == label}, negLogLikelihood(row, label), brier(row, label)}
}

// losses stores the loss of each row in dst.
func (p Predictions) losses(dst []float64, loss func(row []float64, label int) float64) []float64 {
	p.check()
	dst = destination(dst, p.Len())
	for i, label := range p.Labels {
		dst[i] = loss(p.Row(i), label)
	}
	return dst
}

// rank returns the number of classes that are more probable than class, or equally probable and before it.
func rank(row []float64, class int) int {
	var above int
	for c, x := range row {
		if x > row[class] || x == row[class] && c < class {
			above++
		}
	}
	return above
}

// top returns the most probable class, the first if several are equal, and its probability.
func top(row []float64) (class int, confidence float64) {
	for c, x := range row {
		if best := row[class]; x > best || best != best {
			class = c
		}
	}
	return class, row[class]
}
