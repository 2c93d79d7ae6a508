package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/swagwrap/swagwrap/internal/splitmix"
)

const badSizes = "calibrate: number of sizes is not the number of rows"

// APS makes sets of classes that hold the true class of a new image with
// probability Level: adaptive prediction sets, the conformal method of Romano,
// Sesia and Candès (2020), section 2.
//
// Take the classes from the most probable one down. A class whose predecessors
// have the probabilities π_1 … π_{r−1} has the score
//
//	π_1 + … + π_{r−1} + u·π_r
//
// with u uniform in [0, 1), one for each image, and the set holds the classes
// with scores up to Threshold. Of equal probabilities the first class comes
// first.
//
// The promise is about the average over images drawn as those of the fit were,
// whatever the network: half of the classes may have it broken. The sets of a
// network that is sure and right more often than Level are empty for some
// images, for else they would hold the true class too often.
type APS struct {
	Level     float64 // share of images whose set shall hold the true class
	Threshold float64 // about 0 to 1
	N         int     // images of the fit
	Seed      uint64  // of the numbers u
}

// FitAPS returns the sets of the given level, between 0 and 1, from labelled
// predictions that the network was not trained on: Threshold is the
// ⌈(n+1)·level⌉-th smallest score of the n true classes.
//
// It is an error if n is below level/(1−level), 9 images for a level of 0.9, for
// then there is no such score and only the set of all classes keeps the promise.
// FitAPS panics if level is not between 0 and 1.
func FitAPS(p Predictions, level float64, seed uint64) (APS, error) {
	p.check()
	checkLevel(level)
	n := p.Len()
	k := ceilShare(level, n+1)
	if k > n {
		return APS{}, fmt.Errorf("%d rows for sets of level %v, want at least %d", n, level, fewest(level))
	}
	scores := make([]float64, n)
	var sorted []float64
	for i, label := range p.Labels {
		scores[i], sorted = apsScore(p.Row(i), label, uniform(seed, fitStream, i), sorted)
	}
	scores = sortedDescending(nil, scores)
	return APS{Level: level, Threshold: scores[n-k], N: n, Seed: seed}, nil
}

// fewest returns the smallest n that sets can be fitted on.
func fewest(level float64) int {
	n := max(1, int(level/(1-level))-1)
	for ceilShare(level, n+1) > n {
		n++
	}
	return n
}

// Sizes stores in dst how many classes are in the set of each image. dst has the
// length p.Len(), or is nil. The same image in another row may have a set that is
// one class larger or smaller.
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

// Coverage returns the share of images whose set holds the true class. For images
// like those of the fit it is Level, give or take √(Level·(1−Level)/n).
func (a APS) Coverage(p Predictions) float64 {
	p.check()
	covered := 0
	var sorted []float64
	var size int
	for i, label := range p.Labels {
		size, sorted = a.size(p.Row(i), i, sorted)
		if rank(p.Row(i), label) < size {
			covered++
		}
	}
	return float64(covered) / float64(p.Len())
}

// size returns the size of the set of row i. Scores ascend with the rank, so the
// set is the classes of the first ranks. sorted is memory to use again.
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

// apsScore returns the score of a class, in the arithmetic of size.
func apsScore(row []float64, class int, u float64, sorted []float64) (float64, []float64) {
	sorted = sortedDescending(sorted, row)
	var above float64
	for _, x := range sorted[:rank(row, class)] {
		above += x
	}
	return above + u*row[class], sorted
}

// The images of a fit and those of an application have their own numbers u, for
// the promise needs them to be independent.
const (
	fitStream   = 4
	applyStream = 5
)

// uniform returns a number in [0, 1) that depends on nothing but its arguments:
// a counter, not a generator with a state, so rows may come in any order.
func uniform(seed, stream uint64, row int) float64 {
	x := splitmix.At(splitmix.At(splitmix.At(seed, 0)+stream, 0)+uint64(row), 0)
	return float64(x>>11) * 0x1p-53
}

// crossAPS returns the mean size and the coverage of sets when each half of p, cut
// at random, has the threshold that was fitted on the other.
func crossAPS(p Predictions, level float64, seed uint64) (size, coverage float64, err error) {
	checkLevel(level)
	n := p.Len()
	order := rand.New(rand.NewPCG(seed, conformalStream)).Perm(n)
	halves := [2]Predictions{p.pick(order[:n/2]), p.pick(order[n/2:])}
	for h, half := range halves {
		if want := fewest(level); half.Len() < want {
			return math.NaN(), math.NaN(), fmt.Errorf("%d predictions, want at least %d in each half", n, want)
		}
		a, err := FitAPS(half, level, seed)
		if err != nil {
			return math.NaN(), math.NaN(), err
		}
		other := halves[1-h]
		share := float64(other.Len()) / float64(n)
		size += share * a.meanSize(other)
		coverage += share * a.Coverage(other)
	}
	return size, coverage, nil
}

func (a APS) meanSize(p Predictions) float64 {
	var sum int
	for _, s := range a.Sizes(nil, p) {
		sum += s
	}
	return float64(sum) / float64(p.Len())
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
