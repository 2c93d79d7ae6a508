// Package keys finds the rows of a table that belong to examples. Names decide: a column of the table has the path of each
// example, or the last element of its path, with or without the extension. Only if no column has, row i belongs to example i.
package keys

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/names"
)

// Examples are those that rows of a table belong to.
type Examples struct {
	Len  int
	All  int                // with those that are left out, which count for rows without names; 0 for Len
	Name func(i int) string // of an example; nil if names are not known yet
	// Doubt returns where the order of their files is not known, or nil. It may be nil.
	Doubt func() *fileorder.Doubt
}

// Rows has the row of each example.
type Rows struct {
	path   string
	n      int    // number of rows
	column string // that has the names, or "" if row i belongs to example i
	keyed  *keyed
}

// usual are names of columns that may name an example where no column has its path.
var usual = []string{"image_id", "id_code", "id", "key", "name"}

// ErrUnnamed is the error for a table whose rows have names, but not those of the examples.
var ErrUnnamed = errors.New("want a column with the names of the files")

// Match finds the rows of the examples in a table. value are its columns with what is looked up. Rows with the same name must
// agree in them.
func Match(t *table.Table, value []string, of Examples) (*Rows, map[string]*table.Column, error) {
	var first, others []string // the likely columns, and all others
	for k, name := range t.Names {
		switch {
		case slices.Contains(value, name):
		case likely(name) < 2:
			first = append(first, name)
		case !t.Lists[k]:
			others = append(others, name)
		}
	}
	slices.SortStableFunc(first, func(a, b string) int { return likely(a) - likely(b) })
	columns, err := t.Read(append(slices.Clone(value), first...), nil)
	if err != nil {
		return nil, nil, err
	}
	m := &matching{table: t, value: value, of: of, columns: columns, values: make([]string, t.Rows)}
	for row := range m.values {
		for _, name := range value {
			m.values[row] += columns[name].Texts[row] + "\x00"
		}
	}
	r, err := m.likely(first)
	if r == nil && err == nil && of.Name != nil && !isRow(of.Name(0)) {
		r, err = m.byValues(m.read(others))
	}
	switch {
	case r == nil && err == nil && m.part != nil:
		err = m.missing(m.part)
	case r == nil && err == nil:
		r, err = m.byPlace()
	}
	return r, columns, err
}

// likely ranks the name of a column.
func likely(name string) int {
	switch {
	case listing.IsPathColumn(name):
		return 0
	case slices.Contains(usual, strings.ToLower(name)):
		return 1
	}
	return 2
}

// matching is the search for a column that names the examples.
type matching struct {
	table   *table.Table
	value   []string // the columns with what is looked up
	of      Examples
	columns map[string]*table.Column
	values  []string // of each row
	part    *Rows    // by a column that names some of the examples
	most    int      // so many
}

// likely looks for the names in columns that are called as such columns often are.
func (m *matching) likely(columns []string) (*Rows, error) {
	for _, name := range columns {
		isPath := likely(name) == 0
		keyed, err := byKey(m.table.Path, m.columns[name].Texts, m.values)
		r := &Rows{m.table.Path, m.table.Rows, name, keyed}
		if isPath && (err != nil || m.of.Name == nil) {
			return r, err
		}
		if err != nil || m.of.Name == nil {
			continue
		}
		n := m.count(r)
		if n == m.of.Len {
			return r, m.ambiguous(r)
		}
		if n > m.most || isPath && m.part == nil {
			m.part, m.most = r, n
		}
	}
	return nil, nil
}

// byValues looks for the names in all columns.
func (m *matching) byValues(columns []string) (found *Rows, err error) {
	for _, name := range columns {
		keyed, err := byKey(m.table.Path, m.columns[name].Texts, m.values)
		if err != nil {
			continue
		}
		r := &Rows{m.table.Path, m.table.Rows, name, keyed}
		switch n := m.count(r); {
		case n == m.of.Len && found == nil:
			found = r
		case n == m.of.Len && !m.same(found, r):
			return nil, fmt.Errorf("%s: the columns %q and %q both name the examples, and not the same ones: remove one of them, or "+
				"call the right one path",
				m.table.Path, found.column, name)
		case n < m.of.Len && n > m.most && 2*n >= m.of.Len:
			m.part, m.most = r, n
		}
	}
	if found == nil {
		return nil, nil
	}
	return found, m.ambiguous(found)
}

// read reads columns, and returns those that can be read.
func (m *matching) read(names []string) []string {
	all, err := m.table.Read(names, nil)
	if err == nil {
		maps.Copy(m.columns, all)
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool {
		one, err := m.table.Read([]string{name}, nil)
		maps.Copy(m.columns, one)
		return err != nil
	})
}

// count returns the number of examples that have a row.
func (m *matching) count(r *Rows) (n int) {
	for i := range m.of.Len {
		if _, ok := r.Row(i, m.of.Name(i)); ok {
			n++
		}
	}
	return n
}

// same reports whether two columns lead to rows with the same values.
func (m *matching) same(a, b *Rows) bool {
	for i := range m.of.Len {
		name := m.of.Name(i)
		first, _ := a.Row(i, name)
		second, _ := b.Row(i, name)
		if m.values[first] != m.values[second] {
			return false
		}
	}
	return true
}

func (m *matching) missing(r *Rows) error {
	for i := range m.of.Len {
		if name := m.of.Name(i); !r.has(i, name) {
			return fmt.Errorf("%s: no row has the %s %s", m.table.Path, r.column, name)
		}
	}
	return nil
}

// ambiguous fails if the last element of a path names two examples.
func (m *matching) ambiguous(r *Rows) error {
	first := map[string]string{} // the example of a last element
	for i := range m.of.Len {
		name := m.of.Name(i)
		base := r.keyed.base(name)
		if r.isData(name) || base == "" {
			continue
		}
		if other, ok := first[base]; ok && other != name {
			return fmt.Errorf("%s: %s %q may be %s or %s: want their paths", m.table.Path, r.column, base, other, name)
		}
		first[base] = name
	}
	return nil
}

// byPlace gives row i to example i. It fails if the rows have names of their own, or if the order of the examples is not known.
func (m *matching) byPlace() (*Rows, error) {
	path := m.table.Path
	if all := cmp.Or(m.of.All, m.of.Len); m.table.Rows != all {
		return nil, fmt.Errorf("%s: %d rows for %d examples, and no column path that names the example of a row", path, m.table.Rows, all)
	}
	if m.of.Name != nil && !isRow(m.of.Name(0)) {
		for _, name := range m.table.Names {
			if c := m.columns[name]; c != nil && !slices.Contains(m.value, name) && namesRows(c.Texts) {
				texts := c.Texts
				return nil, fmt.Errorf("%s: column %q has another name in each row, such as %q, and no file has one of them: the first "+
					"is %s. If row i belongs to file i, leave this column out: %w",
					path, name, texts[0], m.of.Name(0), ErrUnnamed)
			}
		}
	}
	if m.of.Doubt != nil {
		if err := m.of.Doubt().ByPlace(path); err != nil {
			return nil, err
		}
	}
	return &Rows{path: path, n: m.table.Rows}, nil
}

// isRow reports whether an example has the name of a row, such as test.npz[3].
func isRow(name string) bool { return strings.HasSuffix(name, "]") }

// namesRows reports whether a column has a name of its own in each row. Measured numbers are no names, and neither are the numbers
// of the rows.
func namesRows(texts []string) bool {
	seen, inOrder := make(map[string]bool, len(texts)), true
	for row, text := range texts {
		n, err := strconv.Atoi(text)
		if _, isNumber := strconv.ParseFloat(text, 64); isNumber == nil && err != nil || text == "" || seen[text] {
			return false
		}
		seen[text] = true
		inOrder = inOrder && err == nil && (n == row || n == row+1)
	}
	return len(texts) > 1 && !inOrder
}

// Row returns the row of example i with a name.
func (r *Rows) Row(i int, name string) (row int, ok bool) {
	if r.column == "" || r.isData(name) && i < r.n {
		return i, true
	}
	return r.keyed.find(name)
}

func (r *Rows) has(i int, name string) bool {
	_, ok := r.Row(i, name)
	return ok
}

// isData reports whether the table is the data itself.
func (r *Rows) isData(name string) bool { return strings.HasPrefix(name, r.path+"[") }

// keyed has the rows of examples by what a table calls them: their paths, or the last elements of these, with or without the
// extension.
type keyed struct {
	paths, bases map[string]int
}

func byKey(path string, keys, values []string) (*keyed, error) {
	k := &keyed{map[string]int{}, map[string]int{}}
	for row, name := range keys {
		for _, name := range []string{names.Key(filepath.Clean(name)), names.Key(filepath.Join(filepath.Dir(path), name))} {
			if was, ok := k.paths[name]; ok && values[was] != values[row] {
				return nil, fmt.Errorf("%s: row %d: %s has %s, and %s in a row before",
					path, row, name, words(values[row]), words(values[was]))
			}
			k.paths[name] = row
		}
		if base := names.Key(name); base == filepath.Base(base) {
			k.bases[base] = row
		}
	}
	return k, nil
}

// words shows the values of a row.
func words(values string) string {
	return fmt.Sprintf("%q", strings.Split(strings.TrimSuffix(values, "\x00"), "\x00"))
}

// find returns the row of the example with that name.
func (k *keyed) find(name string) (row int, ok bool) {
	name = names.Key(filepath.Clean(name))
	if row, ok = k.paths[name]; ok {
		return row, true
	}
	row, ok = k.bases[k.base(name)]
	return row, ok
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
