package calibrate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

const badSplits = "calibrate: number of splits is negative"

// Splits is how many random splits [Scaler.CrossFits] takes where it is not told.
const Splits = 10

// CrossFitted is what a scaling is worth on labels that its fit has not seen.
type CrossFitted struct {
	Splits, Folds int
	// NLLBefore is the mean NLL per image without the scaling, and NLLAfter with it,
	// the mean over the splits; in nats.
	NLLBefore, NLLAfter float64
	// Spread is the standard deviation of NLLAfter from one split to the next, 0 of
	// one: how much of a single split's figure is luck.
	Spread float64
}

// Best is the NLL with the better of the scaling and none, NLLBefore or NLLAfter. What
// is fitted costs about 1/(2n) nats for each number, n images being fitted on, so that a
// method whose probabilities are right would lose by a scaling of its own. Leaving it as
// it is, T = 1, is one of its temperatures.
func (c CrossFitted) Best() float64 { return min(c.NLLBefore, c.NLLAfter) }

// CrossFits repeats [Scaler.CrossFit] over several random splits of the images, as the
// test-time cross-validation of Ashukha et al. (2020) does, so that the result does not
// hang on one of them. The first split is that of CrossFit with the same seed.
//
// Zero folds mean 2, and zero splits [Splits]. Errors are those of CrossFit. CrossFits
// panics if splits is negative, and where CrossFit does.
func (m Scaler) CrossFits(logits []float64, classes int, labels []int, folds, splits int, seed uint64) (CrossFitted, error) {
	out := CrossFitted{Splits: cmp.Or(splits, Splits), Folds: cmp.Or(folds, 2)}
	if out.Splits < 0 {
		panic(badSplits)
	}
	if out.Folds < 2 {
		panic(badFolds)
	}
	s, err := newScored(logits, classes, labels)
	if err != nil {
		return CrossFitted{}, err
	}
	n := len(labels)
	if n < out.Folds {
		return CrossFitted{}, fmt.Errorf("%d rows for %d folds", n, out.Folds)
	}
	out.NLLBefore, _, _ = s.loss(allRows(n), 1)
	rng := rand.New(rand.NewPCG(seed, foldStream))
	after := make([]float64, out.Splits)
	for k := range after {
		order := rng.Perm(n)
		for f := range out.Folds {
			start, end := f*n/out.Folds, (f+1)*n/out.Folds
			fit := m.fit(s, slices.Concat(order[:start], order[end:]), n)
			after[k] += fit.nll(s, order[start:end]) * float64(end-start) / float64(n)
		}
	}
	out.NLLAfter = stat.Mean(after, nil)
	if len(after) > 1 {
		out.Spread = stat.StdDev(after, nil)
	}
	return out, nil
}
