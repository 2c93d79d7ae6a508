package expect

import (
	"cmp"
	"slices"

	"github.com/swagwrap/swagwrap/internal/splitmix"
)

// Next chooses examples to label next, as examples are added one at a time. It keeps at most 4·n of them.
//
// Each stratum gets a part of the n labels: see [Sums.allocate]. So uncertain examples are chosen more often than others. Inside a stratum
// every example without a label has the same chance. The chosen ones spread over the kinds of predictions: a random sample is sorted by
// kind, and every k-th is taken (systematic sampling; Cochran 1977, chapter 8). That is what [Reference.Estimate] needs of labels.
type Next struct {
	n    int
	kept [strata][]Candidate // the lowest keys first
}

// Candidate is an example without a label.
type Candidate struct {
	Index             int // among all rows
	Name              string
	Kind, Uncertainty float64

	key uint64
}

// seed makes keys of indices.
const seed = 0x6e657874

// NewNext chooses n examples.
func NewNext(n int) *Next { return &Next{n: n} }

// Add adds an example without a label, by its index among all rows.
func (x *Next) Add(v *Validation, s *Seen, index int, name string) {
	h, c := v.stratum(s), Candidate{index, name, s.Kind, s.Uncertainty, splitmix.Nth(seed, uint64(index))}
	list := x.kept[h]
	at, _ := slices.BinarySearchFunc(list, c, func(a, b Candidate) int { return cmp.Compare(a.key, b.key) })
	if at == x.n {
		return
	}
	list = slices.Insert(list, at, c)
	x.kept[h] = list[:min(x.n, len(list))]
}

// List returns the chosen examples by index. t has the sums of all examples.
func (x *Next) List(v *Validation, t *Tally) (out []Candidate) {
	for h, want := range v.allocate(t, x.n) {
		list := slices.Clone(x.kept[h])
		slices.SortStableFunc(list, func(a, b Candidate) int { return cmp.Compare(a.Kind, b.Kind) })
		for k := range want { // in the middle of want parts of equal length
			out = append(out, list[(2*k+1)*len(list)/(2*want)])
		}
	}
	slices.SortFunc(out, func(a, b Candidate) int { return a.Index - b.Index })
	return out
}
