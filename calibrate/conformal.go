package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/swagwrap/swagwrap/internal/splitmix"
)

const badSizes = "calibrate: number of sizes is not the number of rows"

// APS makes sets of classes that contain the true class of a new example with probability Level. These are adaptive
// prediction sets, the conformal method of Romano, Sesia and Candès (2020), section 2.
//
// Order the classes by descending probability. A class whose predecessors have the probabilities π_1 … π_{r−1} has
// the score
//
//	π_1 + … + π_{r−1} + u·π_r
//
// with u uniform in [0, 1), one for each example. The set contains the classes with scores up to Threshold. Of equal
// probabilities the first class comes first.
//
// The promise holds on average over examples from the distribution of the fit, for any network. For a single class it
// can fail. If a network is confident and right more often than Level, some sets are empty. Otherwise they would
// contain the true class too often.
type APS struct {
	Level     float64 // required share of examples whose set contains the true class
	Threshold float64 // from 0 to about 1
	N         int     // number of examples of the fit
	Seed      uint64  // of the numbers u
}

// FitAPS returns the sets of the given level, between 0 and 1, from labelled predictions that the network was not
// trained on. Threshold is the ⌈(n+1)·level⌉-th smallest score of the n true classes.
//
// FitAPS returns an error if n is below level/(1−level), which is 9 examples for a level of 0.9. Then there is no such
// score, and only the set of all classes keeps the promise. FitAPS panics if level is not between 0 and 1.
func FitAPS(p Predictions, level float64, seed uint64) (APS, error) {
	p.check()
	checkLevel(level)
	return newAPS(p.apsScores(seed), level, seed)
}

// newAPS returns the sets for the scores of the true classes in ascending order.
func newAPS(scores []float64, level float64, seed uint64) (APS, error) {
	n := len(scores)
	k := ceilShare(level, n+1)
	if k > n {
		return APS{}, fmt.Errorf("%d rows for sets of level %v, want at least %d", n, level, fewest(level))
	}
	return APS{Level: level, Threshold: scores[k-1], N: n, Seed: seed}, nil
}

// apsScores returns the scores of the true classes in ascending order.
func (p Predictions) apsScores(seed uint64) []float64 {
	scores := make([]float64, p.Len())
	var sorted []float64
	for i, label := range p.Labels {
		scores[i], sorted = apsScore(p.Row(i), label, uniform(seed, fitStream, i), sorted)
	}
	slices.Sort(scores)
	return scores
}

// fewest returns the smallest n that suffices for a fit.
func fewest(level float64) int {
	n := max(1, int(level/(1-level))-1)
	for ceilShare(level, n+1) > n {
		n++
	}
	return n
}

// Sizes stores the number of classes in the set of each example in dst. dst has the length p.Len(), or is nil. An
// example's set depends on its row: in another row it may be one class larger or smaller.
func (a APS) Sizes(dst []int, p Predictions) []int {
	p.check()
	if dst == nil {
		dst = make([]int, p.Len())
	}
	if len(dst) != p.Len() {
		panic(badSizes)
	}
	var sorted []float64
	for i := range dst {
		dst[i], sorted = a.size(p.Row(i), i, sorted)
	}
	return dst
}

// Coverage returns the share of examples whose set contains the true class. For examples like those of the fit it is
// Level with a standard error of about √(Level·(1−Level)/n).
func (a APS) Coverage(p Predictions) float64 {
	p.check()
	return a.judge(p).Coverage
}

// Sets summarises the sets of a level over examples. All fields but Level are NaN if there are too few examples to fit
// them.
type Sets struct {
	Level    float64
	Size     float64 // mean number of classes in a set
	Coverage float64 // share of sets that contain the true class
	Empty    float64 // share of empty sets
}

// judge applies the sets to labelled predictions.
func (a APS) judge(p Predictions) Sets {
	out := Sets{Level: a.Level}
	var sorted []float64
	var size int
	n := float64(p.Len())
	for i, label := range p.Labels {
		size, sorted = a.size(p.Row(i), i, sorted)
		out.Size += float64(size)
		if rank(p.Row(i), label) < size {
			out.Coverage++
		}
		if size == 0 {
			out.Empty++
		}
	}
	out.Size, out.Coverage, out.Empty = out.Size/n, out.Coverage/n, out.Empty/n
	return out
}

// SetLevels returns the usual levels of sets in ascending order.
func SetLevels() []float64 { return []float64{0.9, 0.95, 0.99, 0.999} }

// SetsAbove returns the sets of the lowest level above an accuracy, or those of the highest level if none is above.
// Below the accuracy, the most probable class alone is right more often than promised. The sets are then that class
// or empty, and their size is meaningless. Compare methods at one level, above the best of their accuracies.
//
// The argument sets is in ascending order of levels, as in [Evaluate]. If it is empty, SetsAbove returns NaN.
func SetsAbove(sets []Sets, accuracy float64) Sets {
	for _, s := range sets {
		if s.Level > accuracy {
			return s
		}
	}
	if len(sets) == 0 {
		return Sets{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	}
	return sets[len(sets)-1]
}

// size returns the size of the set of row i. Scores rise with the rank, so the set consists of the first classes. The
// slice sorted is a buffer.
func (a APS) size(row []float64, i int, sorted []float64) (int, []float64) {
	sorted = sortedDescending(sorted, row)
	u := uniform(a.Seed, applyStream, i)
	var above float64
	for r, x := range sorted {
		if above+u*x > a.Threshold {
			return r, sorted
		}
		above += x
	}
	return len(sorted), sorted
}

// apsScore returns the score of a class, with the same arithmetic as size.
func apsScore(row []float64, class int, u float64, sorted []float64) (float64, []float64) {
	sorted = sortedDescending(sorted, row)
	var above float64
	for _, x := range sorted[:rank(row, class)] {
		above += x
	}
	return above + u*row[class], sorted
}

// Fits and applications use different numbers u, because the promise requires that they are independent.
const (
	fitStream   = 4
	applyStream = 5
)

// uniform returns a number in [0, 1) that depends only on its arguments. It has no state, so rows may come in any
// order.
func uniform(seed, stream uint64, row int) float64 {
	x := splitmix.At(splitmix.At(splitmix.At(seed, 0)+stream, 0)+uint64(row), 0)
	return float64(x>>11) * 0x1p-53
}

// crossSets judges sets of several levels on p. Each random half of p gets the thresholds that were fitted on the
// other half.
func crossSets(p Predictions, levels []float64, seed uint64) []Sets {
	n := p.Len()
	order := rand.New(rand.NewPCG(seed, conformalStream)).Perm(n)
	halves := [2]Predictions{p.pick(order[:n/2]), p.pick(order[n/2:])}
	scores := [2][]float64{halves[0].apsScores(seed), halves[1].apsScores(seed)}
	out := make([]Sets, len(levels))
	for l, level := range levels {
		checkLevel(level)
		out[l].Level = level
		for h, other := range [2]Predictions{halves[1], halves[0]} {
			a, err := newAPS(scores[h], level, seed)
			if err != nil {
				out[l] = Sets{level, math.NaN(), math.NaN(), math.NaN()}
				break
			}
			s, share := a.judge(other), float64(other.Len())/float64(n)
			out[l].Size += share * s.Size
			out[l].Coverage += share * s.Coverage
			out[l].Empty += share * s.Empty
		}
	}
	return out
}

// pick returns a copy of the given rows.
func (p Predictions) pick(rows []int) Predictions {
	q := Predictions{Classes: p.Classes, Probs: make([]float64, 0, len(rows)*p.Classes), Labels: make([]int, 0, len(rows))}
	for _, i := range rows {
		q.Probs = append(q.Probs, p.Row(i)...)
		q.Labels = append(q.Labels, p.Labels[i])
	}
	return q
}
