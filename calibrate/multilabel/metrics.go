package multilabel

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
)

// Label holds the scores of one label.
type Label struct {
	Known     int     // examples for which the label is known
	Positives int     // examples that have the label
	NLL       float64 // mean over the known examples, nats; NaN if there are none
	Brier     float64 // mean of (p−y)², 0 to 1; NaN if there are none

	// The following are NaN if the label is degenerate.
	ECE              float64 // calibration error of p, 0 to 1
	AveragePrecision float64 // by the step rule of scikit-learn: see [detect.AUPR]
	AUROC            float64
}

// Degenerate reports whether the known values of the label are all equal, or there are none.
func (l Label) Degenerate() bool { return l.Positives == 0 || l.Positives == l.Known }

// Metrics are the scores of a set of predictions.
type Metrics struct {
	N     int // examples
	Known int // known labels of all examples

	NLL   float64 // mean over all known labels, nats; +Inf if the target has probability 0
	Brier float64 // mean of (p−y)² over the same, 0 to 1: half of the Brier score of two classes

	// The following leave out degenerate labels, and are NaN if all are degenerate.
	MicroECE             float64 // of all probabilities together
	MacroECE             float64 // mean of Label.ECE
	MeanAveragePrecision float64 // mean of Label.AveragePrecision
	AUROC                float64 // mean of Label.AUROC

	Each []Label // by label

	// Warnings are reasons not to take a score at face value. They are not failures, but the user must see them.
	Warnings []error
}

// NegLogLikelihoods returns −log p of present labels and −log(1−p) of absent ones, n×Labels, in nats.
// It is 0 for unknown labels, which no mean may include.
func NegLogLikelihoods(p Predictions) []float64 {
	p.check()
	out := make([]float64, len(p.Targets))
	for k, y := range p.Targets {
		switch {
		case y == Unknown:
		case y == 1:
			out[k] = 0 - math.Log(p.Probs[k]) // a plain minus would turn 0 into −0
		case p.Complements != nil:
			out[k] = 0 - math.Log(p.Complements[k])
		default:
			out[k] = 0 - math.Log1p(-p.Probs[k])
		}
	}
	return out
}

// Briers returns (p−y)² of each label, n×Labels, and 0 for unknown labels.
func Briers(p Predictions) []float64 {
	p.check()
	out := make([]float64, len(p.Targets))
	for k, y := range p.Targets {
		off := p.Probs[k]
		switch y {
		case Unknown:
			off = 0
		case 1:
			off = p.not(k)
		}
		out[k] = off * off
	}
	return out
}

// Evaluate returns the scores of p. The calibration error of a label is that of the probability of one of two
// classes,
//
//	Σ_b (n_b/n) |mean p − share of examples with the label|
//
// over the bins of ece (Naeini et al. 2015). Evaluate warns if a true value has probability 0, if a label is
// degenerate, and if there are too few examples per bin.
func Evaluate(p Predictions, ece calibrate.ECEOptions) Metrics {
	p.check()
	m := Metrics{N: p.Len(), MicroECE: math.NaN()}
	losses, briers := NegLogLikelihoods(p), Briers(p)
	var pooled []calibrate.TopLabel
	fewest, infinite := math.MaxInt, 0
	for label := range p.Labels {
		c := p.column(label)
		nan := math.NaN()
		l := Label{Known: len(c.top), Positives: len(c.out), ECE: nan, AveragePrecision: nan, AUROC: nan}
		for k := label; k < len(p.Targets); k += p.Labels { // 0 for unknown labels
			l.NLL += losses[k]
			l.Brier += briers[k]
			if math.IsInf(losses[k], 1) {
				infinite++
			}
		}
		m.NLL, m.Brier, m.Known = m.NLL+l.NLL, m.Brier+l.Brier, m.Known+l.Known
		l.NLL, l.Brier = l.NLL/float64(l.Known), l.Brier/float64(l.Known)
		if !l.Degenerate() {
			pooled = append(pooled, c.top...)
			l.ECE = calibrate.TopLabelECE(c.top, ece)
			l.AveragePrecision, l.AUROC = detect.AUPR(c.in, c.out), detect.AUROC(c.in, c.out)
			fewest = min(fewest, l.Known)
		}
		m.Each = append(m.Each, l)
	}
	m.NLL, m.Brier = m.NLL/float64(m.Known), m.Brier/float64(m.Known)
	if pooled != nil {
		m.MicroECE = calibrate.TopLabelECE(pooled, ece)
	}
	m.MacroECE = m.mean(func(l Label) float64 { return l.ECE })
	m.MeanAveragePrecision = m.mean(func(l Label) float64 { return l.AveragePrecision })
	m.AUROC = m.mean(func(l Label) float64 { return l.AUROC })
	m.warn(infinite, fewest, ece)
	return m
}

// mean returns the mean of a score over the labels that are not degenerate, or NaN if there are none.
func (m *Metrics) mean(of func(Label) float64) float64 {
	sum, count := 0.0, 0.0
	for _, l := range m.Each {
		if !l.Degenerate() {
			sum += of(l)
			count++
		}
	}
	return sum / count
}

// minPerBin is the number of predictions that a bin should contain, as in package calibrate.
const minPerBin = 10

func (m *Metrics) warn(infinite, fewest int, ece calibrate.ECEOptions) {
	add := func(err error) { m.Warnings = append(m.Warnings, err) }
	if m.Known == 0 {
		add(errors.New("nothing is known of any label"))
	}
	if infinite > 0 {
		add(fmt.Errorf("%w: the values of %d of %d labels have probability 0", calibrate.ErrInfinite, infinite, m.Known))
	}
	degenerate, first := 0, 0
	for i, l := range m.Each {
		if l.Degenerate() {
			if degenerate == 0 {
				first = i
			}
			degenerate++
		}
	}
	if degenerate > 0 {
		add(fmt.Errorf("%d of %d labels have one value only, and are in no calibration error, average precision or AUROC: the first is %d",
			degenerate, len(m.Each), first))
	}
	if want := cmp.Or(ece.Bins, defaultBins) * minPerBin; fewest < want {
		add(fmt.Errorf("macro ECE is mostly noise: a label is known of %d examples, want at least %d (%d per bin)", fewest,
			want, minPerBin))
	}
}

// defaultBins is the number of bins of the zero [calibrate.ECEOptions].
const defaultBins = 20
