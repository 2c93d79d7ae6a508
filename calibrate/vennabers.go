package calibrate

import (
	"cmp"
	"math"
	"slices"
)

// VennAbers is an inductive Venn–Abers predictor of two classes (Vovk, Petej and Fedorova 2015). Two isotonic regressions of the
// fitting set belong to each new score: with the score as an example of class 0, and of class 1. They give the probabilities p0 ≤ p1
// of class 1, one of which is calibrated. The prediction is p1/(1 − p0 + p1), which minimises the largest regret of the NLL.
type VennAbers struct {
	// Knots are the distinct log-odds of the fitting set, ascending. Zero and One are p0 and p1 at them.
	Knots []float64 `json:"knots"`
	Zero  []float64 `json:"zero"`
	One   []float64 `json:"one"`
	// Tie is the distance up to which log-odds are equal to a knot, but at most half of the way to the next one. 0 is the definition.
	Tie float64 `json:"tie,omitempty"`

	Rows     int  `json:"-"`
	OneLabel bool `json:"-"`
}

// block is a stretch of equal values of an isotonic regression, and the blocks beyond it.
type block struct {
	count, sum float64
	beyond     *block
}

func (b block) mean() float64 { return b.sum / b.count }

func (b block) with(o *block) block { return block{b.count + o.count, b.sum + o.sum, o.beyond} }

// FitVennAbers computes the predictor from the logits of two classes, n×2, and the n labels. Errors and panics are those of
// [FitTemperature]. It takes n·log n time: the blocks of all beginnings and all ends of the scores are computed once, and an added
// example merges with few of them.
func FitVennAbers(logits []float64, labels []int) (VennAbers, error) {
	if _, err := newScored(logits, 2, labels); err != nil {
		return VennAbers{}, err
	}
	v := VennAbers{Rows: len(labels), OneLabel: len(absent(labels, 2)) > 0}
	order := allRows(len(labels))
	score := func(i int) float64 { return logOdds(logits[2*i:]) }
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(score(a), score(b)) })
	var groups []block
	for _, i := range order {
		if len(v.Knots) == 0 || v.Knots[len(v.Knots)-1] != score(i) {
			v.Knots, groups = append(v.Knots, score(i)), append(groups, block{})
		}
		g := &groups[len(groups)-1]
		g.count++
		g.sum += float64(labels[i])
	}
	n := len(groups)
	before, after := make([]*block, n+1), make([]*block, n+1) // of the groups before each, and from each on
	for i, g := range groups {
		for g.beyond = before[i]; g.beyond != nil && g.beyond.mean() >= g.mean(); {
			g = g.with(g.beyond)
		}
		before[i+1] = &g
	}
	for i := n - 1; i >= 0; i-- {
		g := groups[i]
		for g.beyond = after[i+1]; g.beyond != nil && g.beyond.mean() <= g.mean(); {
			g = g.with(g.beyond)
		}
		after[i] = &g
	}
	v.Zero, v.One = make([]float64, n), make([]float64, n)
	for i, g := range groups {
		v.Zero[i] = merged(block{g.count + 1, g.sum, nil}, before[i], after[i+1])
		v.One[i] = merged(block{g.count + 1, g.sum + 1, nil}, before[i], after[i+1])
	}
	return v, nil
}

// merged returns the value of a block between blocks whose means ascend.
func merged(b block, left, right *block) float64 {
	for {
		switch {
		case left != nil && left.mean() >= b.mean():
			b, left = b.with(left), left.beyond
		case right != nil && right.mean() <= b.mean():
			b, right = b.with(right), right.beyond
		default:
			return b.mean()
		}
	}
}

// Tied returns the predictor with a tie, without the knots that then change nothing.
func (v VennAbers) Tied(tie float64) VennAbers {
	out := VennAbers{Tie: tie, Rows: v.Rows, OneLabel: v.OneLabel}
	last := len(v.Knots) - 1
	changes := func(i int) bool {
		below, above := 0.0, 1.0
		if i > 0 {
			below = v.Zero[i-1]
		}
		if i < last {
			above = v.One[i+1]
		}
		return v.Zero[i] != below || v.One[i] != above
	}
	near := func(i, j int) bool {
		return j >= 0 && j <= last && math.Abs(v.Knots[i]-v.Knots[j]) < 2*tie && changes(j)
	}
	for i, k := range v.Knots {
		if i == 0 || changes(i) || near(i, i-1) || near(i, i+1) {
			out.Knots, out.Zero, out.One = append(out.Knots, k), append(out.Zero, v.Zero[i]), append(out.One, v.One[i])
		}
	}
	return out
}

// Steps returns the log-odds at which p0 reaches Zero, and those beyond which p1 leaves One, for each knot.
func (v VennAbers) Steps() (zero, one []float64) {
	zero, one = slices.Clone(v.Knots), slices.Clone(v.Knots)
	half := func(i int) float64 {
		if i < 0 || i+1 == len(v.Knots) {
			return v.Tie
		}
		return min(v.Tie, (v.Knots[i+1]-v.Knots[i])/2)
	}
	for i := range v.Knots {
		zero[i] -= half(i - 1)
		one[i] += half(i)
	}
	return zero, one
}

// Interval returns p0 and p1 for log-odds. Between two knots an example of class 0 belongs to the lower one, and an example of class
// 1 to the upper one.
func (v VennAbers) Interval(logOdds float64) (p0, p1 float64) {
	zero, one := v.Steps()
	return v.between(logOdds, zero, one)
}

// between is Interval with the given steps.
func (v VennAbers) between(logOdds float64, zero, one []float64) (p0, p1 float64) {
	p1 = 1
	if i, _ := slices.BinarySearch(one, logOdds); i < len(one) {
		p1 = v.One[i]
	}
	i, found := slices.BinarySearch(zero, logOdds)
	switch {
	case found:
		p0 = v.Zero[i]
	case i > 0:
		p0 = v.Zero[i-1]
	}
	return p0, p1
}

// Apply stores the probabilities of both classes in dst for each row of two logits. dst has the length of logits and may be the same
// slice.
func (v VennAbers) Apply(dst, logits []float64) []float64 {
	if len(logits)%2 != 0 || len(v.Knots) == 0 {
		panic(badVector)
	}
	dst = destination(dst, len(logits))
	zero, one := v.Steps()
	for i := 0; i < len(logits); i += 2 {
		p0, p1 := v.between(logOdds(logits[i:]), zero, one)
		dst[i], dst[i+1] = (1-p0)/(1-p0+p1), p1/(1-p0+p1)
	}
	return dst
}

// Undetermined returns the reason why the rows do not determine the map, or "".
func (v VennAbers) Undetermined() string {
	if few := TooFew(v.Rows); few != "" {
		return few
	}
	if v.OneLabel {
		return OneValue(v.Rows)
	}
	return ""
}
