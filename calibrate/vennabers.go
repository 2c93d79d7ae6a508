package calibrate

import (
	"cmp"
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

// Interval returns p0 and p1 for log-odds. Between two knots an example of class 0 belongs to the lower one, and an example of class
// 1 to the upper one.
func (v VennAbers) Interval(logOdds float64) (p0, p1 float64) {
	i, found := slices.BinarySearch(v.Knots, logOdds)
	p1 = 1
	if i < len(v.Knots) {
		p1 = v.One[i]
	}
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
	for i := 0; i < len(logits); i += 2 {
		p0, p1 := v.Interval(logOdds(logits[i:]))
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
