package dataset

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/target"
)

// Bare returns the first example of d that has no label where others have one, and the number of such examples. Examples
// with several positions have no label of their own, and are not counted.
func Bare(d Dataset) (first, n int) {
	e, labels := examplesIn(d), d.Labels()
	if labels.Dense() {
		return -1, 0
	}
	first = -1
	// −1 stands for a label that is not known, and may be a number.
	numbers := labels.Gaps()
	for i := range labels.Len() {
		one := labels.Part(i, i+1)
		if (one.Classes != nil || numbers) && one.Known() || !numbers && slices.ContainsFunc(one.Values, func(v float64) bool {
			return v != target.Unknown
		}) {
			continue
		}
		if e.file != nil && labels.Len() == e.n {
			if x, err := e.file(i); err == nil && x.Unlisted() {
				continue // it cannot be read, which is counted elsewhere
			}
		}
		if n++; first < 0 {
			first = i
		}
	}
	return first, n
}

// noteBare notes how many examples have no label.
func (e *examples) noteBare(d Dataset, kind target.Kind) {
	if kind == target.Numbers {
		return // any number is a target
	}
	if first, n := Bare(d); n > 0 && n < d.Len() {
		e.told.note(fmt.Sprintf("no label: %d of %d examples, such as %s; no score counts them", n, d.Len(), d.Name(first)))
	}
}
