// Package names turns names into numbers: of classes, and of columns of tables. Names decide, and places do not.
//
// One [Known] says what the model card and the files of a command call things. The first file that has names gives them,
// and all others are compared with it.
//
// # Invariants
//
// Two names are equal if they have the same letters: Unicode's forms NFC and NFD, and spaces around a name, do not matter.
// All labels of a file are read in one way: as names, or as numbers.
package names

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Known says what things are called. Their order gives their numbers.
type Known struct {
	// Classes are the names of the classes 0, 1, 2 …, or nil. ClassesFrom is the file that has them, or says that it is the
	// model card.
	Classes     []string
	ClassesFrom string
	// Columns are the columns of a table that feed each input of the network, in its order.
	Columns     map[string][]string
	ColumnsFrom string
	// Targets are the columns of several labels or of several numbers.
	Targets     []string
	TargetsFrom string
}

// Learn takes over the names of a file that are not known yet.
func (k *Known) Learn(from Known) {
	if k.Classes == nil {
		k.Classes, k.ClassesFrom = from.Classes, from.ClassesFrom
	}
	if len(k.Columns) == 0 {
		k.Columns, k.ColumnsFrom = from.Columns, from.ColumnsFrom
	}
	if k.Targets == nil {
		k.Targets, k.TargetsFrom = from.Targets, from.TargetsFrom
	}
}

// Clone returns a copy that shares no map.
func (k Known) Clone() Known {
	k.Columns = maps.Clone(k.Columns)
	return k
}

// Key returns a name in the form in which names are compared: NFC, without spaces around it.
func Key(name string) string { return norm.NFC.String(strings.TrimSpace(name)) }

// Equal reports whether two names have the same letters.
func Equal(a, b string) bool { return Key(a) == Key(b) }

// Places returns the place of each name in a list, by its [Key]. A list may have a million names.
func Places(list []string) map[string]int {
	at := make(map[string]int, len(list))
	for i, name := range slices.Backward(list) { // the first of two with the same name
		at[Key(name)] = i
	}
	return at
}

// Number reads the number of a class, which may be written as 3, 03, 3.0 or 3,0. ok is false for everything else.
func Number(text string) (n int, ok bool) {
	whole, fraction, _ := strings.Cut(point(text), ".")
	if whole == "" || strings.Trim(whole, "0123456789") != "" || strings.Trim(fraction, "0") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(whole)
	return n, err == nil
}

// Missing reports whether a label among numbers is one of the texts that pandas, R and databases write for an empty cell.
func Missing(text string) bool {
	return slices.Contains([]string{"nan", "na", "<na>", "null"}, strings.ToLower(strings.TrimSpace(text)))
}

// point writes a number with a decimal comma, such as 3,0, with a point. Spreadsheets of many countries write a comma. Three
// digits behind it may be thousands: 1,000 stays.
func point(text string) string {
	text = strings.TrimSpace(text)
	whole, fraction, ok := strings.Cut(text, ",")
	if !ok || whole == "" || fraction == "" || len(fraction) == 3 ||
		strings.Trim(strings.TrimLeft(whole, "+-")+fraction, "0123456789") != "" {
		return text
	}
	return whole + "." + fraction
}

// numbers returns the number of each name, or nil if one is no number.
func numbers(list []string) (out []int) {
	for _, name := range list {
		n, ok := Number(name)
		if !ok {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// sorted returns the different names in the order of the alphabet, as torchvision and scikit-learn number classes. bytewise
// is false if the bytes of the names have another order. Then some names do not have the form NFC.
func sorted(list []string) (out []string, bytewise bool) {
	out = slices.Clone(list)
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(Key(a), Key(b)) })
	out = slices.CompactFunc(out, Equal)
	return out, slices.IsSorted(out)
}
