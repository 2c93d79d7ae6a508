package names

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A MismatchError is the error for columns of a file that are not those of another.
type MismatchError struct {
	What       string // such as: columns of the labels
	Have, Want []string
	From       string // who has the wanted ones; "" for the model card
}

func (e *MismatchError) Error() string {
	from := e.From
	if from == "" {
		from = CardName
	}
	text := fmt.Sprintf("%s %s, want those of %s: %s", e.What, list(e.Have), from, list(e.Want))
	without := func(all, other []string) (out []string) {
		at := Places(other)
		for _, name := range all {
			if _, ok := at[Key(name)]; !ok {
				out = append(out, name)
			}
		}
		return out
	}
	if missing := without(e.Want, e.Have); len(missing) > 0 {
		text += "; missing: " + list(missing)
	}
	if more := without(e.Have, e.Want); len(more) > 0 {
		text += "; unknown: " + list(more)
	}
	return text
}

// Match returns the order of have that has the names of want: have[out[i]] is want[i]. ok is false if the names differ.
func Match(have, want []string) (order []int, ok bool) {
	if len(have) != len(want) {
		return nil, false
	}
	at := Places(have)
	for _, name := range want {
		i, ok := at[Key(name)]
		if !ok {
			return nil, false
		}
		order = append(order, i)
	}
	return order, len(at) == len(have)
}

// ByNumber returns the order of names such as x_0, x_1 … x_10 by their numbers. ok is false for names that differ in front of
// the number, and for a number that is there twice.
func ByNumber(have []string) (order []int, ok bool) {
	number, seen := make([]int, len(have)), map[int]bool{}
	stem := ""
	for i, name := range have {
		name = Key(name)
		front := strings.TrimRight(name, "0123456789")
		n, err := strconv.Atoi(name[len(front):])
		if err != nil || i > 0 && front != stem || seen[n] {
			return nil, false
		}
		stem, number[i], seen[n] = front, n, true
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return number[a] - number[b] })
	return order, true
}

// Pick returns the elements of all in the given order.
func Pick[T any](all []T, order []int) (out []T) {
	for _, i := range order {
		out = append(out, all[i])
	}
	return out
}

// Targets says which columns are the labels of a task with several.
type Targets struct {
	Known   []string // their names in an earlier file, or nil
	From    string   // the earlier file
	Classes []string // the names of the labels on the model card, or nil
}

// stem removes a word such as label_ from the names of columns if all begin with it.
func stem(have []string) []string {
	out := slices.Clone(have)
	for i, name := range have {
		front, rest, ok := strings.Cut(Key(name), "_")
		first, _, _ := strings.Cut(Key(have[0]), "_")
		if !ok || front != first {
			return have
		}
		out[i] = rest
	}
	return out
}

// Order returns the order of the columns of labels in a file. rule says by what they were ordered, if it is not the order
// of the file.
func (t Targets) Order(have []string) (order []int, rule string, err error) {
	const what = "columns of labels"
	if t.Known != nil {
		order, ok := Match(have, t.Known)
		if !ok {
			order, ok = Match(stem(have), stem(t.Known))
		}
		if !ok {
			return nil, "", &MismatchError{what, have, t.Known, t.From}
		}
		return order, "", nil
	}
	if t.Classes != nil {
		for _, names := range [][]string{have, stem(have)} {
			if order, ok := Match(names, t.Classes); ok {
				return order, "", nil
			}
		}
		known := Places(t.Classes)
		if slices.ContainsFunc(stem(have), func(name string) bool { _, ok := known[Key(name)]; return ok }) {
			return nil, "", &MismatchError{what, have, t.Classes, ""}
		}
	}
	if order, ok := ByNumber(have); ok {
		if !slices.IsSorted(order) {
			rule = what + " have the order of their numbers: " + list(Pick(have, order))
		}
		return order, rule, nil
	}
	for i := range have {
		order = append(order, i)
	}
	if len(have) > 1 {
		rule = what + " have the order of the file: " + list(have)
	}
	return order, rule, nil
}

// Columns says which order the columns of an input of the network have.
type Columns struct {
	Known []string // of an earlier file, or nil
	From  string   // the earlier file
	Input string   // the name of the network's input, or ""
}

// An OrderError is the error for numbered columns that do not stand in the order of their numbers, where nobody says which
// order training had.
type OrderError struct{ File, Numbers []string }

func (e *OrderError) Error() string {
	return fmt.Sprintf("numbered columns in the order %s, and nobody says whether training had them in this order or in that of their "+
		"numbers", list(e.File))
}

// Order returns the order in which columns of a file feed the network. rule says by what they were ordered, if it is not
// the order of the file.
func (c Columns) Order(have []string) (order []int, rule string, err error) {
	if c.Known != nil && (len(have) > 1 || len(c.Known) > 1) {
		order, ok := Match(have, c.Known)
		if !ok {
			return nil, "", &MismatchError{"columns", have, c.Known, c.From}
		}
		if !slices.IsSorted(order) {
			rule = fmt.Sprintf("its columns have another order than those of %s, and were matched by name", c.From)
		}
		return order, rule, nil
	}
	order, ok := ByNumber(have)
	switch {
	case ok && len(have) > 1 && slices.IsSorted(order):
		return order, "", nil
	case ok && len(have) > 1 && strings.HasPrefix(have[0], c.Input+"_"), ok && len(have) > 1 && strings.HasPrefix(have[0], c.Input+"."):
		return order, "columns have the order of their numbers: " + list(Pick(have, order)), nil
	case ok && len(have) > 1:
		return nil, "", &OrderError{have, Pick(have, order)}
	}
	order = nil
	for i := range have {
		order = append(order, i)
	}
	if len(have) > 1 {
		rule = "columns feed the network in the order of the file: " + list(have)
	}
	return order, rule, nil
}
