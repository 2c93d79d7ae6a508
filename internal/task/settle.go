package task

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
	"github.com/swagwrap/swagwrap/calibrate/regression"
)

// Settling is a task that compares the average over the first members of an example with the average over all members.
// Every task is one. The divergences are those of the delta method: they are exact for small variances.
type Settling interface {
	Task
	// Unsettled says how far an average may be from the average over all members.
	//   - average and variance: Width numbers each, and their variances about the average over all.
	//   - threshold: of a [Decided] task, on the uncalibrated probability of class 1; 0 stands for the usual one.
	//   - nats: the expected increase of the NLL, for each number that [Task.Likelihoods] returns.
	//   - errors: the distance of the prediction from another one, in standard errors; +Inf without decisions.
	Unsettled(average, variance []float64, threshold float64) (nats, errors float64)
	// Changed reports whether two calibrated outcomes lead to different decisions.
	Changed(a, b []float64, threshold float64) bool
	// Match fits how averages over few members differ from the averages of the same examples over all members.
	Match(few, all []Average) Stage
	// Complete corrects an average over few members, so that it is like one over all members.
	Complete(few *Average, s Stage)
}

// Stage says how averages over few members become like averages over all members.
type Stage struct {
	// Temperature divides the log-probabilities or log-odds. Averages over few members are too certain. It is 1 for a
	// regression.
	Temperature float64 `json:"temperature"`
	// Offset and Slope correct the mutual information, or the epistemic variance as a part of the whole variance: few
	// members show less of it. Their values are those of least squares.
	Offset float64 `json:"offset"`
	Slope  float64 `json:"slope"`
}

// NoStage changes nothing.
var NoStage = Stage{1, 0, 1}

// both returns the numbers that f finds in averages over few and over all members.
func both(few, all []Average, f func(Average) []float64) (x, y []float64) {
	for i, a := range few {
		x, y = append(x, f(a)...), append(y, f(all[i])...)
	}
	return x, y
}

// stageOf returns a stage for the disagreement of few and of all members, for each example.
func stageOf(temperature float64, few, all []float64) Stage {
	offset, slope := stat.LinearRegression(few, all, nil, false)
	switch {
	case !(slope >= 0): // also if all values in few are equal
		offset, slope = stat.Mean(all, nil), 0
	case offset < 0:
		offset, slope = 0, floats.Dot(few, all)/floats.Dot(few, few)
	}
	return Stage{temperature, max(0, offset), slope}
}

// matched returns the temperature at which averages over few members are like those over all members. One at its bound only
// shows a direction, and nothing is corrected.
func matched(logits []float64, classes int, wanted []float64) float64 {
	if t := calibrate.MatchTemperature(logits, classes, wanted); !t.AtBound {
		return t.T
	}
	return NoStage.Temperature
}

// disagreement corrects the disagreement of few members. limit is its largest value.
func (s Stage) disagreement(few, limit float64) float64 {
	return min(s.Offset+s.Slope*max(0, few), limit)
}

// Unsettled returns ½·Σ var(p̄)/p̄, the second-order term of KL(p‖p̄). The prediction changes if the two largest
// probabilities change places.
func (t classes) Unsettled(p, variance []float64, _ float64) (nats, errors float64) {
	first, second := -1, -1
	for c, v := range p {
		if v > 0 {
			nats += variance[c] / v / 2
		}
		switch {
		case first < 0 || v > p[first]:
			first, second = c, first
		case second < 0 || v > p[second]:
			second = c
		}
	}
	// The errors of two probabilities are often opposite, so their standard errors add up.
	return nats, distance(p[first]-p[second], math.Sqrt(variance[first])+math.Sqrt(variance[second]))
}

// distance returns gap/width. No gap is one of 0 standard errors.
func distance(gap, width float64) float64 {
	if gap <= 0 {
		return 0
	}
	return gap / width // +Inf if all members agree
}

// Increase returns the expected increase of the NLL if few replaces the outcome all and the labels follow all: KL(all‖few), for
// each number that [Task.Likelihoods] returns. Both are calibrated outcomes of one example. It is +Inf if only few excludes
// a label. Independent labels count as two classes each, and regressions are Gaussians.
func Increase(t Settling, all, few []float64) (nats float64) {
	switch t := t.(type) {
	case labels:
		return relativeEntropy(t.Pairs(all), t.Pairs(few)) / float64(t.Count)
	case regressionTask:
		for k := range t.targets {
			p, q := all[perTarget*k:], few[perTarget*k:]
			a, b := regression.MomentsOf(p[0], p[1], p[2]), regression.MomentsOf(q[0], q[1], q[2])
			ratio, d := a.Variance()/b.Variance(), a.Mean-b.Mean
			nats += max(0, (ratio-1-math.Log(ratio)+d*d/b.Variance())/2) / float64(t.targets)
		}
		return nats
	}
	return relativeEntropy(all, few)
}

// Doubt says how uncertain an average is: the entropy for each number that [Task.Likelihoods] returns, or the epistemic share of a
// variance. The less, the smaller are the divergences of other averages.
func Doubt(t Settling, average []float64) float64 {
	switch t := t.(type) {
	case labels:
		return stat.Mean(t.entropies(average), nil)
	case regressionTask:
		return stat.Mean(epistemicShares(average), nil)
	}
	return calibrate.Entropy(average)
}

// Widen sets dst to the outcome of one member that was kept in float32. Squares of means are computed again: far from 0 their rounding
// hides the spread of the members.
func Widen(t Settling, dst []float64, kept []float32) {
	for c, v := range kept {
		dst[c] = float64(v)
	}
	if _, ok := t.(regressionTask); ok {
		for o := range slices.Chunk(dst, perTarget) {
			o[1] = o[0] * o[0]
		}
	}
}

// relativeEntropy returns KL(p‖q) of probabilities.
func relativeEntropy(p, q []float64) (nats float64) {
	for c, v := range p {
		if v > 0 && v != q[c] {
			nats += v * math.Log(v/q[c])
		}
	}
	return max(0, nats) // rounding
}

func (t classes) Changed(a, b []float64, _ float64) bool {
	return appendRanked(nil, a, 1)[0] != appendRanked(nil, b, 1)[0]
}

// mutual returns the mutual information of an uncalibrated average, as a slice of one element.
func (t classes) mutual(a Average) []float64 {
	return calibrate.MutualInformation(nil, a.Outcome, t.count, []float64{a.Entropy})
}

func (t classes) Match(few, all []Average) Stage {
	p, wanted := both(few, all, func(a Average) []float64 { return a.Outcome })
	less, more := both(few, all, t.mutual)
	return stageOf(matched(calibrate.LogProbs(p, p), t.count, wanted), less, more)
}

func (t classes) Complete(few *Average, s Stage) {
	p := few.Outcome
	mutual := t.mutual(*few)[0]
	t.Apply(p, temperatureScaling.number(nil, s.Temperature), p)
	total := calibrate.Entropy(p)
	few.Entropy = total - s.disagreement(mutual, total)
}

// Unsettled differs from that of classes in the decision, which the threshold makes.
func (t binary) Unsettled(p, variance []float64, threshold float64) (nats, errors float64) {
	nats, _ = t.classes.Unsettled(p, variance, 0)
	return nats, distance(math.Abs(p[1]-orDefault(threshold)), math.Sqrt(variance[1]))
}

func (t binary) Changed(a, b []float64, threshold float64) bool {
	return byThreshold(a[1], threshold) != byThreshold(b[1], threshold)
}

// Unsettled treats each label as two classes, and returns the mean over labels. Each label has a decision, at one half.
func (t labels) Unsettled(average, variance []float64, _ float64) (nats, errors float64) {
	p, q, _ := t.parts(average)
	errors = math.Inf(1)
	for k := range p {
		if v := variance[k]; v > 0 {
			nats += v * (1/p[k] + 1/q[k]) / 2 / float64(t.Count)
		}
		errors = min(errors, distance(math.Abs(p[k]-q[k])/2, math.Sqrt(variance[k])))
	}
	return nats, errors
}

func (t labels) Changed(a, b []float64, _ float64) bool {
	for k := range t.Count {
		if (a[k] >= a[t.Count+k]) != (b[k] >= b[t.Count+k]) {
			return true
		}
	}
	return false
}

func (t labels) Match(few, all []Average) Stage {
	p, wanted := both(few, all, func(a Average) []float64 { return t.Pairs(a.Outcome) })
	less, more := both(few, all, t.mutual)
	return stageOf(matched(calibrate.LogProbs(p, p), 2, wanted), less, more)
}

// mutual returns the mutual information of each label.
func (t labels) mutual(a Average) []float64 {
	p, _, h := t.parts(a.Outcome)
	return multilabel.MutualInformation(p, h)
}

func (t labels) Complete(few *Average, s Stage) {
	mutual := t.mutual(*few)
	t.Apply(few.Outcome, temperatureScaling.number(nil, s.Temperature), few.Outcome)
	_, _, h := t.parts(few.Outcome)
	few.Entropy = 0
	for k, total := range t.entropies(few.Outcome) {
		h[k] = total - s.disagreement(mutual[k], total)
		few.Entropy += h[k]
	}
}

// Unsettled returns the divergence of two Gaussians whose means and variances differ little, as a mean over targets:
// ½·var(mean)/v + ¼·var(v̄)/v². The variance of the epistemic variance e is that of a normal sample, 2·e·var(mean).
func (t regressionTask) Unsettled(average, variance []float64, _ float64) (nats, errors float64) {
	for k := range t.targets {
		o, w := average[perTarget*k:], variance[perTarget*k:]
		m := regression.MomentsOf(o[0], o[1], o[2])
		if v := m.Variance(); w[0] > 0 || w[2] > 0 {
			nats += (w[0]/v/2 + (2*m.Epistemic*w[0]+w[2])/(v*v)/4) / float64(t.targets)
		}
	}
	return nats, math.Inf(1)
}

// epistemicShares returns the epistemic part of the variance of each target.
func epistemicShares(outcome []float64) (shares []float64) {
	for o := range slices.Chunk(outcome, perTarget) {
		m := regression.MomentsOf(o[0], o[1], o[2])
		shares = append(shares, m.Epistemic/m.Variance())
	}
	return shares
}

// Changed returns false, because a regression makes no decision.
func (t regressionTask) Changed(_, _ []float64, _ float64) bool { return false }

func (t regressionTask) Match(few, all []Average) Stage {
	less, more := both(few, all, func(a Average) []float64 { return epistemicShares(a.Outcome) })
	return stageOf(1, less, more)
}

// mostEpistemic bounds the epistemic part of a corrected variance.
const mostEpistemic = 0.99

func (t regressionTask) Complete(few *Average, s Stage) {
	for o := range slices.Chunk(few.Outcome, perTarget) {
		m := regression.MomentsOf(o[0], o[1], o[2])
		part := s.disagreement(m.Epistemic/m.Variance(), mostEpistemic)
		o[1] = o[0]*o[0] + m.Aleatoric*part/(1-part)
	}
}
