package table

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
)

func (t *Table) openParquet(f *os.File, size int64) error {
	p, err := filelist.OpenParquet(f, size)
	if err != nil {
		return err
	}
	for _, field := range p.Root().Columns() {
		t.Names = append(t.Names, field.Name())
	}
	t.read = t.readParquet
	return nil
}

// Limits of the memory for the numbers of a Parquet file, which may be compressed.
const (
	most  = 100      // multiple of the size of the file
	apart = 64 << 20 // and additional bytes
)

func (t *Table) readParquet(f *os.File, size int64, columns []*Column) (rows int, err error) {
	p, err := filelist.OpenParquet(f, size)
	if err != nil {
		return 0, err
	}
	if len(p.Root().Columns()) != len(columns) {
		return 0, errors.New("is not what it was: another file took its place")
	}
	for i, field := range p.Root().Columns() {
		if columns[i] == nil {
			continue
		}
		r, err := newLeafReader(field, columns[i])
		if err != nil {
			return 0, err
		}
		for _, group := range p.RowGroups() {
			chunk := group.ColumnChunks()[r.leaf.Index()]
			if r.values += chunk.NumValues(); r.values < 0 || 8*r.values > most*size+apart {
				return 0, r.column.fail("all rows", "%d values in a file of %d bytes", r.values, size)
			}
			if err := r.read(chunk); err != nil {
				return 0, err
			}
		}
		if err := r.end(); err != nil {
			return 0, err
		}
		if rows = int(p.NumRows()); r.rows != rows {
			return 0, r.column.fail("all rows", "damaged: %d values for %d rows", r.rows, rows)
		}
	}
	return int(p.NumRows()), nil
}

// A leafReader reads the numbers or texts of a column, and the lists that contain them.
type leafReader struct {
	column *Column
	leaf   *parquet.Column
	values int64
	// An element of list k, counted from the outside, exists if the definition level is at least there[k].
	there    []int
	unsigned bool

	rows   int
	counts []int // number of elements so far in each open list
	inner  []int // shape of the elements of the first list, or nil
	cells  []string
}

func newLeafReader(field *parquet.Column, c *Column) (*leafReader, error) {
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
	var logical format.LogicalTypeValue
	if l := r.leaf.Type().LogicalType(); l != nil {
		logical = l.Value
	}
	_, isDecimal := logical.(*format.DecimalType) // integers that must be divided
	switch kind := r.leaf.Type().Kind(); {
	case isDecimal, kind == parquet.Int96, kind == parquet.FixedLenByteArray, kind == parquet.ByteArray && !c.text:
		return nil, c.fail("all rows", "%s, %w", r.leaf.Type(), ErrText)
	}
	if whole, ok := logical.(*format.IntType); ok {
		r.unsigned = !whole.IsSigned
	}
	if len(r.there) > 0 {
		c.Lengths = []int{}
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

func (r *leafReader) where() string { return fmt.Sprintf("row %d", r.rows-1) }

// add adds a value. Its levels say in which lists it is.
func (r *leafReader) add(v parquet.Value) error {
	at, depth := v.RepetitionLevel(), len(r.there)
	if at == 0 {
		if err := r.end(); err != nil {
			return err
		}
		r.rows++
	}
	exists := 0 // depth of lists that have an element
	for exists < depth && v.DefinitionLevel() >= r.there[exists] {
		exists++
	}
	if at > 0 {
		if err := r.close(at); err != nil {
			return err
		}
		if len(r.counts) < at {
			return errors.New("damaged: levels of a list that has not begun")
		}
		r.counts = r.counts[:at]
		r.counts[at-1]++
	}
	for k := len(r.counts); k < depth; k++ {
		if k < exists {
			r.counts = append(r.counts, 1)
			continue
		}
		if null := v.DefinitionLevel() < r.there[k]-1; null && !r.column.text {
			return r.column.fail(r.where(), "null, want a list")
		}
		if k > 0 && !r.column.text {
			return r.column.fail(r.where(), "an empty list in a list")
		}
		r.counts = append(r.counts, 0)
		return nil
	}
	return r.value(v)
}

// value adds a number or a text.
func (r *leafReader) value(v parquet.Value) error {
	c := r.column
	if c.text {
		r.cells = append(r.cells, r.text(v))
		return nil
	}
	switch {
	case v.IsNull():
		return c.fail(r.where(), "null, want a number")
	case v.Kind() == parquet.Boolean:
		c.addInt(map[bool]int64{true: 1}[v.Boolean()])
	case v.Kind() == parquet.Int32 && r.unsigned:
		c.addInt(int64(v.Uint32()))
	case v.Kind() == parquet.Int32:
		c.addInt(int64(v.Int32()))
	case v.Kind() == parquet.Int64 && r.unsigned && v.Int64() < 0:
		return c.fail(r.where(), "%d, want at most 64 bits with a sign", v.Uint64())
	case v.Kind() == parquet.Int64:
		c.addInt(v.Int64())
	case v.Kind() == parquet.Float:
		return c.addFloat(r.where(), float64(v.Float()))
	default:
		return c.addFloat(r.where(), v.Double())
	}
	return nil
}

func (r *leafReader) text(v parquet.Value) string {
	switch {
	case v.IsNull():
		return ""
	case v.Kind() == parquet.Boolean:
		return map[bool]string{true: "1", false: "0"}[v.Boolean()]
	case v.Kind() == parquet.Int32:
		return strconv.FormatInt(int64(v.Int32()), 10)
	case v.Kind() == parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10)
	case v.Kind() == parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32)
	case v.Kind() == parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	}
	return string(v.ByteArray())
}

// close checks the lists that end when the list at depth continues. They must be as long as the first lists of their
// depth.
func (r *leafReader) close(depth int) error {
	if len(r.counts) <= depth || r.column.text {
		return nil
	}
	if r.inner == nil {
		r.inner = make([]int, len(r.there)-1)
	}
	for k := len(r.counts) - 1; k >= max(depth, 1); k-- {
		if want := &r.inner[k-1]; *want == 0 {
			*want = r.counts[k]
		} else if *want != r.counts[k] {
			return r.column.fail(r.where(), "a list of %d in a list, and others are of %d: only the first dimension may differ", r.counts[k], *want)
		}
	}
	return nil
}

// end ends a row.
func (r *leafReader) end() error {
	if r.rows == 0 {
		return nil
	}
	if r.column.text {
		r.column.Texts = append(r.column.Texts, strings.Join(r.cells, " "))
		r.cells = r.cells[:0]
		r.counts = r.counts[:0]
		return nil
	}
	if len(r.there) == 0 {
		return nil
	}
	if err := r.close(0); err != nil {
		return err
	}
	r.column.Lengths = append(r.column.Lengths, r.counts[0])
	r.column.Inner = slices.Clone(r.inner)
	r.counts = r.counts[:0]
	return nil
}
