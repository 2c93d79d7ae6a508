package sets

import (
	"math"
	"math/rand/v2"
	"slices"
)

// penalties are the candidates of [Rule.Tune], as in the code of the authors of RAPS.
var penalties = []float64{0.001, 0.01, 0.1, 0.2, 0.5}

// TuneShare is the share of examples that choose the penalty of RAPS. The others choose the threshold.
const TuneShare = 0.3

// Split divides n examples at random: the first part has the given share of them. Both are in ascending order.
func Split(n int, share float64, seed uint64) (first, rest []int) {
	all := rand.New(rand.NewPCG(seed, splitStream)).Perm(n)
	cut := int(math.Round(share * float64(n)))
	first, rest = all[:cut], all[cut:]
	slices.Sort(first)
	slices.Sort(rest)
	return first, rest
}

const splitStream = 17

// Threshold is the threshold of one group of examples or classes.
type Threshold struct {
	Exact    float64 // in float64, as other libraries compute it; +Inf if there are too few examples
	Cut      float32 // what decides; see the package
	Examples int
	Upper    int // see [Upper]
}

// Infinite reports whether the examples were too few. Then all classes are in the set.
func (t Threshold) Infinite() bool { return math.IsInf(t.Exact, 1) }

// Fit chooses the threshold of the rule for examples with n×classes probabilities and their true classes. rows are
// those that count.
func (r *Rule) Fit(probs []float64, classes int, labels []int, rows []int, level float64) Threshold {
	out := Threshold{Exact: math.Inf(1), Cut: Everything(r.Method), Examples: len(rows), Upper: len(rows) + 1}
	exact, units := make([]float64, 0, len(rows)), make([]float64, 0, len(rows))
	var k Ranking
	for _, i := range rows {
		row := probs[i*classes:][:classes]
		exact = append(exact, r.Exact(row, labels[i]))
		if r.Method == LAC {
			units = append(units, -row[labels[i]])
		} else {
			units = append(units, float64(k.Scores(r, row)[labels[i]]))
		}
	}
	q, ok := Quantile(exact, level)
	u, _ := Quantile(units, level)
	switch {
	case !ok:
	case r.Method == LAC:
		out.Exact, out.Cut = q, Below(-u)
	default:
		out.Exact, out.Cut = q, r.CutOf(u)
	}
	covered := 0
	for _, u := range units {
		if r.Method == LAC && float32(-u) > out.Cut || r.Method != LAC && float32(u) < out.Cut {
			covered++
		}
	}
	slices.Sort(exact)
	out.Upper = Upper(len(rows), len(slices.Compact(exact)), covered, out.Cut == Everything(r.Method))
	return out
}

// Tune chooses the penalty of RAPS on some examples: the rank below which the true class stands with the probability
// level is free, and the penalty is that with the smallest sets. It reports whether there are enough examples.
func (r *Rule) Tune(probs []float64, classes int, labels []int, rows []int, level float64) bool {
	var ranks []float64
	for _, i := range rows {
		row := probs[i*classes:][:classes]
		rank := 1
		for c, p := range row {
			if own := row[labels[i]]; p > own || p == own && c < labels[i] {
				rank++
			}
		}
		ranks = append(ranks, float64(rank))
	}
	free, ok := Quantile(ranks, level)
	if !ok {
		return false
	}
	r.Free = int(free)
	best, set := math.MaxInt, make([]bool, classes)
	for _, penalty := range penalties {
		try := &Rule{Method: RAPS, Penalty: penalty, Free: r.Free}
		try.Cuts = []float32{try.Fit(probs, classes, labels, rows, level).Cut}
		var k Ranking
		size := 0
		for _, i := range rows {
			k.Make(set, try, probs[i*classes:][:classes])
			for _, in := range set {
				if in {
					size++
				}
			}
		}
		if size < best {
			best, r.Penalty = size, penalty
		}
	}
	return true
}
