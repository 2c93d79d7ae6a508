package dataset

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
)

var (
	groupFolder = regexp.MustCompile(`^folder(?::([1-9]))?$`)
	groupTable  = regexp.MustCompile(`(?i)^(.+\.(?:csv|tsv|parquet|jsonl)):(.+)$`)
)

// Groups returns a function that names the group of example i, whose name is as [Dataset].Name says. how is one of
//
//	folder        the folder of the example; folder:2 the folder above that, and so on
//	FILE:COLUMN   a column of a table (.csv .tsv .parquet .jsonl), which may be the data itself. Its column path, or as lists
//	              name it, names the example; without one, row i is example i
//	EXPRESSION    a regular expression with a group in parentheses, for the name
//
// The function returns "" for an example without a group. d is the data, or nil if only the number of examples is known. A
// table must have a row for each example of d.
func Groups(how string, d Dataset, examples int) (func(i int, name string) string, error) {
	if m := groupFolder.FindStringSubmatch(how); m != nil {
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
	if m := groupTable.FindStringSubmatch(how); m != nil {
		return tableGroups(m[1], m[2], d, examples)
	}
	re, err := regexp.Compile(how)
	if err == nil && re.NumSubexp() == 0 {
		err = fmt.Errorf("%q: want folder, folder:2, TABLE.csv:COLUMN, or a regular expression with a group in parentheses", how)
	}
	if err != nil {
		return nil, &GroupsError{err}
	}
	return func(_ int, name string) string {
		m := re.FindStringSubmatch(name)
		if m == nil {
			return ""
		}
		return m[len(m)-1]
	}, nil
}

// GroupsError is the error of a text that does not say where the groups stand.
type GroupsError struct{ error }

func (e *GroupsError) Unwrap() error { return e.error }

func tableGroups(path, column string, d Dataset, examples int) (func(i int, name string) string, error) {
	t, err := table.OpenGaps(path)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(t.Names, column) {
		return nil, fmt.Errorf("%s: no column %q among %q", path, column, t.Names)
	}
	text := []string{column}
	key := slices.IndexFunc(t.Names, func(name string) bool { return name != column && listing.IsPathColumn(name) })
	if key >= 0 {
		text = append(text, t.Names[key])
	}
	columns, err := t.Read(text, nil)
	if err != nil {
		return nil, err
	}
	groups := columns[column].Texts
	if key < 0 {
		if len(groups) != examples {
			return nil, fmt.Errorf("%s: %d rows for %d examples, and no column path that names the example of a row", path, len(groups), examples)
		}
		return func(i int, _ string) string { return groups[i] }, nil
	}
	of := map[string]string{}
	for row, name := range columns[t.Names[key]].Texts {
		for _, name := range []string{filepath.Clean(name), filepath.Join(filepath.Dir(path), name)} {
			if was, ok := of[name]; ok && was != groups[row] {
				return nil, fmt.Errorf("%s: row %d: %s has the group %q, and %q in a row before", path, row, name, groups[row], was)
			}
			of[name] = groups[row]
		}
	}
	find := func(i int, name string) (group string, ok bool) {
		if strings.HasPrefix(name, path+"[") && i < len(groups) { // the table is the data
			return groups[i], true
		}
		group, ok = of[filepath.Clean(name)]
		return group, ok
	}
	for i := range examples {
		if d == nil {
			break
		}
		if _, ok := find(i, d.Name(i)); !ok {
			return nil, fmt.Errorf("%s: no row has the %s %s", path, t.Names[key], d.Name(i))
		}
	}
	return func(i int, name string) string {
		group, _ := find(i, name)
		return group
	}, nil
}
