//go:build !noparquet

package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// magic is at the beginning and the end of a Parquet file.
const magic = "PAR1"

// openParquet opens a Parquet file and reads only its footer. It first checks the length that the file claims for the
// footer.
func openParquet(f io.ReaderAt, size int64) (*parquet.File, error) {
	const magics, length = 8, 4
	tail := make([]byte, length+len(magic))
	if size < magics+length {
		return nil, errors.New("too short for a Parquet file")
	}
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return nil, err
	}
	if n := int64(binary.LittleEndian.Uint32(tail)); n > size-magics-length {
		return nil, fmt.Errorf("damaged: footer of %d bytes in a file of %d", n, size)
	}
	p, err := parquet.OpenFile(f, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	return p, readable(p.Metadata())
}

// readable refuses compressions that parquet-go does not read, and LZ4: up to v0.32.0 its column.go keeps a buffer of old bytes where
// the codec returned another one of the right length, so that values are zeros or those of other pages.
func readable(m *format.FileMetaData) error {
	for _, group := range m.RowGroups {
		for i := range group.Columns {
			switch c := &group.Columns[i].MetaData; c.Codec {
			case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd:
			default:
				return &CompressionError{strings.Join(c.PathInSchema, "."), c.Codec.String()}
			}
		}
	}
	return nil
}

// eachValue calls use with the values of a column in a row group. page, if not nil, is called before those of each page.
func eachValue(chunk parquet.ColumnChunk, page func(parquet.Page), use func(parquet.Value) error) error {
	pages := chunk.Pages()
	defer pages.Close()
	buffer := make([]parquet.Value, 1024)
	for {
		p, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if page != nil {
			page(p)
		}
		values := p.Values()
		for {
			n, err := values.ReadValues(buffer)
			for _, v := range buffer[:n] {
				if err := use(v); err != nil {
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
		parquet.Release(p)
	}
}

func (t *Table) openParquet(f *io.SectionReader) error {
	p, err := openParquet(f, f.Size())
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
	spare = 64 << 20 // bytes that are allowed in addition
)

func (t *Table) readParquet(f *io.SectionReader, columns []*Column) (rows int, err error) {
	size := f.Size()
	p, err := openParquet(f, size)
	if err != nil {
		return 0, err
	}
	if len(p.Root().Columns()) != len(columns) {
		return 0, errChanged
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
			if r.values += chunk.NumValues(); r.values < 0 || 8*r.values > most*size+spare {
				return 0, r.column.fail(allRows, "%d values in a file of %d bytes", r.values, size)
			}
			r.room = most*size + spare - 8*r.values
			if err := eachValue(chunk, r.categories, r.add); err != nil {
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
// reads such runs wrongly: it takes their lengths for multiples of 8, and repeats a whole byte.
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

// categories keeps the texts of the dictionary of a page, in their order. All row groups must have the same.
func (r *leafReader) categories(page parquet.Page) {
	d := page.Dictionary()
	if !r.column.text || r.mixed || d == nil || r.leaf.Type().Kind() != parquet.ByteArray || d.Len() > mostCategories {
		r.mixed = true
		return
	}
	if d == r.dictionary {
		return
	}
	r.dictionary = d
	texts := make([]string, d.Len())
	for i := range texts {
		texts[i] = string(d.Index(int32(i)).ByteArray())
	}
	if r.column.Categories == nil {
		r.column.Categories = texts
	}
	r.mixed = !slices.Equal(r.column.Categories, texts)
}

// mostCategories bounds the categories of a column. ImageNet-21k has fewer classes.
const mostCategories = 1 << 16

// endCategories keeps the dictionary only if the file says that it has the categories of the column.
func (r *leafReader) endCategories(noted arrowField) {
	c := r.column
	if r.mixed || !noted.categories || noted.count > 0 && noted.count != len(c.Categories) {
		c.Categories = nil
	}
	c.Ordered = noted.ordered && c.Categories != nil
}
