package probe

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/internal/task"
)

// values summarizes rows of scores.
type values struct {
	low, high float64
	distinct  int // number of different rows, at most enough
}

// enough is the number of different rows for which a common sum is no coincidence.
const enough = 8

func look(rows [][]float32) values {
	v := values{low: math.Inf(1), high: math.Inf(-1)}
	var seen [][]float32
	for _, row := range rows {
		v.low, v.high = min(v.low, float64(slices.Min(row))), max(v.high, float64(slices.Max(row)))
		if len(seen) < enough && !slices.ContainsFunc(seen, func(s []float32) bool { return slices.Equal(s, row) }) {
			seen = append(seen, row)
		}
	}
	v.distinct = len(seen)
	return v
}

// spread returns the standard deviation of f(score) over the rows, as the root mean square of the columns.
func spread(rows [][]float32, f func(float64) float64) float64 {
	column, total := make([]float64, len(rows)), 0.0
	for k := range rows[0] {
		for i, row := range rows {
			column[i] = f(float64(row[k]))
		}
		_, variance := stat.PopMeanVariance(column, nil)
		total += variance / float64(len(rows[0]))
	}
	return math.Sqrt(total)
}

// How close to 1 sums must be. A softmax in float32 stays within 1e-6, one in a 16-bit type
// or with clipped probabilities within [task.SumTolerance]. The sums of a few rows of
// logits may be near 1 by chance, so there the tolerance is tighter.
const (
	fewTolerance  = 1e-5
	halfTolerance = 1e-3 // of a few rows of a 16-bit type
	// steady bounds the variation of the sums, as a share of the variation of the scores. The sums of logits that
	// hardly differ between examples hardly differ either.
	steady = 0.02
)

func (r *Record) tolerance(v values) float64 {
	switch {
	case v.distinct >= enough:
		return task.SumTolerance
	case r.OutputProperties.Half:
		return halfTolerance
	}
	return fewTolerance
}

// sums returns the mean of Σ f(score) over the rows, whether all rows have this sum up to rounding, and whether it is 1 too. Unless
// when is true it looks at nothing.
func (r *Record) sums(when bool, rows [][]float32, v values, f func(float64) float64) (same, one bool, mean float64) {
	if !when {
		return false, false, 0
	}
	totals, worst := make([]float64, len(rows)), 0.0
	for i, row := range rows {
		totals[i] = total(row, f)
	}
	mean, variance := stat.PopMeanVariance(totals, nil)
	for _, t := range totals {
		worst = max(worst, math.Abs(t-mean))
	}
	same = worst <= r.tolerance(v)*math.Abs(mean) && (v.distinct < 2 || math.Sqrt(variance) <= steady*spread(rows, f))
	return same, same && math.Abs(mean-1) <= r.tolerance(v), mean
}

// total returns Σ f(score) of a row.
func total(row []float32, f func(float64) float64) (sum float64) {
	for _, x := range row {
		sum += f(float64(x))
	}
	return sum
}

func itself(x float64) float64 { return x }

func infinite(v float32) bool { return v-v != 0 } // or NaN

// tinyAboveZero is how far above 0 rounding may bring the logarithm of a probability.
// clampedSum is how far from 1 exponentials may add up of logarithms that were clamped.
const (
	tinyAboveZero = 1e-5
	clampedSum    = 0.1
)

// overBatch reports whether the scores of each class add up to 1 over the examples of each
// batch.
func (r *Record) overBatch(rows [][]float32) bool {
	if r.Batch < 2 || len(rows)*r.Count != len(r.Scores) || len(rows) < r.Batch {
		return false
	}
	for first := 0; first+r.Batch <= len(rows); first += r.Batch {
		for k := range r.Count {
			total := 0.0
			for _, row := range rows[first : first+r.Batch] {
				total += float64(row[k])
			}
			if math.Abs(total-1) > halfTolerance {
				return false
			}
		}
	}
	return true
}

// some reports whether too many rows add up to 1 for chance, although not all do.
func (r *Record) some(rows [][]float32) bool {
	count := 0
	for _, row := range rows {
		if math.Abs(total(row, itself)-1) <= fewTolerance && slices.Max(row) > 0 {
			count++
		}
	}
	return count >= enough && count*10 >= len(rows)
}

// labelled returns the scores whose label is known, and these labels.
func (r *Record) labelled(rows [][]float32) (scores []float64, labels []bool) {
	if len(rows)*r.Count != len(r.Scores) || r.Labels.Len() != len(rows) {
		return nil, nil
	}
	for i, row := range rows {
		switch l := r.Labels.At(i); {
		case r.Labels.Classes != nil:
			if c := l.Class(); c == 0 || c == 1 {
				scores, labels = append(scores, float64(row[0])), append(labels, c == 1)
			}
		case l.Width == len(row):
			for k, v := range l.Values {
				if v == 0 || v == 1 {
					scores, labels = append(scores, float64(row[k])), append(labels, v == 1)
				}
			}
		}
	}
	return scores, labels
}

// How sure labels must be: a form is rejected where, among the scores below ½ or among the
// others, labels are further from it than so many standard deviations. The other form must
// be nearer by a factor. Logits must agree with the labels too, also below ½: there the
// labels of an overconfident network's probabilities cannot look like logits' labels. Of
// 10,000 simulated networks, some of them overconfident, none was decided wrongly
// (scores_test.go).
const (
	rejected    = 5
	agrees      = 1.5
	nearer      = 2
	fewestKnown = 16
)

// tell decides whether scores in [0, 1] are probabilities or logits. It counts how often the label is 1, for low
// scores and for high ones. Logits in [0, 1] stand for probabilities from ½ to ¾. So a share of ones well below ½
// rules logits out, and so does a share near 1.
func tell(scores []float64, labels []bool) (task.Form, bool) {
	if len(scores) < fewestKnown {
		return "", false
	}
	as := func(p func(float64) float64) (worst, distance float64) {
		for _, high := range []bool{false, true} {
			expected, ones, variance, n := 0.0, 0.0, 0.0, 0.0
			for i, s := range scores {
				if (s >= 0.5) != high {
					continue
				}
				q := p(s)
				expected, variance, n = expected+q, variance+q*(1-q), n+1
				if labels[i] {
					ones++
				}
			}
			if n > 0 {
				off := math.Abs(ones - expected)
				worst = max(worst, off/math.Sqrt(max(variance, 0.25))) // at least that of one coin
				distance += off / float64(len(scores))
			}
		}
		return worst, distance
	}
	probability, far := as(itself)
	logit, farther := as(func(z float64) float64 { return 1 / (1 + math.Exp(-z)) })
	low := 0
	for _, s := range scores {
		if s < 0.5 {
			low++
		}
	}
	switch {
	case logit > rejected && farther > nearer*far:
		return task.Probabilities, true
	case probability > rejected && far > nearer*farther && logit < agrees && low >= 2*fewestKnown:
		return task.Logits, true
	}
	return "", false
}
