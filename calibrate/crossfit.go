package calibrate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

const (
	badFolds  = "calibrate: number of folds is negative or 1"
	badSplits = "calibrate: number of splits is negative"
)

// Each use of a seed has its own stream, so that equal seeds for two purposes do not give related draws.
const (
	foldStream      = 1
	conformalStream = 3
)

// Splits is the default number of random splits of [CrossFits].
const Splits = 10

// FoldsError is the error for fewer examples than folds.
type FoldsError struct {
	Have, Folds int
	Of          string // the word for what there are too few of: "row"
}

func (e *FoldsError) Error() string {
	plural := "s"
	if e.Have == 1 {
		plural = ""
	}
	return fmt.Sprintf("%d %s%s for %d folds, want at least %d", e.Have, e.Of, plural, e.Folds, e.Folds)
}

// CheckFolds returns a [*FoldsError] for fewer examples than folds, or fewer units: see [UnitFolds].
func CheckFolds(n int, units []int, folds int) error {
	if n < folds {
		return &FoldsError{n, folds, "row"}
	}
	if units != nil && slices.Max(units)+1 < folds {
		return &FoldsError{slices.Max(units) + 1, folds, "independent unit"}
	}
	return nil
}

// Folds cuts the row numbers of n examples at random into folds parts. The split depends only on the arguments.
func Folds(n, folds int, seed uint64) [][]int { return UnitFolds(nil, n, folds, seed) }

// UnitFolds is like [Folds] for examples that depend on each other. units numbers the unit of each example from 0; nil stands
// for units of one example. A unit is in one fold. The folds have about equally many examples.
func UnitFolds(units []int, n, folds int, seed uint64) [][]int {
	return unitFolds(rand.New(rand.NewPCG(seed, foldStream)), units, n, folds)
}

func unitFolds(rng *rand.Rand, units []int, n, folds int) [][]int {
	parts := make([][]int, folds)
	if units == nil {
		order := rng.Perm(n)
		for f := range parts {
			parts[f] = order[f*n/folds : (f+1)*n/folds]
		}
		return parts
	}
	of := rowsOf(units)
	for _, k := range rng.Perm(len(of)) { // to the smallest fold
		f := slices.IndexFunc(parts, func(p []int) bool {
			return !slices.ContainsFunc(parts, func(q []int) bool { return len(q) < len(p) })
		})
		parts[f] = append(parts[f], of[k]...)
	}
	return parts
}

func rowsOf(units []int) [][]int {
	of := make([][]int, slices.Max(units)+1)
	for i, k := range units {
		of[k] = append(of[k], i)
	}
	return of
}

// someUnits returns at most most of n rows: whole units at random.
func someUnits(rng *rand.Rand, units []int, n, most int) (out []int) {
	if units == nil {
		return rng.Perm(n)[:most]
	}
	of := rowsOf(units)
	for _, k := range rng.Perm(len(of)) {
		if len(out)+len(of[k]) <= most {
			out = append(out, of[k]...)
		}
	}
	return out
}

// Others returns the rows of all folds except fold f.
func Others(folds [][]int, f int) []int {
	return slices.Concat(slices.Concat(folds[:f]...), slices.Concat(folds[f+1:]...))
}

// CrossFit fits to the rows of all folds except one, and calls use with the fit and the rows of that fold. So no row is
// judged by a fit to its own label. To compare methods on parts of the test set in this way is the protocol of Ashukha
// et al. (2020), who use 2 folds. An error of fit ends it.
func CrossFit[F any](folds [][]int, fit func(rows []int) (F, error), use func(fitted F, rows []int)) error {
	for f, rows := range folds {
		fitted, err := fit(Others(folds, f))
		if err != nil {
			return err
		}
		use(fitted, rows)
	}
	return nil
}

// CrossFitted is the effect of a calibration on labels that were not used to fit it.
type CrossFitted struct {
	Splits, Folds int
	// NLLBefore is the mean NLL per example without the calibration. NLLAfter is the same with it, averaged over the
	// splits. Both are in nats.
	NLLBefore, NLLAfter float64
	// Spread is the standard deviation of NLLAfter between splits, or 0 for one split. It shows the luck in a single
	// split.
	Spread float64
}

// Best returns the lower of NLLBefore and NLLAfter. A fit on n examples costs about 1/(2n) nats for each fitted number.
// So a calibration would make a method worse if its probabilities are right already. T = 1, which changes nothing, is
// one of the possible temperatures.
func (c CrossFitted) Best() float64 { return min(c.NLLBefore, c.NLLAfter) }

// CrossFitTemperature is [CrossFits] of temperature scaling, on averaged probabilities, n×classes in row-major order. It
// takes their logarithms once. A temperature that is not determined changes nothing. units are as in [UnitFolds].
// Errors are those of [FitTemperature] on all rows, and those of CrossFits.
func CrossFitTemperature(probs []float64, labels, units []int, folds, splits int, seed uint64) (CrossFitted, error) {
	classes := len(probs) / max(1, len(labels))
	s, err := newScored(LogProbs(nil, probs), classes, labels)
	if err != nil {
		return CrossFitted{}, err
	}
	scaled := make([]float64, classes)
	return CrossFits(len(labels), units, folds, splits, seed, func(rows []int) (Temperature, error) {
		return s.fit(rows), nil
	}, func(t Temperature, rows []int) float64 {
		losses := make([]float64, len(rows))
		for k, i := range rows {
			if losses[k] = 0 - s.wanted[i]; t.T > 0 && t.Undetermined() == "" {
				losses[k] = negLogLikelihood(Softmax(scaled, s.row(i), classes, t.T), labels[i])
			}
		}
		return stat.Mean(losses, nil)
	})
}

// CrossFits repeats [CrossFit] over several random splits of n examples, as in the test-time cross-validation of
// Ashukha et al. (2020). The result then depends less on a single split. The first split is that of [Folds]. nll
// returns the mean NLL of some rows with a fit, or without one if fitted is the zero value. units are as in [UnitFolds].
//
// Zero folds mean 2, and zero splits mean [Splits]. Fewer examples or units than folds are an error. CrossFits panics if splits
// is negative, or if folds is negative or 1.
func CrossFits[F any](n int, units []int, folds, splits int, seed uint64, fit func(rows []int) (F, error),
	nll func(fitted F, rows []int) float64) (CrossFitted, error) {
	out := CrossFitted{Splits: cmp.Or(splits, Splits), Folds: cmp.Or(folds, 2)}
	if out.Splits < 0 {
		panic(badSplits)
	}
	if out.Folds < 2 {
		panic(badFolds)
	}
	if err := CheckFolds(n, units, out.Folds); err != nil {
		return CrossFitted{}, err
	}
	var none F
	out.NLLBefore = nll(none, allRows(n))
	rng := rand.New(rand.NewPCG(seed, foldStream))
	after := make([]float64, out.Splits)
	for k := range after {
		err := CrossFit(unitFolds(rng, units, n, out.Folds), fit, func(fitted F, rows []int) {
			after[k] += nll(fitted, rows) * float64(len(rows)) / float64(n)
		})
		if err != nil {
			return CrossFitted{}, err
		}
	}
	out.NLLAfter = stat.Mean(after, nil)
	if len(after) > 1 {
		out.Spread = stat.StdDev(after, nil)
	}
	return out, nil
}
