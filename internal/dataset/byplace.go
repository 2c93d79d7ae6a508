package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/keys"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Rows without names belong to examples by their place. These are all: the rows of an array of labels (byPlace), those of a table
// of labels or of groups where no column names the examples (package keys), and those of the other inputs of a network (together).

// Keyed returns the examples of d, or its whole pictures, as package keys takes them. Their names are not known if d is a listing
// that is read in parts.
func Keyed(d Dataset) keys.Examples {
	e := examplesIn(d)
	k := keys.Examples{Len: d.Len(), Name: d.Name, Doubt: e.orderDoubt}
	if t, ok := d.(*Tiles); ok {
		k.Len, k.Name = len(t.pictures), t.PictureName
	}
	if e.loaded != nil {
		k.Name = nil
	}
	return k
}

func (e *examples) orderDoubt() *fileorder.Doubt {
	if e.doubt == nil {
		return nil
	}
	return e.doubt()
}

// ByPlace fails if the rows of something without names belong to the examples of d, and the order of its files is not known.
func ByPlace(d Dataset, with string) error { return examplesIn(d).byPlace(with) }

// byPlace fails if the order of the examples is not known. with has rows that belong to them.
func (e *examples) byPlace(with string) error { return e.orderDoubt().ByPlace(with) }

// ErrPairs is the error for files of two inputs that have the same names in different rows.
var ErrPairs = errors.New("want their files in one order")

// together fails if the rows of the parts of a record may not belong together. Files have names: if these, or the numbers in
// them, are the same in each row, then they decide. isList says which parts are lists, whose rows a user has put together.
func (d *record) together(isList []bool) error {
	var first, doubtful *examples // the first part with files, and the first whose order is not known
	var list bool                 // the first part is a list
	with := ""                    // the first part that no names match
	for i, p := range d.parts {
		e, here := examplesIn(p), fmt.Sprintf("input %q", d.fields[i].Name)
		if e.file == nil {
			with = cmp.Or(with, here)
			continue
		}
		if doubtful == nil && e.orderDoubt() != nil {
			doubtful = e
		}
		if first == nil {
			first, list = e, isList[i]
			continue
		}
		row, match := first.sameNames(e)
		if row >= 0 && !(list && isList[i]) {
			return fmt.Errorf("%s and %s: row %d has %s and %s, and the same name is in another row: %w",
				first.sources[0].Path, e.sources[0].Path, row, first.name(row), e.name(row), ErrPairs)
		}
		if !match {
			with = cmp.Or(with, here)
		}
	}
	if doubtful == nil || with == "" {
		return nil
	}
	return doubtful.byPlace(with)
}

// partDoubt returns the doubt about the files of one of the parts, or nil.
func (d *record) partDoubt() *fileorder.Doubt {
	for _, p := range d.parts {
		if doubt := examplesIn(p).orderDoubt(); doubt != nil {
			return doubt
		}
	}
	return nil
}

// sameNames reports whether the files of two parts have the same names in each row, without their folders and extensions, or the
// same numbers in their names. row is the first row whose name the other part has elsewhere, or −1.
func (e *examples) sameNames(o *examples) (row int, match bool) {
	where, numbers := make(map[string]bool, e.n), make(map[string]bool, e.n)
	for i := range e.n {
		where[stem(e.name(i))] = true
	}
	row, names, numbered := -1, true, true
	for i := range min(e.n, o.n) {
		a, b := stem(e.name(i)), stem(o.name(i))
		if a != b {
			if names = false; where[b] && row < 0 {
				row = i
			}
		}
		key := fileorder.Numbers(a)
		numbered = numbered && key == fileorder.Numbers(b) && !numbers[key]
		numbers[key] = true
	}
	return row, names || numbered
}

// stem returns the last element of a path, without the extension.
func stem(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// readLabelTable reads labels from a table with a column of them. Another column names the examples, as package keys says.
func (e *examples) readLabelTable(path string, opts Options) error {
	if opts.Positions != nil {
		return fmt.Errorf("%s: a table, and each example has labels for its positions: want an array, or a folder of masks", path)
	}
	t, err := tableAt(path)
	if err != nil {
		return err
	}
	_, at, others, err := opts.Named.Find(t.Names, opts.Target != target.Classes)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if at == nil && len(others) == 1 {
		at = others
	}
	if at == nil {
		return fmt.Errorf("%s: no column of labels among %s: want one called label, or the one of %s: %w",
			path, numpy.Quote(t.Names), setting.LabelColumn, listing.ErrColumn)
	}
	h := &head{names: t.Names, path: -1, labels: at}
	if err := h.orderLabels(opts); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	text, _ := h.read(true)
	rows, columns, err := keys.Match(t, text, keys.Examples{Len: e.n, Name: e.name, Doubt: e.orderDoubt})
	if err != nil {
		return err
	}
	picked := map[string]*table.Column{}
	for _, name := range text {
		c := &table.Column{Name: name, Texts: make([]string, e.n)}
		for i := range c.Texts {
			row, _ := rows.Row(i, e.name(i))
			c.Texts[i] = columns[name].Texts[row]
		}
		picked[name] = c
	}
	one := *t
	one.Rows = e.n
	labels, found, err := h.target(&one, picked, opts)
	if err != nil {
		return err
	}
	e.labels, e.labelled = labels, true
	e.sources = append(e.sources, Source{Path: path, SHA256: t.SHA256})
	if found != nil {
		e.resolved(found, opts, path)
	}
	for _, rule := range h.rules {
		e.told.note(rule)
	}
	return nil
}
