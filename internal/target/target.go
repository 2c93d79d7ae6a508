// Package target holds the targets of examples: the class, labels or numbers against which predictions are judged.
//
// # Invariants
//
// A Target holds values of one kind only: classes from 0, or rows of one width whose numbers are all finite. A class
// or label that is not known is [Unknown]. Numbers that are not known are NaN.
package target

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/swagwrap/swagwrap/internal/setting"
)

// Kind is the kind of targets that examples have.
type Kind int

const (
	Classes Kind = iota // one class number for each example
	Labels              // for each of several labels, 1 if the example has it and 0 if not, or Unknown
	Numbers             // one or several numbers for each example
)

// Positions says how labels of several positions of an example are stored.
type Positions struct {
	// Width is the number of labels or numbers of a position. It is 1 for classes.
	Width int
	// Axis is the axis of these numbers behind the batch: 1, or −1 for the last. It is not used if Width is 1.
	Axis int
	// Ignore is the class number of positions that count nowhere, or nil.
	Ignore *int
	// Classes is the number of classes, or 0 if nobody knows it.
	Classes int
	// Reduce says that classes are stored from 1, that 0 is no class, and that 255 is none either.
	Reduce bool
	// White, if not nil, allows 255 for class 1 of two classes: see [White].
	White *White
}

// Class returns the class of a stored number. It returns Unknown if the position counts nowhere. Then the number is
// Ignore, −1 as in files of this program, or −100 as in PyTorch. Other negative numbers are errors. ok is false for a
// number that int64 does not represent, which is an error too. v has its bits. With Reduce, the numbers are those of
// do_reduce_labels of Hugging Face's image processors: 0 and 255 count nowhere, and others become one less.
func (p *Positions) Class(v int64, ok bool) (int, error) {
	const none = 255
	if ok && p.Reduce && v >= 0 {
		if v == 0 || v == none {
			return Unknown, nil
		}
		v--
	}
	switch {
	case !ok:
		return 0, fmt.Errorf("label %d, want a class number", uint64(v))
	case p.Ignore != nil && v == int64(*p.Ignore), NoClass(float64(v)):
		return Unknown, nil
	case p.Classes == 2 && p.White != nil && !p.Reduce && (v == 1 || v == white):
		return p.White.class(v)
	case v < 0:
		return 0, fmt.Errorf("label %d, want a class from 0 up, or %d or %d where it does not count. If this label is no class, fit "+
			"with %s and its number", v, Unknown, torch, setting.IgnoreIndex)
	}
	return int(v), nil
}

// Text describes the tokens of a text that an example has to predict, one for each position.
type Text struct {
	// Unit numbers the documents, or the blocks of a text without documents, from 0. They are the units of chance, since
	// the tokens of one document depend on each other.
	Unit []int
	// Characters and Bytes are the lengths of the tokens in the text, with the space behind. They are nil if nobody knows
	// the text.
	Characters, Bytes []int
}

// Unknown stands for a class or label that is not known.
const Unknown = -1

// Target holds the targets of examples, in their order. The zero value has no targets.
type Target struct {
	Classes []int     // one for each position, or nil if Values is set
	Values  []float64 // a row of Width for each position: labels or numbers
	Width   int
	// Positions is the number of positions of an example, such as pixels. 0 stands for 1, the example itself.
	Positions int
	// Units numbers the unit of chance of each example, from 0. nil stands for examples that do not depend on each other.
	Units []int
	// Text describes the tokens that are the classes of an example, or is nil.
	Text *Text

	n    int // of examples that are loaded one at a time
	load func(i int) (Target, error)
}

// Lazy returns the targets of n examples with several positions. load returns those of one example. They are loaded
// when they are needed, because the labels of all pixels may not fit into memory.
func Lazy(n int, load func(i int) (Target, error)) Target { return Target{n: n, load: load} }

// Dense reports whether examples have several positions.
func (t Target) Dense() bool { return t.Positions > 1 || t.load != nil }

// None reports whether there are no targets.
func (t Target) None() bool { return t.Classes == nil && t.Values == nil && t.load == nil }

// Len returns the number of examples, or 0 without targets.
func (t Target) Len() int {
	if t.load != nil {
		return t.n
	}
	if t.Width > 0 {
		return len(t.Values) / t.Width / max(1, t.Positions)
	}
	return len(t.Classes) / max(1, t.Positions)
}

// Load returns the targets of example i. Without targets it returns t. It fails if they cannot be loaded.
func (t Target) Load(i int) (Target, error) {
	switch {
	case t.load != nil:
		return t.load(i)
	case t.None():
		return t, nil
	}
	return t.Part(i, i+1), nil
}

// At is like Load, but returns no targets if they cannot be loaded.
func (t Target) At(i int) Target {
	one, err := t.Load(i)
	if err != nil {
		return Target{}
	}
	return one
}

// Class returns the class of the first example. It is Unknown if the example has several positions.
func (t Target) Class() int {
	if len(t.Classes) == 0 || t.Dense() {
		return Unknown
	}
	return t.Classes[0]
}

// Known reports whether t, which has at most one example, has a target. Numbers that are all NaN are none.
func (t Target) Known() bool {
	if t.Classes != nil {
		return slices.ContainsFunc(t.Classes, func(c int) bool { return c >= 0 })
	}
	return slices.ContainsFunc(t.Values, func(v float64) bool { return v == v })
}

// Gaps reports whether targets are numbers, and some of them are not known.
func (t Target) Gaps() bool { return slices.ContainsFunc(t.Values, math.IsNaN) }

// AnyKnown reports whether any example has a target. One labelled pixel or token is enough.
func (t Target) AnyKnown() (bool, error) {
	for i := range t.Len() {
		one, err := t.Load(i)
		if err != nil {
			return false, err
		}
		if one.Known() {
			return true, nil
		}
	}
	return false, nil
}

// Part returns the targets of the examples [first, end). It shares memory with t.
func (t Target) Part(first, end int) Target {
	each := max(1, t.Positions)
	switch load := t.load; {
	case load != nil:
		return Lazy(end-first, func(i int) (Target, error) { return load(first + i) })
	case t.Classes != nil:
		t.Classes = t.Classes[first*each : end*each]
	case t.Values != nil:
		each *= t.Width
		t.Values = t.Values[first*each : end*each]
	}
	return t
}

// Pick returns the targets of the examples that rows lists, in that order.
func (t Target) Pick(rows []int) Target {
	if t.None() {
		return t
	}
	if t.load != nil {
		return Lazy(len(rows), func(k int) (Target, error) { return t.load(rows[k]) })
	}
	out := Target{Width: t.Width, Positions: t.Positions}
	for _, i := range rows {
		out = out.Append(t.At(i))
	}
	return out
}

// Append returns t followed by more, which must have the same kind, width and positions.
func (t Target) Append(more Target) Target {
	t.Classes, t.Values, t.Width = append(t.Classes, more.Classes...), append(t.Values, more.Values...), more.Width
	t.Positions = more.Positions
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

// White remembers which number the labels of one data set have for class 1 of two classes: 1, or 255 as drawing programs write
// white. It may not be both. Any number of goroutines may use it.
type White struct{ one, white atomic.Bool }

// white is the label of white pixels.
const white = 255

// class returns the class of the label v, which is 1 or 255.
func (w *White) class(v int64) (int, error) {
	seen, other := &w.one, &w.white
	if v == white {
		seen, other = other, seen
	}
	if !seen.Load() {
		seen.Store(true) // before the other is read, so one of two goroutines sees both
	}
	if other.Load() {
		return 0, fmt.Errorf("label %d, and other labels are %d: want masks of 0 and 1, or of 0 and %d. If %d is no class, fit with %s "+
			"and this number", v, 1+white-v, white, white, setting.IgnoreIndex)
	}
	return 1, nil
}

// Rule says in words what was found, or returns "".
func (w *White) Rule() string {
	if w == nil || !w.white.Load() {
		return ""
	}
	return fmt.Sprintf("label %d is class 1, since the labels have 0 and %d only", white, white)
}

// Found reports whether a label of class 1 was seen.
func (w *White) Found() bool { return w.one.Load() || w.white.Load() }

// torch is the class that PyTorch's losses ignore.
const torch = -100

// NoClass reports whether a stored number stands for a class that is not known: −1 as in files of this program and of many data
// sets, or −100 as in PyTorch.
func NoClass(v float64) bool { return v == Unknown || v == torch }

// Signs finds files whose labels are only −1 and 1. Then −1 may be a class, as in LIBSVM and CelebA, or no label. The zero value has
// seen no label.
type Signs struct{ minus, plus, other bool }

// Add notes a label.
func (s *Signs) Add(v float64) {
	switch v {
	case -1:
		s.minus = true
	case 1:
		s.plus = true
	case torch:
	default:
		s.other = s.other || v == v
	}
}

// Err returns a [SignsError] if all labels are −1 and 1, and both occur.
func (s *Signs) Err() error {
	if s.minus && s.plus && !s.other {
		return &SignsError{}
	}
	return nil
}

// A SignsError is the error for labels that are only −1 and 1.
type SignsError struct{}

func (*SignsError) Error() string {
	return "all labels are −1 or 1: −1 may be a class of its own, or no label"
}

// Hint says what to save instead.
func (*SignsError) Hint() string {
	return "if −1 is class 0, save (labels + 1) // 2, or name the classes -1 and 1: " + setting.Fit.With(setting.ClassNames.With("FILE")) +
		"\nif −1 is no label, save NaN or an empty cell there, or -100 among whole numbers"
}
