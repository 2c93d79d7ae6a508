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
	conformalStream = 3
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
// Zero folds mean 2. The split depends on seed and on the number of images alone.
// The errors are those of FitTemperature, and fewer images than folds. CrossFitNLL
// panics if folds is negative or 1, or if the number of logits is not
// labels × classes.
func CrossFitNLL(logits []float64, classes int, labels []int, folds int, seed uint64) (nll float64, ts []float64, err error) {
	s, split, err := newFolds(logits, classes, labels, folds, seed)
	if err != nil {
		return 0, nil, err
	}
	for _, f := range split {
		t := s.fit(f.others).T
		foldNLL, _, _ := s.loss(f.rows, 1/t)
		nll += foldNLL * float64(len(f.rows)) / float64(len(labels))
		ts = append(ts, t)
	}
	return nll, ts, nil
}

// CrossFitTemperature returns the probabilities behind [CrossFitNLL], n×classes in
// the order of logits: each row at the temperature that was fitted without its
// fold. Whatever [Evaluate] says of them is said of labels not seen in the fit.
func CrossFitTemperature(logits []float64, classes int, labels []int, folds int, seed uint64) (probs, ts []float64, err error) {
	s, split, err := newFolds(logits, classes, labels, folds, seed)
	if err != nil {
		return nil, nil, err
	}
	probs = make([]float64, len(logits))
	for _, f := range split {
		t := s.fit(f.others).T
		for _, i := range f.rows {
			Softmax(probs[i*classes:(i+1)*classes], s.row(i), classes, t)
		}
		ts = append(ts, t)
	}
	return probs, ts, nil
}

// CrossFitVector is [CrossFitTemperature] with [FitVectorScaling] in place of a
// temperature, on the same folds.
func CrossFitVector(logits []float64, classes int, labels []int, folds int, seed uint64) (probs []float64, err error) {
	s, split, err := newFolds(logits, classes, labels, folds, seed)
	if err != nil {
		return nil, err
	}
	probs = make([]float64, len(logits))
	for _, f := range split {
		v := s.fitVector(f.others)
		for _, i := range f.rows {
			v.Apply(probs[i*classes:(i+1)*classes], s.row(i))
		}
	}
	return probs, nil
}

// fold is some of the rows, and all others.
type fold struct {
	rows, others []int
}

// newFolds checks logits and splits their rows at random.
func newFolds(logits []float64, classes int, labels []int, folds int, seed uint64) (scored, []fold, error) {
	folds = cmp.Or(folds, 2)
	if folds < 2 {
		panic(badFolds)
	}
	s, err := newScored(logits, classes, labels)
	if err != nil {
		return scored{}, nil, err
	}
	n := len(labels)
	if n < folds {
		return scored{}, nil, fmt.Errorf("%d rows for %d folds", n, folds)
	}
	order := rand.New(rand.NewPCG(seed, foldStream)).Perm(n)
	split := make([]fold, folds)
	for f := range split {
		start, end := f*n/folds, (f+1)*n/folds
		split[f] = fold{order[start:end], slices.Concat(order[:start], order[end:])}
	}
	return s, split, nil
}
