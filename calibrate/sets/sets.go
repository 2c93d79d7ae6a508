// Package sets chooses and applies the thresholds of guarantees that go into a model: sets of classes that contain the
// true one, intervals, and the share of true labels that a set may miss.
//
// [Quantile] is the threshold of split conformal prediction. [Missed] and [Counted] are those of conformal risk control. [Rule] and
// [Ranking] decide which classes are in a set.
//
// Package calibrate has sets with random numbers, which compare networks. A model has no random numbers, so the sets
// here have none.
//
// # Invariants
//
// A decision depends on float32 probabilities alone. It uses comparisons, and sums of whole numbers below 2^24, which
// float32 holds exactly. So every runtime that gets the same probabilities makes the same sets, in any order of sums.
//
// The cut of a threshold lies a little beyond it. Two runtimes give probabilities that differ in the last bits. Without
// that distance they would disagree on the very example that chose the threshold. Sets grow by less than 1 in 10,000,
// and keep their guarantee.
//
// # Concurrency
//
// Functions have no state. A [Missed] and a [Ranking] belong to one goroutine.
package sets

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Method is a way to make sets of classes.
type Method string

const (
	// LAC takes the classes with a probability above the cut (Sadinle, Lei and Wasserman 2019). On average no other sets
	// are smaller.
	LAC Method = "lac"
	// APS takes the most probable classes up to a sum (Romano, Sesia and Candès 2020). Examples that are hard get larger
	// sets.
	APS Method = "aps"
	// RAPS is APS with a penalty for classes of low rank (Angelopoulos et al. 2021).
	RAPS Method = "raps"
)

// Methods lists all methods. The first is the default.
var Methods = []string{string(LAC), string(APS), string(RAPS)}

// Least returns the smallest number of examples that give a finite threshold: 1/α − 1 for the level 1 − α.
func Least(level float64) int {
	n := max(1, int(level/(1-level))-1)
	for Rank(level, n) > n {
		n++
	}
	return n
}

// Rank returns ⌈(n+1)·level⌉. It tolerates rounding: 0.9·10 is 9.
func Rank(level float64, n int) int {
	x := level * float64(n+1)
	return int(math.Ceil(x - 1e-9*x))
}

// Quantile returns the ⌈(n+1)·level⌉-th smallest of n scores. A new score is at most that with a probability of at
// least level. ok is false if n is too small, or if that score is infinite. Then only an infinite threshold keeps the
// guarantee. Quantile sorts the scores.
func Quantile(scores []float64, level float64) (q float64, ok bool) {
	checkLevel(level)
	k := Rank(level, len(scores))
	if k > len(scores) {
		return math.Inf(1), false
	}
	slices.Sort(scores)
	q = scores[k-1]
	return q, !math.IsInf(q, 1) && !math.IsNaN(q)
}

func checkLevel(level float64) {
	if !(0 < level && level < 1) { // also catches NaN
		panic("sets: level is not between 0 and 1")
	}
}

// A Missed finds the lowest probability that sets must reach down to, so that they miss at most a guaranteed share of
// what is true. The share is a mean over examples (conformal risk control, Angelopoulos et al. 2024, theorem 1). An
// example with one true class misses it or not. Then this is [Quantile] of 1 − probability.
type Missed struct {
	n  int
	at map[float64]float64 // the share of examples that is missed if sets end above a probability
}

// Add adds the probabilities of all that is true of an example, such as its labels, or the class of each of its
// pixels. An example without any counts nowhere.
func (m *Missed) Add(probs ...float64) {
	if len(probs) == 0 {
		return
	}
	m.n++
	if m.at == nil {
		m.at = make(map[float64]float64)
	}
	if len(probs) == 1 {
		m.at[probs[0]]++
		return
	}
	slices.Sort(probs)
	for i := 0; i < len(probs); {
		j := i
		for j < len(probs) && probs[j] == probs[i] {
			j++
		}
		m.at[probs[i]] += float64(j-i) / float64(len(probs))
		i = j
	}
}

// Upper is [Upper] of 1 − probability, for examples with one true class.
func (m *Missed) Upper(cut float32) int {
	covered := 0.0
	for p, n := range m.at {
		if float32(p) > cut {
			covered += n
		}
	}
	return Upper(m.n, len(m.at), int(covered), cut < 0)
}

// Upper returns which of n sorted scores bounds what a threshold covers of new examples, or n+1 if none does. The threshold covers so
// many of the scores, of which so many are distinct. Without equal scores it covers exactly what is up to its own score. Otherwise,
// it may cover all up to the next one. everything says that it covers whatever comes.
func Upper(n, distinct, covered int, everything bool) int {
	switch {
	case everything:
		return n + 1
	case distinct < n:
		return covered + 1
	}
	return covered
}

// Len returns the number of examples.
func (m *Missed) Len() int { return m.n }

// Lowest returns the lowest probability p that a set must contain. Sets of all classes with the probability p or more
// miss at most the share 1 − level, even if one more example is missed as a whole. p is the largest such number. ok is
// false if there are too few examples.
func (m *Missed) Lowest(level float64) (p float64, ok bool) {
	checkLevel(level)
	total := float64(m.n + 1)
	budget := (1-level)*total - 1 + 1e-9*total
	if budget < 0 {
		return 0, false
	}
	probs := make([]float64, 0, len(m.at))
	for p := range m.at {
		probs = append(probs, p)
	}
	slices.Sort(probs)
	missed := 0.0
	for _, p := range probs {
		if missed += m.at[p]; missed > budget {
			return p, true
		}
	}
	return 0, false // the budget is below n, so that only rounding leads here
}

// A Counted finds how few classes sets must have, so that their mean size is at most a guaranteed one (conformal risk control). The
// size of an example's set is the mean over its positions.
type Counted struct {
	n  int
	at map[float64]float64 // by how much the size falls if sets end at a probability
}

// Add adds the probabilities of all classes at so many positions of an example.
func (c *Counted) Add(positions int, probs ...float64) {
	if c.at == nil {
		c.at = make(map[float64]float64)
	}
	c.n++
	for _, p := range probs {
		c.at[p] += 1 / float64(positions)
	}
}

// Len returns the number of examples.
func (c *Counted) Len() int { return c.n }

// Highest returns the smallest probability p with which sets of all classes above p have at most the mean size, even if one more
// example has all classes. It is −1 if every class may be in the set. ok is false if there are too few examples.
func (c *Counted) Highest(size float64, classes int) (p float64, ok bool) {
	total := float64(c.n + 1)
	budget := size*total - float64(classes) + 1e-9*total
	if budget < 0 {
		return 0, false
	}
	sum := 0.0
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(c.at))) {
		if sum += c.at[p]; sum > budget {
			return p, true
		}
	}
	return -1, true
}

const (
	// beyond is how far a cut lies beyond its threshold, in units of the last place of float32.
	beyond = 256
	// grid is the number of units of a probability in sums. Sums of them, with penalties, stay below 2^24.
	grid = 1 << 21
	// gridBeyond is how far a cut of a sum lies beyond its threshold, in these units.
	gridBeyond = 64
	// crowded is how near the sum of all probabilities no cut lies: there the sums of unlikely classes differ by less than
	// two programs do. All classes are in the set instead.
	crowded = 512
	// mostPenalty is the largest penalty in these units: 4.
	mostPenalty = 1 << 23
	// all is a cut of a sum that all classes are below.
	all = 1 << 24
)

// Below returns the cut of a lowest probability p: a class is in the set if its probability is above the cut. It lies a
// little below p. It is −1 if all probabilities are above it.
func Below(p float64) float32 {
	bits := math.Float32bits(float32(p))
	if !(p > 0) || bits <= beyond {
		return -1
	}
	return math.Float32frombits(bits - beyond)
}

// Above returns a cut a little above a confidence: an answer is given if its confidence is above the cut. It is −1 for a
// threshold below 0, which answers always.
func Above(confidence float64) float32 {
	if confidence < 0 {
		return -1
	}
	return math.Float32frombits(math.Float32bits(float32(confidence)) + beyond)
}

// Rule makes the set of an example.
type Rule struct {
	Method  Method
	Penalty float64 // of RAPS: added for each rank above Free
	Free    int
	// Cuts has one cut for all classes, or one for each.
	Cuts []float32
}

// Everything returns the cut with which all classes are in the set.
func Everything(m Method) float32 {
	if m == LAC {
		return -1
	}
	return all
}

// Check returns an error unless the rule fits so many classes. It may come from a file.
func (r *Rule) Check(classes int) error {
	switch {
	case r.Method != LAC && r.Method != APS && r.Method != RAPS:
		return fmt.Errorf("method %q, want lac, aps or raps", r.Method)
	case len(r.Cuts) != 1 && len(r.Cuts) != classes:
		return fmt.Errorf("%d cuts, want 1 or %d", len(r.Cuts), classes)
	case !(r.Penalty >= 0 && r.Penalty <= 1e6) || r.Free < 0 || r.Method != RAPS && (r.Penalty != 0 || r.Free != 0):
		return fmt.Errorf("penalty %v above rank %d, want those of raps", r.Penalty, r.Free)
	}
	for _, c := range r.Cuts {
		if !(c >= -1 && c <= all) {
			return fmt.Errorf("cut %v, want −1 to %d", c, all)
		}
	}
	return nil
}

// Cut returns the cut of a class.
func (r *Rule) Cut(class int) float32 {
	if len(r.Cuts) == 1 {
		return r.Cuts[0]
	}
	return r.Cuts[class]
}

// Penalties returns the penalty of each rank, from rank 1, in the units of sums. It is nil without one.
func (r *Rule) Penalties(classes int) []float32 {
	step, most := r.Step()
	if step == 0 {
		return nil
	}
	out := make([]float32, classes)
	for k := range out {
		out[k] = float32(min(float64(step)*float64(max(0, k+1-r.Free)), float64(most)))
	}
	return out
}

// Step returns the penalty of each rank above [Rule.Free] and the largest penalty, in the units of sums.
func (r *Rule) Step() (step, most float32) {
	return float32(min(math.Round(r.Penalty*grid), mostPenalty)), mostPenalty
}

// step is the part of a probability by which classes of equal probability are put in order, for each class. It is two
// units of the last place, so that no runtime has to break a tie.
const step = 0x1p-22

// Keys returns factors of the probabilities. The products have the order of the classes. The first factor is 1, and each is a
// little below the one before. So the first class of equal probabilities comes first. The same holds for probabilities that
// differ by less than 2⁻²² for each class between them.
func Keys(classes int) []float32 {
	out := make([]float32, classes)
	for c := range out {
		out[c] = float32(1 - step*float64(c))
	}
	return out
}

// A graph counts in larger units than [Ranking]: in 2⁻¹⁰, with 11 bits behind the point. So its numbers lie within float16, and the
// small probabilities, which decide, keep their digits there.
const (
	// Coarse is the number of a graph's units in 1.
	Coarse = 1 << 10
	// Fine is the number of units of [Ranking] in one of a graph. The graph rounds as Ranking does, ⌊grid·p + ½⌋, part by part.
	Fine = grid / Coarse
)

// Least returns what the classes behind one must exceed, so that it is in the set, in units of a graph: the bound of Σ − penalty.
func (r *Rule) Least() []float32 {
	out := make([]float32, len(r.Cuts))
	for k, cut := range r.Cuts {
		out[k] = float32((grid - math.Ceil(float64(cut))) / Fine) // sums are whole numbers of units
	}
	return out
}

// Ranking makes sets of many examples. Its memory is used again.
type Ranking struct {
	keys, products, units, scores []float32
	order                         []int
	penalties                     []float32
	of                            *Rule
}

// Make reports for each class whether it is in the set. dst has an element for each probability.
func (k *Ranking) Make(dst []bool, r *Rule, probs []float64) {
	if r.Method == LAC {
		for c, p := range probs {
			dst[c] = float32(p) > r.Cut(c)
		}
		return
	}
	for c, s := range k.Scores(r, probs) {
		dst[c] = s < r.Cut(c)
	}
}

// Scores returns the number that decides about each class, in units of sums: 1 without all less probable classes, and the penalty of
// the class's rank. That is the sum down to the class, but also in few digits, where a sum near 1 loses what it is about. It is valid
// until the next call. See [Keys] for the order of classes.
func (k *Ranking) Scores(r *Rule, probs []float64) []float32 {
	n := len(probs)
	if len(k.units) != n || k.of != r {
		k.units, k.scores, k.order, k.penalties, k.of = make([]float32, n), make([]float32, n), make([]int, n), r.Penalties(n), r
		k.keys, k.products = Keys(n), make([]float32, n)
	}
	for c, p := range probs {
		scaled := float32(float32(p) * grid) // exact
		k.units[c], k.order[c] = float32(math.Floor(float64(float32(scaled+0.5)))), c
		k.products[c] = float32(float32(p) * k.keys[c])
	}
	slices.SortStableFunc(k.order, func(a, b int) int {
		switch {
		case k.products[a] > k.products[b]:
			return -1
		case k.products[a] < k.products[b]:
			return 1
		}
		return a - b
	})
	rest := float32(0)
	for at, c := range slices.Backward(k.order) {
		k.scores[c] = grid - rest
		rest += k.units[c]
		if k.penalties != nil {
			k.scores[c] += k.penalties[at]
		}
	}
	return k.scores
}

// Exact returns the score of a class in float64, as other libraries compute it. With [LAC] it is 1 − p. Otherwise it is
// the sum of the probabilities down to the class, with the penalty of its rank.
func (r *Rule) Exact(probs []float64, class int) float64 {
	own := probs[class]
	if r.Method == LAC {
		return 1 - own
	}
	var better []float64
	for c, p := range probs {
		if p > own || p == own && c < class {
			better = append(better, p)
		}
	}
	slices.Sort(better)
	sum := 0.0
	for _, p := range slices.Backward(better) {
		sum += p
	}
	return sum + own + r.Penalty*float64(max(0, len(better)+1-r.Free))
}

// CutOf returns the cut of a sum of units that is a threshold: a class is in the set if its sum is below the cut.
func (r *Rule) CutOf(sum float64) float32 {
	if cut := sum + gridBeyond + 1; r.Method == RAPS && r.Penalty > 0 || cut < grid-crowded {
		return float32(min(cut, all))
	}
	return all
}
