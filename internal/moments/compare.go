package moments

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Limits of what matters. A group whose values differ by less is never off. Augmentation alone moves the mean of a
// channel by up to 0.3 standard deviations, and its standard deviation by a factor of up to 1.3. README.md of
// fixtures/faults has the measurements.
const (
	maxMean     = 0.7 // largest shift of a channel's mean, in standard deviations of training
	maxRatio    = 1.6 // largest ratio of a channel's standard deviations
	maxDistance = 0.3 // Kolmogorov's distance of a column
	maxOutside  = 0.1 // share of a column's values outside the range of training
	maxTokens   = 0.3 // total variation distance of frequent ids, as a share of its largest possible value
)

// level is the chance that one kind of test finds a difference where there is none. All
// tests of a data set together stay far below 1 in 100.
const level = 1e-3

// Difference is what [Compare] found.
type Difference struct {
	Groups []GroupDifference // of channels and columns
	// Tokens is the total variation distance of the frequent ids, less what chance gives. It
	// is 1 if the examples have none of them.
	// Beyond is the share of examples that have an id outside the range of training.
	Tokens, Beyond float64

	tokensOff bool
	contrast  float64 // of the last channel to the first, compared with training, in standard errors: see reversed
	spread    float64 // the same for the logarithms of their standard deviations
	colours   float64 // the difference of the contrasts, in standard deviations over examples
	light     float64 // the difference of the middle channel's means, in standard errors
}

// GroupDifference is the difference of one channel or column.
type GroupDifference struct {
	Mean     float64 // difference of the means, in standard deviations of training
	Ratio    float64 // standard deviation divided by that of training
	Distance float64 // Kolmogorov's distance of a column: the largest difference of the distribution functions
	Outside  float64 // share of a column's values outside the range of training
	Off      bool    // the difference matters, and chance does not explain it
}

// score returns how far a group is off, in units of the limits.
func (d GroupDifference) score(kind Kind) float64 {
	if kind == Columns {
		return max(d.Distance/maxDistance, d.Outside/maxOutside)
	}
	return max(math.Abs(d.Mean)/maxMean, math.Abs(math.Log(d.Ratio))/math.Log(maxRatio))
}

// Off lists the groups that are off, the worst first.
func (d Difference) Off() (off []int) {
	for g, at := range d.Groups {
		if at.Off {
			off = append(off, g)
		}
	}
	worst := func(g int) float64 {
		at := d.Groups[g]
		return max(at.Distance+at.Outside, math.Abs(at.Mean), math.Abs(math.Log(at.Ratio)))
	}
	slices.SortStableFunc(off, func(a, b int) int { return cmp.Compare(worst(b), worst(a)) })
	return off
}

// Comparable reports whether a sample has the groups of a summary. The summary may come from a file of a stranger, so
// its lengths are checked too.
func Comparable(training Summary, s *Sample) bool {
	n := len(s.groups)
	if training.Kind != s.Kind || len(training.Groups) != n || training.Examples < 2 || s.examples < 1 {
		return false
	}
	if s.Kind == Tokens {
		return training.Tokens != nil && len(training.Tokens.Frequent) > 0
	}
	for _, g := range training.Groups {
		if s.Kind == Columns && len(g.Quantiles) != quantiles+1 {
			return false
		}
	}
	return n > correlated || len(training.Correlation) == n*(n-1)/2
}

// Compare tests a sample against training. Both must be [Comparable].
//
// Means of channels are compared by Welch's t, their variances by the logarithm of the ratio and its standard error.
// Columns are compared by Kolmogorov's distance with the bound of Dvoretzky, Kiefer and Wolfowitz. They are also
// compared by the number of values outside the range of training, whose distribution is known exactly. Levels are
// divided by the number of groups (Bonferroni).
func Compare(training Summary, s *Sample) Difference {
	var d Difference
	if s.Kind == Tokens {
		d.compareTokens(training, s)
		return d
	}
	each := level / float64(len(s.groups))
	for g, was := range training.Groups {
		if s.Kind == Columns {
			d.Groups = append(d.Groups, compareColumn(was, s.groups[g], training.Examples, each))
		} else {
			d.Groups = append(d.Groups, compareChannel(was, s.groups[g].summary(s.Kind), training.Examples, s.examples, each))
		}
	}
	if s.Kind == Channels && len(s.groups) == 3 {
		d.compareColours(training, s)
	}
	return d
}

// ofStd returns a difference of means in standard deviations. The result is infinite if the group was constant in
// training.
func ofStd(difference, std float64) float64 {
	if difference == 0 {
		return 0
	}
	return difference / std
}

// ratio returns a/b for two standard deviations, and 1 if both are 0.
func ratio(a, b float64) float64 {
	if a == b {
		return 1
	}
	return a / b
}

func compareChannel(was, is Group, trained, tested int, level float64) GroupDifference {
	d := GroupDifference{Mean: ofStd(is.Mean-was.Mean, was.Std), Ratio: ratio(is.Std, was.Std)}
	if tested < 2 {
		return d
	}
	n, m := float64(tested), float64(trained)
	limit := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: math.Min(n, m) - 1}.Quantile(1 - level/2)
	spread := max(was.MeanStd, is.MeanStd)
	standard := math.Sqrt(was.MeanStd*was.MeanStd/m + spread*spread/n)
	moved := math.Abs(d.Mean) > maxMean && math.Abs(is.Mean-was.Mean) > limit*standard
	relative := max(was.VarianceStd, is.VarianceStd)
	change := 2 * math.Abs(math.Log(d.Ratio))
	scaled := change > 2*math.Log(maxRatio) && change > limit*relative*math.Sqrt(1/n+1/m)
	d.Off = moved || scaled
	return d
}

func compareColumn(was Group, is group, trained int, level float64) GroupDifference {
	sum := is.summary(Channels) // without quantiles
	d := GroupDifference{Mean: ofStd(sum.Mean-was.Mean, was.Std), Ratio: ratio(sum.Std, was.Std)}
	sorted := slices.Sorted(slices.Values(is.means))
	n, m := len(sorted), trained
	d.Distance = kolmogorov(was.Quantiles, m, sorted)
	slack := 1e-6 * (was.Max - was.Min)
	outside := sort.SearchFloat64s(sorted, was.Min-slack)
	outside += n - sort.Search(n, func(i int) bool { return sorted[i] > was.Max+slack })
	d.Outside = share(outside, n)
	limit := math.Sqrt(-math.Log(level/2) / 2 * (1/float64(n) + 1/float64(m)))
	d.Off = d.Distance > maxDistance && d.Distance > limit || d.Outside > maxOutside && beyond(outside, n, m) < level
	return d
}

// kolmogorov compares the distribution of sorted values with that of n values, known only by their quantiles. It
// returns the largest difference of the two distribution functions, or its least possible value where the quantiles
// leave it open.
func kolmogorov(quantile []float64, n int, sorted []float64) (worst float64) {
	steps := len(quantile) - 1
	// Values that differ by rounding in float32 count as equal, such as whole numbers divided by 255 and multiplied
	// again.
	slack := 1e-6 * (quantile[steps] - quantile[0])
	rank := func(k int) float64 { return float64(k * (n - 1) / steps) }
	distance := func(v, low, high float64) {
		worst = max(worst, low/float64(n)-v, v-high/float64(n))
	}
	for first := 0; first <= steps; {
		last := first
		for last < steps && quantile[last+1] == quantile[first] {
			last++
		}
		q := quantile[first]
		less := share(sort.SearchFloat64s(sorted, q-slack), len(sorted))
		upTo := share(sort.Search(len(sorted), func(i int) bool { return sorted[i] > q+slack }), len(sorted))
		if first == 0 {
			distance(less, 0, 0)
		} else {
			distance(less, rank(first-1)+1, rank(first))
		}
		if last == steps {
			distance(upTo, float64(n), float64(n))
		} else {
			distance(upTo, rank(last)+1, rank(last+1))
		}
		first = last + 1
	}
	return worst
}

// beyond bounds the chance that k or more of n values lie outside the range of m values of
// the same distribution. Then the j largest and the k−j smallest of all n+m are among the n,
// for one of the k+1 possible j.
func beyond(k, n, m int) float64 {
	p := float64(k + 1)
	for j := range k {
		p *= float64(n-j) / float64(n+m-j)
	}
	return p
}

// compareTokens compares shares of frequent ids. Shares are averaged over examples, so that
// the noise of each is known from the examples.
func (d *Difference) compareTokens(training Summary, s *Sample) {
	n, m := float64(s.examples), float64(training.Examples)
	total, expected, variance, rest, most := 0.0, 0.0, 0.0, 0.0, 0.0
	for _, f := range training.Tokens.Frequent {
		shares := s.shares(f.ID)
		mean, spread := stat.Mean(shares, nil), max(f.Std, deviation(shares))
		standard := spread * math.Sqrt(1/n+1/m)
		total += math.Abs(mean-f.Share) / 2
		expected += math.Sqrt(2/math.Pi) * standard / 2
		variance += standard * standard / 4
		rest += f.Share - mean
		most += f.Share
	}
	total += math.Abs(rest) / 2
	d.Tokens = max(0, total-expected) / most
	outside := 0
	for _, text := range s.texts {
		for id := range text {
			if id < training.Tokens.Min || id > training.Tokens.Max {
				outside++
				break
			}
		}
	}
	d.Beyond = share(outside, s.examples)
	// The limit of 5 allows for the dependence between the shares of one text.
	d.tokensOff = d.Tokens > maxTokens && d.Tokens*most > 5*math.Sqrt(variance) ||
		d.Beyond > maxOutside && beyond(outside, s.examples, training.Examples) < level
}

// compareColours compares the contrast of the last channel to the first. The contrast varies far less from picture to
// picture than the channels do, since they brighten together.
func (d *Difference) compareColours(training Summary, s *Sample) {
	contrast := make([]float64, s.examples)
	for i := range contrast {
		contrast[i] = s.groups[2].means[i] - s.groups[0].means[i]
	}
	red, blue := training.Groups[0], training.Groups[2]
	spread := math.Sqrt(max(0, red.MeanStd*red.MeanStd+blue.MeanStd*blue.MeanStd-2*training.Correlation[1]))
	n, m := float64(s.examples), float64(training.Examples)
	d.colours = ofStd(stat.Mean(contrast, nil)-(blue.Mean-red.Mean), spread)
	standard := max(spread, deviation(contrast)) * math.Sqrt(1/n+1/m)
	d.contrast = ofStd(stat.Mean(contrast, nil)-(blue.Mean-red.Mean), standard)
	middle := training.Groups[1]
	d.light = ofStd(stat.Mean(s.groups[1].means, nil)-middle.Mean, max(middle.MeanStd, deviation(s.groups[1].means))*math.Sqrt(1/n+1/m))
	a, b := s.groups[0].summary(s.Kind), s.groups[2].summary(s.Kind)
	relative := max(red.VarianceStd, blue.VarianceStd, a.VarianceStd, b.VarianceStd)
	if min(a.Std, b.Std, red.Std, blue.Std) > 0 {
		d.spread = ofStd(2*(math.Log(b.Std/a.Std)-math.Log(blue.Std/red.Std)), relative*math.Sqrt(1/n+1/m))
	}
}
