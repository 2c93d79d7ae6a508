// Package truth holds what is known of examples, beside which predictions are judged.
//
// # Invariants
//
// Truth of a kind has the numbers of that kind only: classes from 0, or rows of one width
// that are all finite. What is not known of a class or a label is [Unknown].
package truth

import "fmt"

// Kind is what is known of an example.
type Kind int

const (
	Classes Kind = iota // the number of its class
	Labels              // of each of several labels, whether it has it: 1 or 0, or Unknown
	Numbers             // one number, or several
)

// Unknown is a class or a label that nobody knows.
const Unknown = -1

// Truth is what is known of examples, in their order. The zero value is nothing.
type Truth struct {
	Classes []int     // of each example; or
	Values  []float64 // n×Width, row-major: labels or numbers
	Width   int
}

// None says that nothing is known.
func (t Truth) None() bool { return t.Classes == nil && t.Values == nil }

// Len is the number of examples; 0 where nothing is known.
func (t Truth) Len() int {
	if t.Width > 0 {
		return len(t.Values) / t.Width
	}
	return len(t.Classes)
}

// At is what is known of example i; where nothing is known of any, that is the same.
func (t Truth) At(i int) Truth {
	if t.None() {
		return t
	}
	return t.Part(i, i+1)
}

// Class is that of the only example, or Unknown.
func (t Truth) Class() int {
	if len(t.Classes) == 0 {
		return Unknown
	}
	return t.Classes[0]
}

// Known says that there is something to judge an only example beside.
func (t Truth) Known() bool {
	if t.Classes != nil {
		return t.Class() >= 0
	}
	return t.Values != nil
}

// Part is that of the examples [first, end), in the same memory.
func (t Truth) Part(first, end int) Truth {
	switch {
	case t.Classes != nil:
		t.Classes = t.Classes[first:end]
	case t.Values != nil:
		t.Values = t.Values[first*t.Width : end*t.Width]
	}
	return t
}

// Pick is that of some examples, in the order of rows.
func (t Truth) Pick(rows []int) Truth {
	if t.None() {
		return t
	}
	out := Truth{Width: t.Width}
	for _, i := range rows {
		out = out.Append(t.At(i))
	}
	return out
}

// Append is that of more examples, of the same kind and width.
func (t Truth) Append(more Truth) Truth {
	t.Classes, t.Values, t.Width = append(t.Classes, more.Classes...), append(t.Values, more.Values...), more.Width
	return t
}

// Check fails for a value that none of the kind can be. It names its place in a row.
func (k Kind) Check(row []float64) error {
	for i, v := range row {
		switch {
		case k == Numbers && v-v != 0:
			return fmt.Errorf("target %d is %v, want a finite number", i, v)
		case k == Labels && v != 0 && v != 1 && v != Unknown:
			return fmt.Errorf("label %d is %v, want 0, 1, or %d where it is not known", i, v, Unknown)
		}
	}
	return nil
}
