// Package truth holds the targets of examples: the class, labels or numbers against which predictions are judged.
//
// # Invariants
//
// A Truth holds values of one kind only: classes from 0, or rows of one width whose numbers are all finite. A class
// or label that is not known is [Unknown].
package truth

import "fmt"

// Kind is the kind of targets that examples have.
type Kind int

const (
	Classes Kind = iota // one class number for each example
	Labels              // for each of several labels, 1 if the example has it and 0 if not, or Unknown
	Numbers             // one or several numbers for each example
)

// Unknown stands for a class or label that is not known.
const Unknown = -1

// Truth holds the targets of examples, in their order. The zero value has no targets.
type Truth struct {
	Classes []int     // one for each example, or nil if Values is set
	Values  []float64 // n×Width, row-major: labels or numbers
	Width   int
}

// None reports whether there are no targets.
func (t Truth) None() bool { return t.Classes == nil && t.Values == nil }

// Len returns the number of examples, or 0 without targets.
func (t Truth) Len() int {
	if t.Width > 0 {
		return len(t.Values) / t.Width
	}
	return len(t.Classes)
}

// At returns the targets of example i. Without targets it returns t.
func (t Truth) At(i int) Truth {
	if t.None() {
		return t
	}
	return t.Part(i, i+1)
}

// Class returns the class of the first example, or Unknown.
func (t Truth) Class() int {
	if len(t.Classes) == 0 {
		return Unknown
	}
	return t.Classes[0]
}

// Known reports whether t, which has at most one example, has a target.
func (t Truth) Known() bool {
	if t.Classes != nil {
		return t.Class() >= 0
	}
	return t.Values != nil
}

// Part returns the targets of the examples [first, end). It shares memory with t.
func (t Truth) Part(first, end int) Truth {
	switch {
	case t.Classes != nil:
		t.Classes = t.Classes[first:end]
	case t.Values != nil:
		t.Values = t.Values[first*t.Width : end*t.Width]
	}
	return t
}

// Pick returns the targets of the examples that rows lists, in that order.
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

// Append returns t followed by more, which must have the same kind and width.
func (t Truth) Append(more Truth) Truth {
	t.Classes, t.Values, t.Width = append(t.Classes, more.Classes...), append(t.Values, more.Values...), more.Width
	return t
}

// Check returns an error if a value of row is not valid for the kind. The error names the value's place in the row.
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
