package table

import (
	"encoding/csv"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// ErrColumns is the error of a table of which it is not known which columns the network
// takes.
var ErrColumns = errors.New("which columns does the network take?")

// Choose returns the columns that were said to be of an input, in their order; patterns
// with * stand for all that they match, in the file's.
func Choose(names, said []string) (out []string, err error) {
	for _, s := range said {
		found := []string{s}
		if !slices.Contains(names, s) && strings.Contains(s, "*") {
			found = nil
			for _, name := range names {
				if ok, err := path.Match(s, name); err == nil && ok {
					found = append(found, name)
				}
			}
		}
		if len(found) == 0 || !slices.Contains(names, found[0]) {
			return nil, fmt.Errorf("no column %q among %q: %w", s, names, ErrColumns)
		}
		for _, name := range found {
			if slices.Contains(out, name) {
				return nil, fmt.Errorf("column %q is there twice", name)
			}
			out = append(out, name)
		}
	}
	return out, nil
}

// Split reads names of columns with commas between, as a line of CSV has them.
func Split(text string) ([]string, error) {
	names, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil || slices.Contains(names, "") {
		return nil, fmt.Errorf("%q, want names of columns with commas between", text)
	}
	return names, nil
}
