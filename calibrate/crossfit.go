package calibrate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

const badFolds = "calibrate: number of folds is negative or 1"

// Each use of a seed has its own stream, so that equal seeds for two purposes
// do not give related draws.
const (
	foldStream      = 1
	bootstrapStream = 2
)

// CrossFitNLL returns the mean NLL per image, in nats, that logits reach at their
// best temperature without having seen their own labels: the images are split
// at random into folds, and each fold is scored at the temperature that
// [FitTemperature] finds on the others. ts holds that temperature for each fold;
// one at [MinTemperature] or [MaxTemperature] was at a bound.
//
// Comparing methods each at its own temperature, fitted on parts of the test
// set, is the protocol of Ashukha et al. (2020), who use 2 folds.
//
// Zero folds mean 2. The split depends on seed alone. The errors are those of
// FitTemperature, and fewer images than folds. CrossFitNLL panics if folds is
// negative or 1, or if the number of logits is not labels × classes.
func CrossFitNLL(logits []float64, classes int, labels []int, folds int, seed uint64) (nll float64, ts []float64, err error) {
	folds = cmp.Or(folds, 2)
	if folds < 2 {
		panic(badFolds)
	}
	s, err := newScored(logits, classes, labels)
	if err != nil {
		return 0, nil, err
	}
	n := len(labels)
	if n < folds {
		return 0, nil, fmt.Errorf("%d rows for %d folds", n, folds)
	}
	order := rand.New(rand.NewPCG(seed, foldStream)).Perm(n)
	for f := range folds {
		start, end := f*n/folds, (f+1)*n/folds
		t := s.fit(slices.Concat(order[:start], order[end:])).T
		foldNLL, _, _ := s.loss(order[start:end], 1/t)
		nll += foldNLL * float64(end-start) / float64(n)
		ts = append(ts, t)
	}
	return nll, ts, nil
}
