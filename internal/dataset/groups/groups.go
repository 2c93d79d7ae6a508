// Package groups finds which examples belong together, such as the pictures of a patient.
package groups

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/names"
)

var (
	folders = regexp.MustCompile(`^folder(?::([1-9]))?$`)
	tables  = regexp.MustCompile(`(?i)^(.+\.(?:csv|tsv|parquet|jsonl)):(.+)$`)
)

// Parse returns a function that names the group of example i with a name. how is one of
//
//	folder        the folder of the example; folder:2 the folder above that, and so on
//	FILE:COLUMN   a column of a table (.csv .tsv .parquet .jsonl), which may be the data itself. Its column path, or as lists
//	              name it, names the example; without one, row i is example i
//	EXPRESSION    a regular expression with a group in parentheses, for the name
//
// The function returns "" for an example without a group. There are so many examples. nameOf returns the name of one, and is
// nil if names are not known yet. A table must have a row for each name.
func Parse(how string, examples int, nameOf func(i int) string) (func(i int, name string) string, error) {
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
		return ofTable(m[1], m[2], examples, nameOf)
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

// keys are names of columns that may name an example where no column has its path.
var keys = []string{"image_id", "id_code", "id", "key", "name"}

// FormError is the error of a text that does not say where the groups stand.
type FormError struct{ error }

func (e *FormError) Unwrap() error { return e.error }

func ofTable(path, column string, examples int, nameOf func(i int) string) (func(i int, name string) string, error) {
	t, err := table.OpenGaps(path)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(t.Names, column) {
		return nil, fmt.Errorf("%s: no column %q among %q", path, column, t.Names)
	}
	text := []string{column}
	key := slices.IndexFunc(t.Names, func(name string) bool { return name != column && listing.IsPathColumn(name) })
	if key < 0 {
		key = slices.IndexFunc(t.Names, func(name string) bool { return name != column && slices.Contains(keys, strings.ToLower(name)) })
	}
	if key >= 0 {
		text = append(text, t.Names[key])
	}
	columns, err := t.Read(text, nil)
	if err != nil {
		return nil, err
	}
	groups := columns[column].Texts
	if key < 0 || !listing.IsPathColumn(t.Names[key]) && !namesAny(columns[t.Names[key]].Texts, examples, nameOf) {
		if len(groups) != examples {
			return nil, fmt.Errorf("%s: %d rows for %d examples, and no column path that names the example of a row", path, len(groups), examples)
		}
		return func(i int, _ string) string { return groups[i] }, nil
	}
	of, err := byKey(path, columns[t.Names[key]].Texts, groups)
	if err != nil {
		return nil, err
	}
	find := func(i int, name string) (group string, ok bool) {
		if strings.HasPrefix(name, path+"[") && i < len(groups) { // the table is the data
			return groups[i], true
		}
		return of.find(name)
	}
	first := map[string]string{} // the example of a last element
	for i := 0; nameOf != nil && i < examples; i++ {
		name := nameOf(i)
		if _, ok := find(i, name); !ok {
			return nil, fmt.Errorf("%s: no row has the %s %s", path, t.Names[key], name)
		}
		if base := of.base(name); base == "" {
			continue
		} else if other, ok := first[base]; ok && other != name {
			return nil, fmt.Errorf("%s: %s %q may be %s or %s: want their paths", path, t.Names[key], base, other, name)
		} else {
			first[base] = name
		}
	}
	return func(i int, name string) string {
		group, _ := find(i, name)
		return group
	}, nil
}

// namesAny reports whether a column that may have other contents names an example.
func namesAny(column []string, examples int, nameOf func(i int) string) bool {
	if nameOf == nil {
		return false
	}
	of, err := byKey("", column, column)
	if err != nil {
		return false
	}
	for i := range examples {
		if _, ok := of.find(nameOf(i)); ok {
			return true
		}
	}
	return false
}

// keyed has the groups of examples by what a table calls them: their paths, or the last elements of these, with or without
// the extension.
type keyed struct {
	paths, bases map[string]string
}

func byKey(path string, keys, groups []string) (*keyed, error) {
	k := &keyed{map[string]string{}, map[string]string{}}
	for row, name := range keys {
		for _, name := range []string{names.Key(filepath.Clean(name)), names.Key(filepath.Join(filepath.Dir(path), name))} {
			if was, ok := k.paths[name]; ok && was != groups[row] {
				return nil, fmt.Errorf("%s: row %d: %s has the group %q, and %q in a row before", path, row, name, groups[row], was)
			}
			k.paths[name] = groups[row]
		}
		if base := names.Key(name); base == filepath.Base(base) {
			k.bases[base] = groups[row]
		}
	}
	return k, nil
}

// find returns the group of the example with that name.
func (k *keyed) find(name string) (group string, ok bool) {
	name = names.Key(filepath.Clean(name))
	if group, ok = k.paths[name]; ok {
		return group, true
	}
	group, ok = k.bases[k.base(name)]
	return group, ok
}

// base returns the last element of an example's path, or this without its extension, by which a row names the example. It
// returns "" if a row has the path, or none has the name.
func (k *keyed) base(name string) string {
	name = names.Key(filepath.Clean(name))
	if _, ok := k.paths[name]; ok {
		return ""
	}
	base := filepath.Base(name)
	for _, base := range []string{base, strings.TrimSuffix(base, filepath.Ext(base))} {
		if _, ok := k.bases[base]; ok {
			return base
		}
	}
	return ""
}
