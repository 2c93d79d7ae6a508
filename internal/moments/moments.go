// Package moments compares the values that a network receives with those of training. It finds the change that would
// make the two alike.
//
// A [Sample] holds the sums of a few hundred examples of one input. A [Summary] is the part that a file keeps for
// training examples. [Compare] tests a sample against a summary. [Explain] tries changes on the sample, such as
// "normalise once less".
//
// The unit of chance is the example, since the pixels of one picture are alike. So the noise of a mean comes from the
// means of the examples, not from the number of pixels.
//
// # Invariants
//
// Two samples of the same distribution differ in at most one of 100 comparisons. This holds for any distribution of
// columns. Channels need finite fourth moments and at least 32 examples. A difference that is too small to matter is
// never reported, however many examples show it: see the limits in compare.go.
//
// # Concurrency
//
// A Sample may be read from several goroutines once it is complete.
package moments

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Kind says how the elements of an example belong together.
type Kind string

const (
	// Channels have several elements of each example in a group: the pixels of a channel.
	Channels Kind = "channels"
	// Columns have one element of each example in a group: the columns of a table.
	Columns Kind = "columns"
	// Tokens are whole numbers that name something, in sequences of any length.
	Tokens Kind = "tokens"
)

// Sample holds the examples of one input.
type Sample struct {
	Kind     Kind
	examples int
	groups   []group
	texts    []map[int64]float64 // of tokens: the share of each id, by example
}

// group holds the examples of a channel or column.
type group struct {
	means     []float64 // mean of each example
	variances []float64 // variance of each example about its own mean; nil for columns
	min, max  float64
	zeros     float64 // share of all values
	whole     float64
}

// NewSample makes a sample of channels or columns. Element k of an example is in group
// (k / step) mod groups. Examples have equal lengths, and their values are finite.
func NewSample(kind Kind, groups, step int, examples [][]float32) *Sample {
	s := &Sample{Kind: kind, examples: len(examples), groups: make([]group, groups)}
	for g := range s.groups {
		at := &s.groups[g]
		at.min, at.max = math.Inf(1), math.Inf(-1)
		count, zeros, whole := 0, 0, 0
		for _, x := range examples {
			n, mean, squares := 0.0, 0.0, 0.0
			for first := g * step; first < len(x); first += groups * step {
				for _, v := range x[first:min(first+step, len(x))] {
					v := float64(v)
					n++
					d := v - mean
					mean += d / n // Welford's algorithm
					squares += d * (v - mean)
					at.min, at.max = min(at.min, v), max(at.max, v)
					if count++; v == 0 {
						zeros++
					}
					if v == math.Trunc(v) {
						whole++
					}
				}
			}
			at.means = append(at.means, mean)
			if kind != Columns {
				at.variances = append(at.variances, squares/max(n, 1))
			}
		}
		at.zeros, at.whole = share(zeros, count), share(whole, count)
	}
	return s
}

func share(part, all int) float64 { return float64(part) / float64(max(all, 1)) }

// NewTokens makes a sample of token ids. A run of equal ids at the beginning or the end of
// an example is padding, and counts once.
func NewTokens(examples [][]int64) *Sample {
	s := &Sample{Kind: Tokens, examples: len(examples)}
	for _, ids := range examples {
		ids = unpadded(ids)
		text := map[int64]float64{}
		for _, id := range ids {
			text[id] += 1 / float64(len(ids))
		}
		s.texts = append(s.texts, text)
	}
	return s
}

// unpadded cuts runs of equal ids at both ends to one id.
func unpadded(ids []int64) []int64 {
	for len(ids) > 1 && ids[len(ids)-1] == ids[len(ids)-2] {
		ids = ids[:len(ids)-1]
	}
	for len(ids) > 1 && ids[0] == ids[1] {
		ids = ids[1:]
	}
	return ids
}

// Groups returns the number of channels or columns of an example.
func (s *Sample) Groups() int { return len(s.groups) }

// Summary is the part of a sample that a file keeps. An ensemble has the summary of training.
type Summary struct {
	Input    string  `json:"input,omitempty"` // the name of the network's input; "" for the only one
	Kind     Kind    `json:"kind"`
	Examples int     `json:"examples"`
	Groups   []Group `json:"groups,omitempty"` // of channels and columns
	// Correlation has a number for each pair of groups: (0, 1), (0, 2) … (1, 2) and so on. It is Spearman's ρ of two
	// columns, or the covariance of the examples' means of two channels. More than 64 groups have none.
	Correlation []float64 `json:"correlation,omitempty"`
	Tokens      *Ids      `json:"tokens,omitempty"`
}

// Group is the part for a channel or column.
type Group struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"` // of all values
	// MeanStd is the standard deviation, over the examples, of an example's mean. VarianceStd
	// is that of an example's mean squared distance from Mean, in units of Std².
	MeanStd     float64 `json:"mean_std"`
	VarianceStd float64 `json:"variance_std"`
	Min         float64 `json:"min"`
	Max         float64 `json:"max"`
	Zeros       float64 `json:"zeros"` // share of values that are 0
	Whole       float64 `json:"whole"` // share of values that are whole numbers
	// Quantiles of a column: 0, 1/32, … 1. The first is Min and the last Max.
	Quantiles []float64 `json:"quantiles,omitempty"`
}

// Ids is the part for token ids.
type Ids struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
	// Frequent are the most frequent ids, most frequent first; at most 64.
	Frequent []Frequent `json:"frequent"`
}

// Frequent is a frequent token id: its share of an example's ids, on average over the
// examples, and the standard deviation of that share.
type Frequent struct {
	ID    int64   `json:"id"`
	Share float64 `json:"share"`
	Std   float64 `json:"std"`
}

const (
	quantiles  = 32 // steps from the least value of a column to the largest
	correlated = 64 // columns at most
	frequent   = 64 // ids at most
)

// Summary returns the summary of the sample.
func (s *Sample) Summary() Summary {
	out := Summary{Kind: s.Kind, Examples: s.examples}
	for _, g := range s.groups {
		out.Groups = append(out.Groups, g.summary(s.Kind))
	}
	switch {
	case s.Kind == Tokens:
		out.Tokens = s.ids()
	case s.Kind == Columns && len(s.groups) <= correlated:
		out.Correlation = s.spearman()
	case s.Kind == Channels && len(s.groups) <= correlated:
		pairs(len(s.groups), func(i, j int) {
			out.Correlation = append(out.Correlation, covariance(s.groups[i].means, s.groups[j].means))
		})
	}
	return out
}

// pairs calls f with 0 ≤ i < j < n, in order.
func pairs(n int, f func(i, j int)) {
	for i := range n {
		for j := i + 1; j < n; j++ {
			f(i, j)
		}
	}
}

func covariance(a, b []float64) float64 {
	if len(a) < 2 {
		return 0
	}
	return stat.Covariance(a, b, nil)
}

// deviation returns the sample standard deviation, or 0 for fewer than two values.
func deviation(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	return stat.StdDev(x, nil)
}

func (g group) summary(kind Kind) Group {
	out := Group{Mean: stat.Mean(g.means, nil), MeanStd: deviation(g.means), Min: g.min, Max: g.max, Zeros: g.zeros, Whole: g.whole}
	squares := g.squares(out.Mean)
	variance := stat.Mean(squares, nil)
	if out.Std = math.Sqrt(variance); variance > 0 {
		out.VarianceStd = deviation(squares) / variance
	}
	if kind == Columns {
		sorted := slices.Sorted(slices.Values(g.means))
		for k := range quantiles + 1 {
			out.Quantiles = append(out.Quantiles, sorted[k*(len(sorted)-1)/quantiles])
		}
	}
	return out
}

// squares returns the mean squared distance of each example's values from a number.
func (g group) squares(from float64) []float64 {
	out := make([]float64, len(g.means))
	for i, m := range g.means {
		if out[i] = (m - from) * (m - from); g.variances != nil {
			out[i] += g.variances[i]
		}
	}
	return out
}

// spearman returns the rank correlations of all pairs of columns.
func (s *Sample) spearman() (out []float64) {
	ranked := make([][]float64, len(s.groups))
	for g := range s.groups {
		ranked[g] = ranks(s.groups[g].means)
	}
	pairs(len(s.groups), func(i, j int) {
		rho := 0.0
		if a, b := deviation(ranked[i]), deviation(ranked[j]); a > 0 && b > 0 {
			rho = math.Round(1e4*covariance(ranked[i], ranked[j])/(a*b)) / 1e4
		}
		out = append(out, rho)
	})
	return out
}

// ranks returns the rank of each value; equal values have the mean of their ranks.
func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	out := make([]float64, len(x))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			out[k] = float64(i+j-1) / 2
		}
		i = j
	}
	return out
}

// ids summarises tokens.
func (s *Sample) ids() *Ids {
	out := &Ids{Min: math.MaxInt64, Max: math.MinInt64}
	total := map[int64]float64{}
	for _, text := range s.texts {
		for id, p := range text {
			total[id] += p
			out.Min, out.Max = min(out.Min, id), max(out.Max, id)
		}
	}
	order := slices.SortedFunc(maps.Keys(total), func(a, b int64) int { return cmp.Or(cmp.Compare(total[b], total[a]), cmp.Compare(a, b)) })
	for _, id := range order[:min(frequent, len(order))] {
		shares := s.shares(id)
		out.Frequent = append(out.Frequent, Frequent{id, stat.Mean(shares, nil), deviation(shares)})
	}
	return out
}

// shares returns the share of an id in each example.
func (s *Sample) shares(id int64) []float64 {
	out := make([]float64, len(s.texts))
	for i, text := range s.texts {
		out[i] = text[id]
	}
	return out
}
