package table

import (
	"encoding/csv"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/names"
)

// ErrColumns is the error for a table if the columns for the network are unknown.
var ErrColumns = errors.New("which columns does the network take?")

// Choose returns the columns in stated, in that order. A pattern with * stands for all columns that it matches, in the
// order of the file.
func Choose(have, stated []string) (out []string, err error) {
	known, chosen := set(have), make(map[string]bool)
	var at map[string]int
	for _, s := range stated {
		if !known[s] && !strings.Contains(s, "*") {
			if at == nil {
				at = names.Places(have)
			}
			if i, ok := at[names.Key(s)]; ok {
				s = have[i]
			}
		}
		found := []string{s}
		if !known[s] && strings.Contains(s, "*") {
			found = nil
			for _, name := range have {
				if ok, err := path.Match(s, name); err == nil && ok {
					found = append(found, name)
				}
			}
		}
		if len(found) == 0 || !known[found[0]] {
			more := ""
			if most := 20; len(have) > most {
				have, more = have[:most], fmt.Sprintf(" and %d more", len(have)-most)
			}
			return nil, fmt.Errorf("no column %q among %q%s: %w", s, have, more, ErrColumns)
		}
		for _, name := range found {
			if chosen[name] {
				return nil, fmt.Errorf("column %q is there twice", name)
			}
			chosen[name] = true
			out = append(out, name)
		}
	}
	return out, nil
}

// Join is the inverse of [Split].
func Join(names []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(names) // writing to memory cannot fail
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// Split parses a comma-separated list of column names, as in a line of CSV.
func Split(text string) ([]string, error) {
	all, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil || slices.Contains(all, "") {
		return nil, fmt.Errorf("%q, want names of columns with commas between", text)
	}
	return all, nil
}
