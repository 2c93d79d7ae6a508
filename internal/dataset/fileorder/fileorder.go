// Package fileorder has the rule for the order of files that nobody listed. Rows without names, such as those of an array,
// belong to files by their place. Python's sorted and torchvision sort names as text: 1, 10, 2. People and natsort sort them
// as numbers: 1, 2, 10. Where these orders differ, nothing tells which of them the array has, and the user has to say it.
//
// The order of numbers compares the runs of the digits 0 to 9 by their values, from left to right, and all else as text.
// Names may hold numbers of another kind: decimals, negative numbers, hexadecimal digits. If these have another order, then
// the order of numbers is in doubt too.
package fileorder

import (
	"cmp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/word"
)

// Order is the order of files.
type Order string

const (
	Unsaid Order = ""       // as text, and in doubt if another order is possible
	Text   Order = "text"   // by the code points of the names
	Number Order = "number" // by the numbers in the names
	Given  Order = "given"  // as an archive has its files. Folders and patterns have no such order
)

var orders = []string{string(Text), string(Number), string(Given)}

// Words lists the orders that a user may name.
func Words() []string { return slices.Clone(orders) }

// Parse returns the order of that name.
func Parse(text string) (Order, error) {
	if text == "" {
		return Unsaid, nil
	}
	return Order(text), word.Check(text, orders...)
}

// Compare compares two names in the order. Only the order Number differs from that of the text. Names with the same numbers
// are compared as text.
func (o Order) Compare(a, b string) int {
	if o != Number {
		return strings.Compare(a, b)
	}
	return cmp.Or(strings.Compare(integerKey(a), integerKey(b)), strings.Compare(a, b))
}

// Sort sorts n values by their names. It is stable.
func Sort[T any](o Order, values []T, name func(T) string) {
	if o != Number {
		slices.SortStableFunc(values, func(a, b T) int { return strings.Compare(name(a), name(b)) })
		return
	}
	type keyed struct {
		key   string
		value T
	}
	all := make([]keyed, len(values))
	for i, v := range values {
		all[i] = keyed{integerKey(name(v)), v}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(name(a.value), name(b.value)))
	})
	for i, v := range all {
		values[i] = v.value
	}
}

// By says who put names in the order that they have.
type By int

const (
	Sorted   By = iota // this program, as text or by numbers
	Archived           // the program that wrote an archive: by a list, by names, or as they lay on the disk
	Typed              // a user, or a shell that expanded a pattern
)

// A Difference is the first place where two possible orders of names differ.
type Difference struct {
	At           int    // the place
	Other        int    // the index of the name that the other order has there
	Here, There  string // the two orders, in words
	Same, Number bool   // the two names have the same number; the order of numbers was wanted
}

// Differs returns where the order of the names is in doubt, or nil. They are in the order o if they were sorted.
func (o Order) Differs(names []string, by By) *Difference {
	switch {
	case o == Text, o == Given && by != Sorted:
		return nil
	case o == Number:
		return first(names, wholeNumbers, readings(names)[2:])
	case by == Sorted:
		return first(names, asText, readings(names)[1:])
	case !slices.IsSorted(names) && by == Typed:
		return nil
	}
	all := readings(names)
	d := first(names, asText, all[1:])
	if d == nil || slices.IsSorted(names) {
		return d
	}
	if isNumbered := first(names, wholeNumbers, all[1:]) == nil; isNumbered {
		return nil
	}
	return first(names, reading{name: "as the archive has its files"}, all[:1])
}

// first returns the first place where names are not in the order of one of the readings.
func first(names []string, here reading, others []reading) *Difference {
	for _, r := range others {
		keys := make([]string, len(names))
		for i, name := range names {
			keys[i] = r.key(name)
		}
		same := -1
		for i := 1; i < len(names); i++ {
			if keys[i-1] == keys[i] && names[i-1] != names[i] {
				same = i
				break
			}
		}
		if slices.IsSorted(keys) {
			if same < 0 {
				continue
			}
			return &Difference{
				At:     same - 1,
				Other:  same,
				Here:   here.name,
				There:  r.name,
				Same:   true,
				Number: here.name == wholeNumbers.name,
			}
		}
		order := make([]int, len(names))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
		at := 0
		for order[at] == at {
			at++
		}
		return &Difference{At: at, Other: order[at], Here: here.name, There: r.name, Number: here.name == wholeNumbers.name}
	}
	return nil
}
