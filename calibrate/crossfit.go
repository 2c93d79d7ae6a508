package calibrate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

const badSplits = "calibrate: number of splits is negative"

// Splits is the default number of random splits of [Scaler.CrossFits].
const Splits = 10

// CrossFitted is the effect of a scaling on labels that were not used to fit it.
type CrossFitted struct {
	Splits, Folds int
	// NLLBefore is the mean NLL per image without the scaling. NLLAfter is the same with it, averaged over the
	// splits. Both are in nats.
	NLLBefore, NLLAfter float64
	// Spread is the standard deviation of NLLAfter between splits, or 0 for one split. It shows the luck in a single
	// split.
	Spread float64
}

// Best returns the lower of NLLBefore and NLLAfter. A fit on n images costs about 1/(2n) nats for each fitted number.
// So a scaling would make a method worse if its probabilities are right already. T = 1, which changes nothing, is one
// of the possible temperatures.
func (c CrossFitted) Best() float64 { return min(c.NLLBefore, c.NLLAfter) }

// CrossFits repeats [Scaler.CrossFit] over several random splits of the images, as in the test-time cross-validation
// of Ashukha et al. (2020). The result then depends less on a single split. The first split is that of CrossFit with
// the same seed.
//
// Zero folds mean 2, and zero splits mean [Splits]. Errors are those of CrossFit. CrossFits panics if splits is
// negative, and in the cases where CrossFit panics.
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
