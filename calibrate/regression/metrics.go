package regression

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

const (
	badScores = "regression: no scores, or not n × targets"
	badBins   = "regression: number of bins is negative"
)

const (
	// defaultBins is small, because test sets of tables are small and the ENCE grows with the noise of a bin.
	defaultBins = 10
	// minPerBin is the number of predictions that a bin should contain. With 10, the standard error of its RMSE is 22
	// %.
	minPerBin = 10
)

// Quality holds the scores of distributions against the true values.
type Quality struct {
	LogLikelihood float64 // mean per example, nats
	CRPS          float64 // mean, in the target's units
	Coverage      float64 // share of true values in their 95 % intervals, 0 to 1
	Width         float64 // mean width of these intervals, in the target's units
}

// Metrics are the scores of the predictions of one target, or the means over several.
type Metrics struct {
	N         int     // examples
	RMSE, MAE float64 // errors of the predicted mean, in the target's units
	Std       float64 // mean predicted standard deviation
	Aleatoric float64 // mean aleatoric variance
	Epistemic float64
	ENCE      float64 // see [ENCE]; 0 is calibrated

	Mixture  Quality // NaN if a score has no mixture
	Gaussian Quality // the quality of Gaussians with the mixture's moments, with the paper's intervals

	// Warnings are reasons not to take a score at face value. They are not failures, but the user must see them.
	Warnings []error
}

// Evaluation holds the metrics of each target, and their means. A mean over targets with different units has no unit.
// Use it to compare methods; only its log-likelihood and coverage have a meaning of their own.
type Evaluation struct {
	Targets []Metrics
	Mean    Metrics
}

// Evaluate returns the metrics of n predictions of each of the targets; scores are n × targets, row-major. It warns
// if a density is 0, which happens for a true value so far out that float64 underflows. It also warns if there are
// fewer than 10 predictions per bin of the ENCE. Evaluate panics if there are no scores, or if they are not n × targets.
func Evaluate(scores []Score, targets int) Evaluation {
	if targets < 1 || len(scores) == 0 || len(scores)%targets != 0 {
		panic(badScores)
	}
	var e Evaluation
	column := make([]Score, len(scores)/targets)
	for t := range targets {
		for i := range column {
			column[i] = scores[i*targets+t]
		}
		m := evaluate(column)
		e.Targets = append(e.Targets, m)
		e.Mean.add(m, 1/float64(targets))
	}
	return e
}

func evaluate(scores []Score) Metrics {
	m, n := Metrics{N: len(scores)}, float64(len(scores))
	misses := make([]float64, len(scores))
	for i, s := range scores {
		misses[i] = s.Error()
		m.Std += s.Moments.Std() / n
		m.Aleatoric += s.Moments.Aleatoric / n
		m.Epistemic += s.Moments.Epistemic / n
	}
	m.RMSE, m.MAE = floats.Norm(misses, 2)/math.Sqrt(n), floats.Norm(misses, 1)/n
	m.ENCE = ENCE(scores, 0)
	m.Mixture = quality(scores, func(s Score) Marks { return s.Mixture })
	m.Gaussian = quality(scores, func(s Score) Marks { return s.Gaussian })
	if math.IsInf(m.Gaussian.LogLikelihood, -1) || math.IsInf(m.Mixture.LogLikelihood, -1) {
		m.Warnings = append(m.Warnings, errors.New("log-likelihood is infinite: a true value is so far from its prediction that its "+
			"density is 0"))
	}
	if want := defaultBins * minPerBin; m.N < want {
		m.Warnings = append(m.Warnings, fmt.Errorf("ENCE is mostly noise: %d predictions, want at least %d (%d per bin)", m.N,
			want, minPerBin))
	}
	return m
}

func quality(scores []Score, of func(Score) Marks) (q Quality) {
	n, held := float64(len(scores)), 0
	for _, s := range scores {
		m := of(s)
		q.LogLikelihood += m.LogLikelihood / n
		q.CRPS += m.CRPS / n
		q.Width += (m.High - m.Low) / n
		switch {
		case m.Low <= s.Y && s.Y <= m.High:
			held++
		case math.IsNaN(m.Low):
			q.Coverage = math.NaN()
		}
	}
	q.Coverage += float64(held) / n
	return q
}

// PITHistogram counts PIT values in bins of equal width from 0 to 1, with value u in bin min(floor(u·bins), bins−1). The
// counts are about equal if the distributions are correct (Gneiting et al. 2007, section 3.1). Zero bins mean 10. It
// panics if bins is negative or a value is not in [0, 1].
func PITHistogram(pits []float64, bins int) []int {
	if bins < 0 {
		panic(badBins)
	}
	counts := make([]int, cmp.Or(bins, defaultBins))
	for _, u := range pits {
		if !(0 <= u && u <= 1) {
			panic(badPIT)
		}
		counts[min(int(u*float64(len(counts))), len(counts)-1)]++
	}
	return counts
}

// add adds a share of the metrics of a target. It keeps equal warnings only once.
func (m *Metrics) add(o Metrics, share float64) {
	m.N = o.N
	m.RMSE += share * o.RMSE
	m.MAE += share * o.MAE
	m.Std += share * o.Std
	m.Aleatoric += share * o.Aleatoric
	m.Epistemic += share * o.Epistemic
	m.ENCE += share * o.ENCE
	m.Mixture.add(o.Mixture, share)
	m.Gaussian.add(o.Gaussian, share)
	for _, w := range o.Warnings {
		if !slices.ContainsFunc(m.Warnings, func(known error) bool { return known.Error() == w.Error() }) {
			m.Warnings = append(m.Warnings, w)
		}
	}
}

func (q *Quality) add(o Quality, share float64) {
	q.LogLikelihood += share * o.LogLikelihood
	q.CRPS += share * o.CRPS
	q.Coverage += share * o.Coverage
	q.Width += share * o.Width
}
