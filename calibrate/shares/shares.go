// Package shares estimates how often each class occurs in data without labels, and corrects probabilities for it.
//
// Training had shares s of the classes, and other data have shares π. If the examples of each class are the same kind of examples in
// both, the probabilities of the other data are p·w divided by their sum, with w = π/s. [Labelled.Estimate] finds π by maximum
// likelihood, as the algorithm of Saerens, Latinne and Decaestecker (2002) does. s is the mean of the probabilities of labelled examples
// (Alexandari et al. 2020), so data like these give s again.
//
// # Invariants
//
// An estimate says whether it may be used: see [Verdict]. The labelled examples check each assumption that they can.
package shares

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// mostValues is the largest number of probabilities that are kept of labelled examples, and LeastLabelled the fewest examples.
const (
	mostValues    = 1 << 19
	LeastLabelled = 50
	MostClasses   = 256
)

// keptStream separates the uses of random numbers: "shares" in ASCII.
const keptStream = 0x736861726573

// Labelled has the calibrated probabilities of labelled examples.
type Labelled struct {
	Classes int
	Probs   []float32 // n×Classes
	Labels  []int
}

// NewLabelled keeps labelled examples, or a random part of many. It returns nil if they are too few, or the classes too many.
func NewLabelled(classes int, probs []float64, labels []int) *Labelled {
	n := len(labels)
	if n < LeastLabelled || classes < 2 || classes > MostClasses {
		return nil
	}
	rows := rand.New(rand.NewPCG(keptStream, 0)).Perm(n)[:min(n, mostValues/classes)]
	slices.Sort(rows)
	l := &Labelled{Classes: classes}
	for _, i := range rows {
		for _, p := range probs[i*classes:][:classes] {
			l.Probs = append(l.Probs, float32(p))
		}
		l.Labels = append(l.Labels, labels[i])
	}
	return l
}

// Sound returns an error if the content of a file is invalid.
func (l *Labelled) Sound() error {
	if n := len(l.Labels); l.Classes < 2 || l.Classes > MostClasses || n < LeastLabelled || len(l.Probs) != n*l.Classes {
		return fmt.Errorf("%d probabilities of %d examples of %d classes", len(l.Probs), n, l.Classes)
	}
	for i, label := range l.Labels {
		sum := 0.0
		for _, p := range l.Probs[i*l.Classes:][:l.Classes] {
			if !(p >= 0) {
				return fmt.Errorf("example %d has a probability %v", i, p)
			}
			sum += float64(p)
		}
		if label < 0 || label >= l.Classes || !(math.Abs(sum-1) < 1e-3) {
			return fmt.Errorf("example %d has the class %d of %d, and probabilities that add up to %v", i, label, l.Classes, sum)
		}
	}
	return nil
}

// Rows calls use with the probabilities of each example. Each call of it gives the same examples. use does not keep its argument.
type Rows func(use func(p []float64) error) error

// Each gives the rows of the labelled examples. See [Rows].
func (l *Labelled) Each(use func(p []float64) error) error {
	p := make([]float64, l.Classes)
	for i := range l.Labels {
		for c := range p {
			p[c] = float64(l.Probs[i*l.Classes+c])
		}
		if err := use(p); err != nil {
			return err
		}
	}
	return nil
}

// Training returns the shares that the probabilities assume: their means.
func (l *Labelled) Training() []float64 {
	sums := make([]float64, l.Classes)
	l.Each(func(p []float64) error { floats.Add(sums, p); return nil }) // use gives no error
	floats.Scale(1/floats.Sum(sums), sums)
	return sums
}

// Factors returns w, by which probabilities for the shares of training are multiplied. All shares of training must be above 0.
func Factors(training, shares []float64) []float64 {
	w := slices.Clone(shares)
	floats.Div(w, training)
	return w
}

// Correct stores p·w, divided by its sum, in p. Nothing changes if no class with a share is possible.
func Correct(p, w []float64) {
	sum := floats.Dot(p, w)
	if !(sum > 0) {
		return
	}
	for c := range p {
		p[c] *= w[c] / sum
	}
}

// Tolerance is how far shares may be from a sum of 1.
const Tolerance = 1e-3

// Check returns an error unless the numbers are shares.
func Check(shares []float64) error {
	for _, v := range shares {
		if !(v >= 0 && v <= 1) {
			return fmt.Errorf("share %v, want a number from 0 to 1", v)
		}
	}
	if sum := floats.Sum(shares); !(math.Abs(sum-1) <= Tolerance) {
		return fmt.Errorf("shares add up to %.6g, want 1", sum)
	}
	return nil
}
