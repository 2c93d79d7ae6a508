package report

import (
	"cmp"
	"slices"
)

// Selection picks the examples of a [Montage] from a stream of any length. It keeps only the examples that it would
// show.
type Selection struct {
	// Words holds the headings and explanations of the sections. The zero value means those for classes.
	Words [4][2]string

	count                               int
	certain, uncertain, disagree, wrong top
}

// NewSelection returns a selection of at most n examples for each section; n must be positive.
func NewSelection(n int) *Selection {
	return &Selection{certain: top{n: n}, uncertain: top{n: n}, disagree: top{n: n}, wrong: top{n: n}}
}

// noDisagreement is the mutual information, in nats, below which members agree up to rounding. Networks compute in
// float32, and averages of equal probabilities differ in their last bits.
const noDisagreement = 1e-9

// Add offers an example and copies the parts that it keeps. Examples may come in any order. An example without a
// prediction, or with numbers that are not finite, is skipped, because it could not be scored.
func (s *Selection) Add(e Example) {
	uncertain, disagree, wrong, ok := e.keys()
	if !ok {
		return
	}
	s.count++
	s.certain.add(-uncertain, &e)
	s.uncertain.add(uncertain, &e)
	if disagree > noDisagreement {
		s.disagree.add(disagree, &e)
	}
	if e.wrong() {
		s.wrong.add(wrong, &e)
	}
}

func finite(x float64) bool { return x-x == 0 }

// Sections returns the result, the most extreme examples first. Of equal examples the lower index comes first. Empty
// sections are left out. If there are few examples, none is in both the certain and the uncertain section.
func (s *Selection) Sections() []Section {
	certain, uncertain := s.certain.sorted(), s.uncertain.sorted()
	certain = certain[:min(len(certain), (s.count+1)/2)]
	uncertain = uncertain[:min(len(uncertain), s.count/2)]
	words := s.Words
	if words == ([4][2]string{}) {
		words = ofClasses
	}
	var sections []Section
	for i, examples := range [4][]Example{certain, uncertain, s.disagree.sorted(), s.wrong.sorted()} {
		if len(examples) > 0 {
			sections = append(sections, Section{words[i][0], words[i][1], examples})
		}
	}
	return sections
}

var ofClasses = [4][2]string{
	{"Most certain", "The lowest predictive entropy. If an image here shows nothing that belongs to the classes, the ensemble does not notice."},
	{"Least certain", "The highest predictive entropy: several classes are about as probable."},
	{"Most disagreement between members", "The highest mutual information: each member is surer than their average. More training data of this kind would help most."},
	{"Confident and wrong", "The highest confidence among wrong predictions. Look at the labels too: some of them may be what is wrong."},
}

// top keeps the n examples with the highest keys. Of equal keys it keeps the lower index.
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

// add keeps e if it is among the best n so far. In a long stream almost no example is, so the common case is one
// comparison.
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
