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

// Each use of a seed has its own stream, so that equal seeds for two purposes do not give related draws.
const (
	foldStream      = 1
	bootstrapStream = 2
	conformalStream = 3
)

// Scaler is a way to repair probabilities by a fit to labelled examples. Its value is its name in flags and files.
type Scaler string

const (
	ByTemperature Scaler = "temperature" // [FitTemperature]
	ByVector      Scaler = "vector"      // [FitVectorScaling]
)

// Scaling is the result of fitting a [Scaler].
type Scaling struct {
	// Temperatures has one element, or one for each fold if CrossFitted. It is empty with ByVector.
	Temperatures []float64
	// Vector is nil with ByTemperature, and if CrossFitted.
	Vector *VectorScaling

	CrossFitted bool
	AtBound     bool // whether a temperature is at its bound: see [Temperature]

	// NLLBefore and NLLAfter are the mean NLLs per image of the fitting set without and with the scaling, in nats. If
	// CrossFitted, NLLAfter uses labels that were not used to fit, and can be the larger.
	NLLBefore, NLLAfter float64

	// Warnings are reasons not to take the scaling at face value.
	Warnings []error
}

// Apply stores the scaled probabilities in dst for each row z of logits, n×classes in row-major order. dst has the
// length of logits and may be the same slice. If dst is not nil, nothing is allocated.
//
// Apply panics if the scaling was cross-fitted, because it then consists of several, and in the cases where [Softmax]
// and [VectorScaling.Apply] panic.
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

// Fit fits to the rows of logits, n×classes in row-major order, given the n labels. For probabilities pass
// [LogProbs].
//
// Fit warns if a temperature is at its bound. For vector scaling it warns if the fit ended before the minimum or all
// rows are right after scaling. It also warns if a class has no label, and if there are fewer than 20 rows per class.
// Errors and panics are those of [FitTemperature].
func (m Scaler) Fit(logits []float64, classes int, labels []int) (*Scaling, error) {
	s, err := newScored(logits, classes, labels)
	if err != nil {
		return nil, err
	}
	return m.fit(s, allRows(len(labels)), len(labels)), nil
}

// CrossFit stores scaled probabilities in dst, n×classes in the order of logits. No row is scaled by a fit to its own
// label. The images are split at random into folds, and each fold is scaled by the best fit to the others. So
// [Evaluate] can score the result on the same labels. dst has the length of logits and may be the same slice.
//
// To compare methods, each at its own temperature fitted on parts of the test set, is the protocol of Ashukha et al.
// (2020), who use 2 folds.
//
// Zero folds mean 2. The split depends only on seed and on the number of images. Warnings and errors are those of
// [Scaler.Fit] for any of the folds. It is also an error if there are fewer images than folds. CrossFit panics if
// folds is negative or 1, and in the cases where Fit panics.
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
	for f, rows := range parts { // first read all rows, because dst may be the same slice as logits
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

// Folds cuts the row numbers of n images at random into folds parts. They are those of [Scaler.CrossFit] with the
// same seed.
func Folds(n, folds int, seed uint64) [][]int {
	order := rand.New(rand.NewPCG(seed, foldStream)).Perm(n)
	parts := make([][]int, folds)
	for f := range parts {
		parts[f] = order[f*n/folds : (f+1)*n/folds]
	}
	return parts
}

// fit fits to the given rows. The argument fewest is the smallest number of rows in any of several fits.
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

// join adds the fit of another fold. It keeps equal warnings only once.
func (s *Scaling) join(fold *Scaling) {
	s.Temperatures = append(s.Temperatures, fold.Temperatures...)
	s.AtBound = s.AtBound || fold.AtBound
	for _, w := range fold.Warnings {
		if !slices.ContainsFunc(s.Warnings, func(known error) bool { return known.Error() == w.Error() }) {
			s.Warnings = append(s.Warnings, w)
		}
	}
}

type warnings []error

func (w *warnings) addf(format string, args ...any) { *w = append(*w, fmt.Errorf(format, args...)) }

func (t Temperature) warnings() (list warnings) {
	if t.AtBound {
		list.addf("T = %g is at its bound, so it only tells the direction: fit on more rows", t.T)
	}
	return list
}

// rowsPerClass gives each of the 2·classes numbers of vector scaling ten rows.
const rowsPerClass = 20

// warnings returns the problems of a fit to the given number of rows.
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
