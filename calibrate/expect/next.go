package expect

import (
	"cmp"
	"slices"

	"github.com/swagwrap/swagwrap/internal/splitmix"
)

// Next chooses examples to label next, as examples are added one at a time. It keeps at most 4·n of them.
//
// Each stratum gets a part of the n labels: see [Sums.Allocate]. So uncertain examples are chosen more often than others. Inside a stratum
// every example without a label has the same chance, and the chosen ones spread over the predicted classes: a random sample is sorted by
// class, and systematic sampling takes every k-th (Cochran 1977, chapter 8). That is what [Reference.Estimate] needs of labels.
type Next struct {
	n    int
	kept [strata][]Candidate // the lowest keys first
}

// Candidate is an example without a label.
type Candidate struct {
	Index      int // among all rows
	Name       string
	Predicted  int
	Confidence float64
	Stratum    int // 0 has the least confident examples

	key uint64
}

// seed makes keys of indices.
const seed = 0x6e657874

// NewNext chooses n examples.
func NewNext(n int) *Next { return &Next{n: n} }

// Add adds an example without a label.
func (x *Next) Add(r *Reference, c Candidate) {
	c.Stratum, c.key = r.stratum(c.Confidence), splitmix.At(seed, uint64(c.Index))
	list := x.kept[c.Stratum]
	at, _ := slices.BinarySearchFunc(list, c, func(a, b Candidate) int { return cmp.Compare(a.key, b.key) })
	if at == x.n {
		return
	}
	list = slices.Insert(list, at, c)
	x.kept[c.Stratum] = list[:min(x.n, len(list))]
}

// List returns the chosen examples by index. s has the sums of all examples.
func (x *Next) List(r *Reference, s *Sums) (out []Candidate) {
	for h, want := range s.Allocate(r, x.n) {
		list := slices.Clone(x.kept[h])
		slices.SortStableFunc(list, func(a, b Candidate) int { return cmp.Compare(a.Predicted, b.Predicted) })
		for k := range want { // in the middle of want parts of equal length
			out = append(out, list[(2*k+1)*len(list)/(2*want)])
		}
	}
	slices.SortFunc(out, func(a, b Candidate) int { return a.Index - b.Index })
	return out
}
