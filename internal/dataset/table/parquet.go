//go:build !noparquet

package table

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
)

func (t *Table) openParquet(f *io.SectionReader) error {
	p, err := filelist.OpenParquet(f, f.Size())
	if err != nil {
		return err
	}
	for _, field := range p.Root().Columns() {
		t.Names = append(t.Names, field.Name())
		t.Lists = append(t.Lists, field.Repeated() || !field.Leaf())
	}
	t.read = t.readParquet
	return nil
}

// Limits of the memory for the numbers of a Parquet file, which may be compressed.
const (
	most  = 100      // multiple of the size of the file
	apart = 64 << 20 // bytes that are allowed in addition
)

func (t *Table) readParquet(f *io.SectionReader, columns []*Column) (rows int, err error) {
	size := f.Size()
	p, err := filelist.OpenParquet(f, size)
	if err != nil {
		return 0, err
	}
	if len(p.Root().Columns()) != len(columns) {
		return 0, errors.New("is not what it was: another file took its place")
	}
	halves, written := halfLeaves(p), arrowFields(p)
	for i, field := range p.Root().Columns() {
		if columns[i] == nil {
			continue
		}
		r, err := newLeafReader(field, columns[i], halves, written[field.Name()])
		if err != nil {
			return 0, err
		}
		for g, group := range p.RowGroups() {
			chunk := group.ColumnChunks()[r.leaf.Index()]
			if r.leaf.Type().Kind() == parquet.Boolean && runLengths(&p.Metadata().RowGroups[g].Columns[r.leaf.Index()].MetaData) {
				return 0, &EncodingError{r.column.Name}
			}
			if r.values += chunk.NumValues(); r.values < 0 || 8*r.values > most*size+apart {
				return 0, r.column.fail(allRows, "%d values in a file of %d bytes", r.values, size)
			}
			r.room = most*size + apart - 8*r.values
			if err := r.read(chunk); err != nil {
				return 0, err
			}
		}
		if err := r.end(); err != nil {
			return 0, err
		}
		r.endCategories(written[field.Name()])
		if rows = int(p.NumRows()); r.rows != rows {
			return 0, r.column.fail(allRows, "damaged: %d values for %d rows", r.rows, rows)
		}
	}
	return int(p.NumRows()), nil
}

// runLengths reports whether the values of a chunk of booleans are run lengths, as in data pages of version 2. parquet-go v0.32.0
// reads such runs wrongly: rle.go takes their lengths for multiples of 8, and repeats a whole byte.
func runLengths(m *format.ColumnMetaData) bool {
	plain := slices.Contains(m.Encoding, format.Plain) // else the run lengths of RLE are not those of levels alone
	for _, stats := range m.EncodingStats {
		if stats.PageType == format.DataPage || stats.PageType == format.DataPageV2 {
			plain = plain && stats.Encoding != format.RLE
		}
	}
	return !plain
}

// A leafReader reads the values of a column row by row.
type leafReader struct {
	column *Column
	leaf   *parquet.Column
	values int64
	// An element of list k, counted from the outside, exists if the definition level is at least there[k].
	there  []int
	scalar func(parquet.Value) any // returns a number, a boolean, a text, or nil for null
	rows   int
	row    []parquet.Value // of the current row
	room   int64           // bytes for the values of a row

	dictionary parquet.Dictionary // of the last page
	mixed      bool               // the pages have different dictionaries, or none
}

// halfLeaves returns the columns of values in float16, by their index among all columns of values. The library does not say it
// of a column, but the schema of the file does.
func halfLeaves(p *parquet.File) map[int]bool {
	halves, leaf := map[int]bool{}, 0
	for _, e := range p.Metadata().Schema {
		if e.NumChildren.Valid && e.NumChildren.V > 0 {
			continue
		}
		if _, half := e.LogicalType.Value.(*format.Float16Type); half {
			halves[leaf] = true
		}
		leaf++
	}
	return halves
}

func newLeafReader(field *parquet.Column, c *Column, halves map[int]bool, written arrowField) (*leafReader, error) {
	r := &leafReader{column: c, leaf: field}
	level := 0
	for {
		if r.leaf.Optional() {
			level++
		}
		if r.leaf.Repeated() {
			level++
			r.there = append(r.there, level)
		}
		below := r.leaf.Columns()
		if len(below) == 0 {
			break
		}
		if len(below) > 1 {
			return nil, fmt.Errorf("column %q: a structure or a map, want numbers, lists of numbers or text", c.Name)
		}
		r.leaf = below[0]
	}
	r.scalar = scalarOf(r.leaf, halves[r.leaf.Index()], written)
	if r.scalar == nil && c.text {
		r.scalar = text
	} else if r.scalar == nil {
		return nil, c.fail(allRows, "%s, %w", r.leaf.Type(), ErrText)
	}
	if what := timeOf(r.leaf, written); what != "" && !c.text {
		return nil, &TimeError{c.Name, what}
	}
	return r, nil
}

// read reads the values of a row group.
func (r *leafReader) read(chunk parquet.ColumnChunk) error {
	pages := chunk.Pages()
	defer pages.Close()
	buffer := make([]parquet.Value, 1024)
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		r.categories(page)
		values := page.Values()
		for {
			n, err := values.ReadValues(buffer)
			for _, v := range buffer[:n] {
				if err := r.add(v); err != nil {
					return err
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			if n == 0 {
				return io.ErrNoProgress
			}
		}
		parquet.Release(page)
	}
}

// add adds a value to the current row, or to the next one.
func (r *leafReader) add(v parquet.Value) error {
	const perValue = 80 // bytes of a value, and of its element in a list
	if v.RepetitionLevel() == 0 {
		if err := r.end(); err != nil {
			return err
		}
		r.rows++
	} else if perValue*int64(len(r.row)) > r.room {
		return r.column.fail(r.where(), "%d values, want fewer in a file of this size", len(r.row))
	}
	r.row = append(r.row, v.Clone())
	return nil
}

// value returns a number, a boolean, a text, or nil for null.
func (r *leafReader) value(v parquet.Value) any {
	if v.IsNull() {
		return nil
	}
	return r.scalar(v)
}

func (r *leafReader) where() place { return place{"row", r.rows - 1} }

// end adds the current row to the column.
func (r *leafReader) end() error {
	if len(r.row) == 0 {
		return nil
	}
	value, err := r.nested(r.row, 0)
	r.row = r.row[:0]
	switch {
	case err != nil:
		return r.column.fail(r.where(), "%w", err)
	case value == nil && len(r.there) > 0 && !r.column.text && !r.column.gaps:
		return r.column.fail(r.where(), "null, want a list")
	}
	return r.column.addValue(r.where(), value)
}

// nested returns the list of depth k that consists of the values. At the last depth it returns the only value.
func (r *leafReader) nested(values []parquet.Value, k int) (any, error) {
	isList := k < len(r.there)
	exists := isList && values[0].DefinitionLevel() >= r.there[k]
	switch {
	case !exists && len(values) > 1, values[0].RepetitionLevel() > k:
		return nil, errors.New("damaged: levels of a list that has not begun")
	case !isList:
		return r.value(values[0]), nil
	case !exists && values[0].DefinitionLevel() < r.there[k]-1:
		return nil, nil
	case !exists:
		return []any{}, nil
	}
	var list []any
	begin := 0
	for i := 1; i <= len(values); i++ {
		if i < len(values) && values[i].RepetitionLevel() > k+1 {
			continue
		}
		element, err := r.nested(values[begin:i], k+1)
		if err != nil {
			return nil, err
		}
		list, begin = append(list, element), i
	}
	return list, nil
}
