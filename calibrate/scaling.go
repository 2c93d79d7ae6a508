package calibrate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

const (
	badScaler  = "calibrate: unknown scaler"
	badScaling = "calibrate: scaling is not a single fit"
	badFolds   = "calibrate: number of folds is negative or 1"
)

// Each use of a seed has its own stream, so that equal seeds for two purposes
// do not give related draws.
const (
	foldStream      = 1
	bootstrapStream = 2
	conformalStream = 3
)

// Scaler is a way to repair probabilities by what is fitted to labelled ones. Its
// value is its name in flags and files.
type Scaler string

const (
	ByTemperature Scaler = "temperature" // [FitTemperature]
	ByVector      Scaler = "vector"      // [FitVectorScaling]
)

// Scaling is what a [Scaler] was fitted to.
type Scaling struct {
	// Temperatures has one; where it is cross-fitted one for each fold; with
	// ByVector none.
	Temperatures []float64
	// Vector is nil with ByTemperature, and where it is cross-fitted.
	Vector *VectorScaling

	CrossFitted bool
	AtBound     bool // a temperature is: see [Temperature]

	// NLLBefore and NLLAfter are mean NLLs per image of the fitting set without the
	// scaling and with it, in nats. Where it is cross-fitted, NLLAfter is that of
	// labels which the fit has not seen, and can be the larger.
	NLLBefore, NLLAfter float64

	// Warnings say why the scaling should not be taken at face value.
	Warnings []error
}

// Apply stores the scaled probabilities in dst for each row z of logits, n×classes
// in row-major order. dst has the length of logits and may be the same slice; with
// a dst, nothing is allocated.
//
// Apply panics if the scaling was cross-fitted, and so is several, and where
// [Softmax] and [VectorScaling.Apply] do.
func (s *Scaling) Apply(dst, logits []float64, classes int) []float64 {
	switch {
	case s.Vector != nil && len(s.Vector.Scale) != classes:
		panic(badVector)
	case s.Vector != nil:
		return s.Vector.Apply(dst, logits)
	case len(s.Temperatures) != 1:
		panic(badScaling)
	}
	return Softmax(dst, logits, classes, s.Temperatures[0])
}

// Fit fits to the rows of logits, n×classes in row-major order, given the n labels.
// For probabilities pass [LogProbs].
//
// It warns if a temperature is at its bound; if vector scaling ended before the
// minimum, if it puts all rows right, if a class has no label, and if there are
// fewer than 20 rows for each class. Errors and panics are those of
// [FitTemperature].
func (m Scaler) Fit(logits []float64, classes int, labels []int) (*Scaling, error) {
	s, err := newScored(logits, classes, labels)
	if err != nil {
		return nil, err
	}
	f := m.fit(s, s.all())
	m.warn(&f, len(labels), classes)
	return &f.Scaling, nil
}

// CrossFit stores probabilities in dst, n×classes in the order of logits, each row
// scaled without having seen its own label: the images are split at random into
// folds, and each fold is scaled by what fits the others best. Whatever [Evaluate]
// says of them is said of labels not seen in the fit. dst has the length of logits
// and may be the same slice.
//
// Comparing methods each at its own temperature, fitted on parts of the test
// set, is the protocol of Ashukha et al. (2020), who use 2 folds.
//
// Zero folds mean 2. The split depends on seed and on the number of images alone.
// Warnings are those of [Scaler.Fit] for any of the folds, and so are the errors,
// with one for fewer images than folds. CrossFit panics if folds is negative or 1,
// and where Fit does.
func (m Scaler) CrossFit(dst, logits []float64, classes int, labels []int, folds int, seed uint64) (probs []float64, scaling *Scaling, err error) {
	s, split, err := newFolds(logits, classes, labels, folds, seed)
	if err != nil {
		return nil, nil, err
	}
	dst = destination(dst, len(logits))
	whole := fit{Scaling: Scaling{CrossFitted: true}}
	whole.NLLBefore, _, _ = s.loss(s.all(), 1)
	fits := make([]fit, len(split))
	fewest := len(labels)
	for i, f := range split { // all before the first row of logits may be overwritten
		fits[i] = m.fit(s, f.others)
		whole.NLLAfter += fits[i].nll(s, f.rows) * float64(len(f.rows)) / float64(len(labels))
		whole.join(fits[i])
		fewest = min(fewest, len(f.others))
	}
	for i, f := range split {
		for _, k := range f.rows {
			fits[i].Apply(dst[k*classes:(k+1)*classes], s.row(k), classes)
		}
	}
	m.warn(&whole, fewest, classes)
	return dst, &whole.Scaling, nil
}

// fit is a scaling, with what its warnings are of.
type fit struct {
	Scaling
	bound                 float64 // the temperature that is at one, or 0
	unfinished, separated bool
	absent                []int // classes
}

// fit fits to the given rows.
func (m Scaler) fit(s scored, rows []int) fit {
	switch m {
	case ByTemperature:
		t := s.fit(rows)
		f := fit{Scaling: Scaling{Temperatures: []float64{t.T}, AtBound: t.AtBound, NLLBefore: t.NLLBefore, NLLAfter: t.NLLAfter}}
		if t.AtBound {
			f.bound = t.T
		}
		return f
	case ByVector:
		v := s.fitVector(rows)
		return fit{Scaling{Vector: &v, NLLBefore: v.NLLBefore, NLLAfter: v.NLL}, 0, !v.Converged, v.Separated, v.Absent}
	}
	panic(badScaler)
}

// nll returns the mean NLL of the given rows after scaling.
func (f *fit) nll(s scored, rows []int) (nll float64) {
	if f.Vector != nil {
		return s.vectorNLL(rows, *f.Vector)
	}
	nll, _, _ = s.loss(rows, 1/f.Temperatures[0])
	return nll
}

// join adds the fit of another fold.
func (f *fit) join(other fit) {
	f.Temperatures = append(f.Temperatures, other.Temperatures...)
	f.AtBound, f.bound = f.AtBound || other.AtBound, cmp.Or(f.bound, other.bound)
	f.unfinished = f.unfinished || other.unfinished
	f.separated = f.separated || other.separated
	f.absent = append(f.absent, other.absent...)
}

// rowsPerClass lets each of the 2·classes numbers of vector scaling rest on ten
// rows.
const rowsPerClass = 20

// warn says what is wrong with fits to so many rows each.
func (m Scaler) warn(f *fit, rows, classes int) {
	warn := func(format string, args ...any) { f.Warnings = append(f.Warnings, fmt.Errorf(format, args...)) }
	if f.AtBound {
		warn("T = %g is at its bound, so it only tells the direction: fit on more rows", f.bound)
	}
	if m != ByVector {
		return
	}
	if f.unfinished {
		warn("vector scaling: the fit ended before it converged")
	}
	if f.separated {
		warn("vector scaling: all rows fitted on are right after it, so that nothing bounds the scales but the ridge: fit on more")
	}
	slices.Sort(f.absent)
	if absent := slices.Compact(f.absent); len(absent) > 0 {
		warn("vector scaling: %d of %d classes have no label among the rows fitted on, the first is %d: nothing is known about their probabilities",
			len(absent), classes, absent[0])
	}
	if want := rowsPerClass * classes; rows < want {
		warn("vector scaling: %d numbers are fitted on %d rows: a temperature is safer below %d", 2*classes, rows, want)
	}
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
