package report

import (
	"cmp"
	"slices"
)

// Selection picks the examples of a [Montage] out of any number that pass by. It
// holds only those that it would show.
type Selection struct {
	count                               int
	certain, uncertain, disagree, wrong top
}

// NewSelection returns a selection of at most n examples for each section; n
// must be positive.
func NewSelection(n int) *Selection {
	return &Selection{certain: top{n: n}, uncertain: top{n: n}, disagree: top{n: n}, wrong: top{n: n}}
}

// noDisagreement is the mutual information, in nats, below which members agree
// but for rounding: networks answer in float32, and averages of equal
// probabilities differ in their last bits.
const noDisagreement = 1e-9

// Add offers an example and copies what it keeps. Examples may come in any order.
// One without a prediction, or with numbers that are not finite, is passed over:
// it could not be scored.
func (s *Selection) Add(e Example) {
	if len(e.Top) == 0 || !finite(e.prediction().Probability) || !finite(e.Entropy) || !finite(e.MutualInformation) {
		return
	}
	s.count++
	s.certain.add(-e.Entropy, &e)
	s.uncertain.add(e.Entropy, &e)
	if e.MutualInformation > noDisagreement {
		s.disagree.add(e.MutualInformation, &e)
	}
	if e.wrong() {
		s.wrong.add(e.prediction().Probability, &e)
	}
}

func finite(x float64) bool { return x-x == 0 }

// Sections returns what was found, the most extreme first, and of equals the
// lower index first. A section that nothing belongs to is left out. Where there
// are few examples, the more certain half and the less certain one share them.
func (s *Selection) Sections() []Section {
	certain, uncertain := s.certain.sorted(), s.uncertain.sorted()
	certain = certain[:min(len(certain), (s.count+1)/2)]
	uncertain = uncertain[:min(len(uncertain), s.count/2)]
	return slices.DeleteFunc([]Section{
		{"Most certain", "The lowest predictive entropy. If an image here shows nothing that belongs to the classes, the ensemble does not notice.", certain},
		{"Least certain", "The highest predictive entropy: several classes are about as probable.", uncertain},
		{"Most disagreement between members", "The highest mutual information: each member is surer than their average. More training data of this kind would help most.", s.disagree.sorted()},
		{"Confident and wrong", "The highest confidence among wrong predictions. Look at the labels too: some of them may be what is wrong.", s.wrong.sorted()},
	}, func(s Section) bool { return len(s.Examples) == 0 })
}

// top keeps the n examples with the highest keys, of equals those with the lower
// index.
type top struct {
	n    int
	kept []keyed // in order
}

type keyed struct {
	key float64
	Example
}

// before orders by key, the highest first, then by index.
func before(a, b keyed) int {
	return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(a.Index, b.Index))
}

// add keeps e if it belongs to the n so far. Almost none does when many pass by,
// so the common case is one comparison.
func (t *top) add(key float64, e *Example) {
	k := keyed{key, *e}
	if len(t.kept) == t.n && before(k, t.kept[t.n-1]) > 0 {
		return
	}
	k.Top = slices.Clone(e.Top[:min(len(e.Top), shownScores)])
	at, _ := slices.BinarySearchFunc(t.kept, k, before)
	t.kept = slices.Insert(t.kept, at, k)
	t.kept = t.kept[:min(len(t.kept), t.n)]
}

func (t *top) sorted() []Example {
	examples := make([]Example, len(t.kept))
	for i, k := range t.kept {
		examples[i] = k.Example
	}
	return examples
}
