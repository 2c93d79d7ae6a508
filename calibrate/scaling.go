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
	return m.fit(s, allRows(len(labels)), len(labels)), nil
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
	folds = cmp.Or(folds, 2)
	if folds < 2 {
		panic(badFolds)
	}
	s, err := newScored(logits, classes, labels)
	if err != nil {
		return nil, nil, err
	}
	n := len(labels)
	if n < folds {
		return nil, nil, fmt.Errorf("%d rows for %d folds", n, folds)
	}
	dst = destination(dst, len(logits))
	parts := Folds(n, folds, seed)
	scaling = &Scaling{CrossFitted: true}
	scaling.NLLBefore, _, _ = s.loss(slices.Concat(parts...), 1)
	fits := make([]*Scaling, folds)
	for f, rows := range parts { // all before the first row of logits may be overwritten
		others := slices.Concat(slices.Concat(parts[:f]...), slices.Concat(parts[f+1:]...))
		fits[f] = m.fit(s, others, n-(n+folds-1)/folds)
		scaling.NLLAfter += fits[f].nll(s, rows) * float64(len(rows)) / float64(n)
		scaling.join(fits[f])
	}
	for f, fit := range fits {
		for _, i := range parts[f] {
			fit.Apply(dst[i*classes:(i+1)*classes], s.row(i), classes)
		}
	}
	return dst, scaling, nil
}

// Folds are the numbers of n images, cut at random into so many parts: those of
// [Scaler.CrossFit] with the same seed.
func Folds(n, folds int, seed uint64) [][]int {
	order := rand.New(rand.NewPCG(seed, foldStream)).Perm(n)
	parts := make([][]int, folds)
	for f := range parts {
		parts[f] = order[f*n/folds : (f+1)*n/folds]
	}
	return parts
}

// fit fits to the given rows; fewest is their number, or that of the smallest fit of
// several.
func (m Scaler) fit(s scored, rows []int, fewest int) *Scaling {
	switch m {
	case ByTemperature:
		t := s.fit(rows)
		return &Scaling{Temperatures: []float64{t.T}, AtBound: t.AtBound, NLLBefore: t.NLLBefore, NLLAfter: t.NLLAfter, Warnings: t.warnings()}
	case ByVector:
		v := s.fitVector(rows)
		return &Scaling{Vector: &v, NLLBefore: v.NLLBefore, NLLAfter: v.NLL, Warnings: v.warnings(fewest)}
	}
	panic(badScaler)
}

// nll returns the mean NLL of the given rows after scaling.
func (s *Scaling) nll(of scored, rows []int) (nll float64) {
	if s.Vector != nil {
		return of.vectorNLL(rows, *s.Vector)
	}
	nll, _, _ = of.loss(rows, 1/s.Temperatures[0])
	return nll
}

// join adds the fit of another fold. What both warn of is said once.
func (s *Scaling) join(fold *Scaling) {
	s.Temperatures = append(s.Temperatures, fold.Temperatures...)
	s.AtBound = s.AtBound || fold.AtBound
	for _, w := range fold.Warnings {
		if !slices.ContainsFunc(s.Warnings, func(known error) bool { return known.Error() == w.Error() }) {
			s.Warnings = append(s.Warnings, w)
		}
	}
}

// warnings is a list of them.
type warnings []error

func (w *warnings) addf(format string, args ...any) { *w = append(*w, fmt.Errorf(format, args...)) }

func (t Temperature) warnings() (list warnings) {
	if t.AtBound {
		list.addf("T = %g is at its bound, so it only tells the direction: fit on more rows", t.T)
	}
	return list
}

// rowsPerClass lets each of the 2·classes numbers of vector scaling rest on ten
// rows.
const rowsPerClass = 20

// warnings says what is wrong with a fit to so many rows.
func (v VectorScaling) warnings(rows int) (list warnings) {
	classes := len(v.Scale)
	if !v.Converged {
		list.addf("the fit ended before it converged")
	}
	if v.Separated {
		list.addf("all rows fitted on are right after scaling, so that nothing bounds the scales but the ridge: fit on more")
	}
	if n := len(v.Absent); n > 0 {
		list.addf("classes without a label among the rows fitted on: %d of %d, the first is %d; nothing is known about their probabilities", n, classes, v.Absent[0])
	}
	if want := rowsPerClass * classes; rows < want {
		list.addf("%d numbers are fitted on %d rows: a temperature is safer below %d", 2*classes, rows, want)
	}
	return list
}
