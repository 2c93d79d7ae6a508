// Package groups finds which examples belong together, such as the pictures of a patient.
package groups

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/keys"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
)

var (
	folders = regexp.MustCompile(`^folder(?::([1-9]))?$`)
	tables  = regexp.MustCompile(`(?i)^(.+(?:` + strings.ReplaceAll(strings.Join(table.Extensions, "|"), ".", `\.`) + `)(?:\.gz)?):(.+)$`)
)

// Parse returns a function that names the group of example i with a name. how is one of
//
//	folder        the folder of the example; folder:2 the folder above that, and so on
//	FILE:COLUMN   a column of a table (.csv .tsv .parquet .jsonl), which may be the data itself. Another column names the
//	              example; without one, row i is example i. See package keys
//	EXPRESSION    a regular expression with a group in parentheses, for the name
//
// The function returns "" for an example without a group. A table must have a row for each name.
func Parse(how string, of keys.Examples) (func(i int, name string) string, error) {
	if m := folders.FindStringSubmatch(how); m != nil {
		up := 1
		if m[1] != "" {
			up, _ = strconv.Atoi(m[1])
		}
		return func(_ int, name string) string {
			for range up {
				name = filepath.Dir(name)
			}
			return name
		}, nil
	}
	if m := tables.FindStringSubmatch(how); m != nil {
		return ofTable(m[1], m[2], of)
	}
	re, err := regexp.Compile(how)
	if err == nil && re.NumSubexp() == 0 {
		err = fmt.Errorf("%q: want folder, folder:2, TABLE.csv:COLUMN, or a regular expression with a group in parentheses", how)
	}
	if err != nil {
		return nil, &FormError{err}
	}
	return func(_ int, name string) string {
		m := re.FindStringSubmatch(name)
		if m == nil {
			return ""
		}
		return m[len(m)-1]
	}, nil
}

// ByRow reports whether the text names a column of a table, whose rows may be the examples without a name.
func ByRow(how string) bool { return tables.MatchString(how) }

// FormError is the error of a text that does not say where the groups stand.
type FormError struct{ error }

func (e *FormError) Unwrap() error { return e.error }

func ofTable(path, column string, of keys.Examples) (func(i int, name string) string, error) {
	t, err := table.OpenGaps(path)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(t.Names, column) {
		return nil, fmt.Errorf("%s: no column %q among %q", path, column, t.Names)
	}
	rows, columns, err := keys.Match(t, []string{column}, of)
	if err != nil {
		return nil, err
	}
	groups := columns[column].Texts
	return func(i int, name string) string {
		if row, ok := rows.Row(i, name); ok {
			return groups[row]
		}
		return ""
	}, nil
}
