package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/swagwrap/swagwrap/internal/splitmix"
)

const (
	badSizes = "calibrate: number of sizes is not the number of rows"
	badLevel = "calibrate: level is not between 0 and 1"
)

// Conformal makes sets of classes that contain the true class of a new example with probability Level. There are three
// ways: see [FitAPS], [FitRAPS] and [FitClasswise].
//
// Order the classes by descending probability. A class whose predecessors have the probabilities π_1 … π_{r−1} has
// the score
//
//	π_1 + … + π_{r−1} + u·π_r + Penalty·max(0, r − Free)
//
// with u uniform in [0, 1), one for each example. The set contains the classes with scores up to their threshold. Of equal
// probabilities the first class comes first.
//
// The guarantee holds on average over examples from the distribution of the fit, for any network. If a network is confident
// and right more often than Level, some sets are empty. Otherwise they would contain the true class too often.
type Conformal struct {
	Level float64 // required share of examples whose set contains the true class
	// Thresholds has one number for all classes, or one for each. +Inf always includes a class, because it had too few
	// examples.
	Thresholds []float64
	Penalty    float64 // added for each rank above Free; 0 without RAPS
	Free       int
	N          int    // number of examples of the thresholds
	Seed       uint64 // seed of the random numbers u
}

// FitAPS returns adaptive prediction sets (Romano, Sesia and Candès 2020, section 2) of a level between 0 and 1. It needs
// labelled predictions that the network was not trained on. The threshold is the ⌈(n+1)·level⌉-th smallest score of the n
// true classes.
//
// FitAPS returns an error if n is below level/(1−level), which is 9 examples for a level of 0.9. Then there is no such
// score, and only the set of all classes keeps the guarantee. FitAPS panics if level is not between 0 and 1.
func FitAPS(p Predictions, level float64, seed uint64) (Conformal, error) {
	return p.conformal(level, seed, aps)
}

// FitRAPS is like [FitAPS] with a penalty for classes of low rank, which makes large sets smaller (Angelopoulos et al. 2021).
// As in their code, a random 30 % of the examples choose Free and Penalty, and the others the threshold. Free is the rank
// that contains the true class at this level. Penalty is that of 0.001, 0.01, 0.1, 0.2 and 0.5 with the smallest sets.
func FitRAPS(p Predictions, level float64, seed uint64) (Conformal, error) {
	return p.conformal(level, seed, raps)
}

// FitClasswise is like [FitAPS] with a threshold for each class (Mondrian sets, Vovk 2012). It keeps the guarantee for the
// examples of each single class. A class with fewer than level/(1−level) examples is in all sets.
func FitClasswise(p Predictions, level float64, seed uint64) (Conformal, error) {
	return p.conformal(level, seed, classwise)
}

func (p Predictions) conformal(level float64, seed uint64, by method) (Conformal, error) {
	p.check()
	checkLevel(level)
	fit := newConforming(p, seed)
	if c, ok := fit.of(by, level); ok {
		return c, nil
	}
	return Conformal{}, fmt.Errorf("%d rows for sets of level %v, want at least %d", p.Len(), level, fewest(level))
}

// method is a way to make sets.
type method int

const (
	aps method = iota
	raps
	classwise
	methods = iota
)

// penalties are the candidates of [FitRAPS], as in the authors' code.
var penalties = []float64{0.001, 0.01, 0.1, 0.2, 0.5}

// conforming holds what fits need of examples.
type conforming struct {
	p    Predictions
	seed uint64
	own  []standing // of the true class of each example
	tune []int      // examples that choose the penalties
}

// standing is the place of a class in the order of its row.
type standing struct {
	above, own float64 // sum of the probabilities before it, and its own
	rank       int     // the most probable class has rank 1
	u          float64
}

func newConforming(p Predictions, seed uint64) *conforming {
	c := &conforming{p: p, seed: seed}
	var r ranking
	for i, label := range p.Labels {
		c.own = append(c.own, r.place(p.Row(i), label, uniform(seed, fitStream, i)))
	}
	c.tune = someUnits(rand.New(rand.NewPCG(seed, tuneStream)), p.Units, p.Len(), 3*p.Len()/10)
	return c
}

// ranking holds the classes of a row by descending probability. Equal probabilities keep the order of their classes.
type ranking struct {
	classes       []ranked
	values, other []keyed // scratch of the sort, which takes most of the time of sets
}

type ranked struct {
	standing
	class int
}

func (r *ranking) order(row []float64, u float64) {
	if len(r.classes) != len(row) {
		r.values, r.other, r.classes = make([]keyed, len(row)), make([]keyed, len(row)), make([]ranked, len(row))
	}
	for c, x := range row {
		r.values[c] = keyed{^orderedBits(x), int32(c)}
	}
	above := 0.0
	for k, v := range sortKeyed(r.values, r.other) {
		x := row[v.at]
		r.classes[k] = ranked{standing{above, x, k + 1, u}, int(v.at)}
		above += x
	}
}

// place returns the standing of a class, whose better classes alone are sorted.
func (r *ranking) place(row []float64, class int, u float64) standing {
	own := row[class]
	if cap(r.values) < len(row) {
		r.values, r.other = make([]keyed, len(row)), make([]keyed, len(row))
	}
	better := r.values[:0]
	for c, x := range row {
		if x > own || x == own && c < class {
			better = append(better, keyed{^orderedBits(x), int32(c)})
		}
	}
	above := 0.0
	for _, v := range sortKeyed(better, r.other[:len(better)]) {
		above += row[v.at]
	}
	return standing{above, own, len(better) + 1, u}
}

func (c *Conformal) score(s standing) float64 {
	return s.above + s.u*s.own + c.Penalty*float64(max(0, s.rank-c.Free))
}

// of fits sets. It reports whether there are enough examples.
func (f *conforming) of(by method, level float64) (c Conformal, ok bool) {
	c = Conformal{Level: level, Seed: f.seed, N: len(f.own)}
	rows := allRows(len(f.own))
	switch by {
	case raps:
		if c.Free, c.Penalty, ok = f.tuned(level); !ok {
			return c, false
		}
		slices.Sort(f.tune)
		rows = slices.DeleteFunc(rows, func(i int) bool { _, tunes := slices.BinarySearch(f.tune, i); return tunes })
	case classwise:
		of := make([][]int, f.p.Classes)
		for i, label := range f.p.Labels {
			of[label] = append(of[label], i)
		}
		for _, rows := range of {
			t, _ := f.threshold(&c, rows)
			c.Thresholds = append(c.Thresholds, t)
		}
		return c, len(f.own) >= fewest(level)
	}
	t, ok := f.threshold(&c, rows)
	c.Thresholds, c.N = []float64{t}, len(rows)
	return c, ok
}

// threshold returns the threshold of some examples. It is +Inf if there are too few, and then ok is false.
func (f *conforming) threshold(c *Conformal, rows []int) (t float64, ok bool) {
	k := ceilShare(c.Level, len(rows)+1)
	if k > len(rows) {
		return math.Inf(1), false
	}
	scores := make([]float64, len(rows))
	for j, i := range rows {
		scores[j] = c.score(f.own[i])
	}
	slices.Sort(scores)
	return scores[k-1], true
}

// tuned returns the parameters of [FitRAPS].
func (f *conforming) tuned(level float64) (free int, penalty float64, ok bool) {
	k := ceilShare(level, len(f.tune)+1)
	if k > len(f.tune) {
		return 0, 0, false
	}
	var ranks []int
	for _, i := range f.tune {
		ranks = append(ranks, f.own[i].rank)
	}
	slices.Sort(ranks)
	free = ranks[k-1]
	var all []Conformal
	for _, penalty := range penalties {
		c := Conformal{Level: level, Penalty: penalty, Free: free}
		t, _ := f.threshold(&c, f.tune)
		c.Thresholds = []float64{t}
		all = append(all, c)
	}
	sizes := make([]int, len(all))
	var r ranking
	for _, i := range f.tune {
		r.order(f.p.Row(i), f.own[i].u)
		for k := range all {
			size, _ := all[k].set(r.classes, 0)
			sizes[k] += size
		}
	}
	return free, penalties[slices.Index(sizes, slices.Min(sizes))], true
}

// set returns the size of the set of an example, and whether it contains a class.
func (c *Conformal) set(r []ranked, class int) (size int, contains bool) {
	for _, x := range r {
		t := c.Thresholds[0]
		if len(c.Thresholds) > 1 {
			t = c.Thresholds[x.class]
		}
		if c.score(x.standing) <= t {
			size++
			contains = contains || x.class == class
		} else if len(c.Thresholds) == 1 {
			break // scores rise with the rank
		}
	}
	return size, contains
}

func checkLevel(level float64) {
	if !(0 < level && level < 1) { // also catches NaN
		panic(badLevel)
	}
}

// fewest returns the smallest n that suffices for a fit.
func fewest(level float64) int {
	n := max(1, int(level/(1-level))-1)
	for ceilShare(level, n+1) > n {
		n++
	}
	return n
}

// Sizes stores the number of classes in the set of each example in dst. dst has the length p.Len(), or is nil. An
// example's set depends on its row: in another row it may be one class larger or smaller.
func (c Conformal) Sizes(dst []int, p Predictions) []int {
	p.check()
	if dst == nil {
		dst = make([]int, p.Len())
	}
	if len(dst) != p.Len() {
		panic(badSizes)
	}
	var r ranking
	for i := range dst {
		r.order(p.Row(i), uniform(c.Seed, applyStream, i))
		dst[i], _ = c.set(r.classes, 0)
	}
	return dst
}

// Judge applies the sets to labelled predictions.
func (c Conformal) Judge(p Predictions) SetScores {
	p.check()
	x := newRule(p.Classes)
	x.Conformal = c
	judge(p, c.Seed, []*rule{x})
	return x.scores()
}

// SetScores summarises sets over examples. All fields are NaN if there are too few examples to fit the sets.
type SetScores struct {
	Size     float64 // mean number of classes in a set
	Coverage float64 // share of sets that contain the true class; see [CoverageRange]
	Empty    float64 // share of empty sets
	// ClassGap is the mean over the classes of |coverage of the class − level| (Ding et al. 2023). Classes without examples
	// are left out. With few examples of a class it is mostly noise: see [ChanceGap].
	ClassGap float64
}

func noSets() SetScores {
	nan := math.NaN()
	return SetScores{nan, nan, nan, nan}
}

// rule is one way to make sets, with the sets that it has made.
type rule struct {
	Conformal
	few         bool // there were too few examples to fit it
	size, empty int
	of, covered []int // examples of each class
}

func newRule(classes int) *rule {
	return &rule{of: make([]int, classes), covered: make([]int, classes)}
}

// judge counts the sets of labelled predictions by some rules.
func judge(p Predictions, seed uint64, rules []*rule) {
	var r ranking
	for i, label := range p.Labels {
		r.order(p.Row(i), uniform(seed, applyStream, i))
		for _, x := range rules {
			if !x.few {
				size, covered := x.set(r.classes, label)
				x.add(label, size, covered)
			}
		}
	}
}

func (x *rule) add(label, size int, covered bool) {
	x.size += size
	x.of[label]++
	if size == 0 {
		x.empty++
	}
	if covered {
		x.covered[label]++
	}
}

func (x *rule) scores() (out SetScores) {
	if x.few {
		return noSets()
	}
	n, covered, present := 0, 0, 0
	for c, of := range x.of {
		n, covered = n+of, covered+x.covered[c]
		if of > 0 {
			present++
			out.ClassGap += math.Abs(ratio(x.covered[c], of) - x.Level)
		}
	}
	out.Size, out.Coverage, out.Empty, out.ClassGap = ratio(x.size, n), ratio(covered, n), ratio(x.empty, n), out.ClassGap/float64(present)
	return out
}

// ChanceGap returns the expected ClassGap, see [SetScores], of sets that contain each class with exactly the probability
// level. It is the mean absolute deviation of binomial shares, in the closed form of de Moivre (1730).
func ChanceGap(labels []int, level float64) float64 {
	of := map[int]float64{}
	for _, label := range labels {
		of[label]++
	}
	var sum float64
	for _, n := range of {
		m := math.Floor(n*level) + 1
		sum += 2 * m / n * (1 - level) * math.Exp(distuv.Binomial{N: n, P: level}.LogProb(m))
	}
	return sum / float64(len(of))
}

// CoverageRange returns the range of the coverage of new examples by sets that were fitted on n examples: 95 % of fits are
// in it. The coverage has the beta distribution with k and n+1−k, k = ⌈(n+1)·level⌉, if no two scores are equal (Vovk
// 2012). Both ends are NaN if n is too small for the level.
func CoverageRange(level float64, n int) (low, high float64) {
	checkLevel(level)
	k := ceilShare(level, n+1)
	if k > n {
		return math.NaN(), math.NaN()
	}
	beta := distuv.Beta{Alpha: float64(k), Beta: float64(n + 1 - k)}
	return beta.Quantile(0.025), beta.Quantile(0.975)
}

// Sets holds the scores of all ways to make sets of a level.
type Sets struct {
	Level                float64
	APS, RAPS, Classwise SetScores
}

// SetLevels returns the usual levels of sets in ascending order.
func SetLevels() []float64 { return []float64{0.9, 0.95, 0.99, 0.999} }

// SetsAbove returns the sets of the lowest level above an accuracy, or those of the highest level if none is above.
// Below the accuracy, the most probable class alone is right more often than guaranteed. The sets are then that class
// or empty, and their size is meaningless. Compare methods at one level, above the best of their accuracies.
//
// The argument sets is in ascending order of levels, as in [Evaluate]. If it is empty, SetsAbove returns NaN.
func SetsAbove(sets []Sets, accuracy float64) Sets {
	for _, s := range sets {
		if s.Level > accuracy {
			return s
		}
	}
	if len(sets) == 0 {
		return Sets{math.NaN(), noSets(), noSets(), noSets()}
	}
	return sets[len(sets)-1]
}

// Fits and applications use different numbers u, because the guarantee requires that they are independent.
const (
	fitStream   = 4
	applyStream = 5
	tuneStream  = 6
)

// uniform returns a number in [0, 1) that depends only on its arguments. It has no state, so rows may come in any
// order.
func uniform(seed, stream uint64, row int) float64 {
	x := splitmix.Nth(splitmix.Nth(splitmix.Nth(seed, 0)+stream, 0)+uint64(row), 0)
	return float64(x>>11) * 0x1p-53
}

// crossSets judges sets of the usual levels on p. Each random half of the units of p gets the thresholds that were fitted
// on the other half. Methods that are left out have no scores.
func crossSets(p Predictions, by []method, seed uint64) (out []Sets) {
	folds := unitFolds(rand.New(rand.NewPCG(seed, conformalStream)), p.Units, p.Len(), 2)
	halves := [2]Predictions{p.pick(folds[0]), p.pick(folds[1])}
	rules := make([]*rule, len(SetLevels())*len(by)) // by level and method
	for k := range rules {
		rules[k] = newRule(p.Classes)
	}
	for h, half := range halves {
		fit := newConforming(half, seed)
		for k, x := range rules {
			c, ok := fit.of(by[k%len(by)], SetLevels()[k/len(by)])
			x.Conformal, x.few = c, x.few || !ok
		}
		judge(halves[1-h], seed, rules)
	}
	for l, level := range SetLevels() {
		scores := [methods]SetScores{noSets(), noSets(), noSets()}
		for k, m := range by {
			scores[m] = rules[l*len(by)+k].scores()
		}
		out = append(out, Sets{level, scores[aps], scores[raps], scores[classwise]})
	}
	return out
}

// pick returns a copy of the given rows.
func (p Predictions) pick(rows []int) Predictions {
	q := Predictions{Classes: p.Classes, Probs: make([]float64, 0, len(rows)*p.Classes), Labels: make([]int, 0, len(rows))}
	for _, i := range rows {
		q.Probs = append(q.Probs, p.Row(i)...)
		q.Labels = append(q.Labels, p.Labels[i])
		if p.Units != nil {
			q.Units = append(q.Units, p.Units[i])
		}
	}
	return q
}
