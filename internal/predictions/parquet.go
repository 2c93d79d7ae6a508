package predictions

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/task"
)

// rowGroupBytes bounds what a row group has in memory before it is written.
const rowGroupBytes = 32 << 20

// parquetWriter writes rows as Parquet. Of an example with an error only path,
// label and error are not null or empty.
type parquetWriter struct {
	leaves []leaf
	out    *parquet.GenericWriter[any]
	row    parquet.Row
	limit  int // rows in a group
	rows   int
}

func newParquet(w io.Writer, s *Schema) *parquetWriter {
	p := &parquetWriter{leaves: s.leaves()}
	// parquet-go keeps the order of columns only where they come from a struct.
	var fields []reflect.StructField
	for i, l := range p.leaves {
		of, options := l.parquet()
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("F%d", i), Type: of, Tag: reflect.StructTag(fmt.Sprintf("parquet:%q", l.name+options)),
		})
	}
	lists := map[task.Kind]int{} // bytes; rankings are short
	for _, f := range s.fields() {
		if f.Shape != nil {
			lists[f.Kind] += f.Bytes()
		}
	}
	schema := parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Elem().Interface())
	p.limit = max(1, rowGroupBytes/(256+max(8*s.Width, lists[task.Float64])+lists[task.Float32]))
	p.out = parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("swagwrap", "", ""))
	return p
}

// parquet returns the type of a column in Go, and what its tag says of it.
func (l *leaf) parquet() (of reflect.Type, options string) {
	switch {
	case l.class:
		return reflect.TypeFor[string](), ",optional,dict"
	case l.always:
		return reflect.TypeFor[string](), ""
	case l.text != nil:
		return reflect.TypeFor[string](), ",optional"
	case l.label:
		return reflect.TypeFor[int64](), ",optional"
	case l.kind == task.Class:
		of = reflect.TypeFor[int32]()
	case l.kind == task.Float32:
		of = reflect.TypeFor[float32]()
	default:
		of = reflect.TypeFor[float64]()
	}
	if l.shape != nil {
		return reflect.SliceOf(of), ",list"
	}
	return of, ",optional"
}

func (p *parquetWriter) Write(r *Row) error {
	p.row = p.row[:0]
	for i := range p.leaves {
		p.row = p.leaves[i].appendParquet(p.row, i, r)
	}
	if _, err := p.out.WriteRows([]parquet.Row{p.row}); err != nil {
		return err
	}
	if p.rows++; p.rows%p.limit == 0 {
		return p.Flush()
	}
	return nil
}

// appendParquet appends what a row has of a column: one null where that is nothing.
func (l *leaf) appendParquet(row parquet.Row, column int, r *Row) parquet.Row {
	defined := 1 // of the levels that may be missing
	if l.always {
		defined = 0
	}
	if l.text != nil {
		if text, ok := l.text(r); ok {
			return append(row, parquet.ByteArrayValue([]byte(text)).Level(0, defined, column))
		}
		return append(row, parquet.NullValue().Level(0, 0, column))
	}
	values := l.values(r)
	if len(values) == 0 {
		return append(row, parquet.NullValue().Level(0, 0, column))
	}
	for i, v := range values {
		value := parquet.DoubleValue(v)
		switch {
		case l.label:
			value = parquet.Int64Value(int64(v))
		case l.kind == task.Class:
			value = parquet.Int32Value(int32(v))
		case l.kind == task.Float32:
			value = parquet.FloatValue(float32(v))
		}
		row = append(row, value.Level(min(i, 1), defined, column))
	}
	return row
}

// Flush ends a row group.
func (p *parquetWriter) Flush() error { return p.out.Flush() }

func (p *parquetWriter) Close() error { return p.out.Close() }

// readParquet reads a Parquet file: columns for the classes, or one list.
func readParquet(f io.ReaderAt, size int64) (t table, err error) {
	defer func() {
		// The library panics on some damaged files.
		if r := recover(); r != nil {
			err = fmt.Errorf("damaged: %v", r)
		}
	}()
	if err := checkFooter(f, size); err != nil {
		return table{}, err
	}
	file, err := parquet.OpenFile(io.NewSectionReader(f, 0, size), size)
	if err != nil {
		return table{}, err
	}
	r := parquetReader{file: file, leaves: file.Schema().Columns()}
	if err := onlyClasses(r.names()); err != nil {
		return table{}, err
	}
	if list := r.list(); list >= 0 {
		return r.readList(list)
	}
	return r.readColumns()
}

// checkFooter compares the length of the footer, which a file claims, with that of
// the file: the library takes memory for it before it looks.
func checkFooter(f io.ReaderAt, size int64) error {
	const magics, length = 8, 4
	tail := make([]byte, length+4)
	if size < magics+length {
		return errors.New("too short for a Parquet file")
	}
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return file.Cause(err)
	}
	if n := int64(binary.LittleEndian.Uint32(tail)); n > size-magics-length {
		return fmt.Errorf("damaged: footer of %d bytes in a file of %d", n, size)
	}
	return nil
}

// parquetReader reads whole columns of a file.
type parquetReader struct {
	file   *parquet.File
	leaves [][]string // the path of each column that has values
}

// names are those of the columns, lists and groups too.
func (r parquetReader) names() (all []string) {
	for _, path := range r.leaves {
		all = append(all, path[0])
	}
	return all
}

// list returns the column with lists of predictions, or −1.
func (r parquetReader) list() int {
	for _, name := range predictionNames {
		for i, path := range r.leaves {
			if len(path) > 1 && strings.EqualFold(path[0], name) {
				return i
			}
		}
	}
	return -1
}

// header returns the names of the columns, and "" for those of lists and groups.
func (r parquetReader) header() []string {
	names := make([]string, len(r.leaves))
	for i, path := range r.leaves {
		if len(path) == 1 {
			names[i] = path[0]
		}
	}
	return names
}

// readList reads predictions where each row has a list of them. Empty lists and
// nulls are rows without values.
func (r parquetReader) readList(column int) (table, error) {
	t := listTable(r.leaves[column][0])
	values, lengths, err := r.read(column)
	if err != nil {
		return table{}, fmt.Errorf("%s: %w", t.from, err)
	}
	if len(lengths) > 0 {
		t.classes = slices.Max(lengths)
	}
	if t.classes == 0 {
		return table{}, fmt.Errorf("%s: no row has predictions", t.from)
	}
	if len(lengths) > maxPredictions/t.classes {
		return table{}, fmt.Errorf("%s: %d rows of %d classes, want at most %d numbers", t.from, len(lengths), t.classes, maxPredictions)
	}
	for row, n := range lengths {
		switch n {
		case 0:
			t.values = append(t.values, missing(t.classes)...)
		case t.classes:
			t.values = append(t.values, values[:n]...)
		default:
			return table{}, fmt.Errorf("%s: row %d: %d predictions, want %d as in others", t.from, row, n, t.classes)
		}
		values = values[n:]
	}
	t.labels, err = r.readLabels(slices.IndexFunc(r.header(), isLabelName), len(lengths))
	return t, err
}

// readColumns reads predictions where each class has a column.
func (r parquetReader) readColumns() (table, error) {
	c, err := findColumns(r.header())
	if err != nil {
		return table{}, err
	}
	t := c.table()
	rows := -1
	for class, column := range c.classes {
		values, _, err := r.read(column)
		if err != nil {
			return table{}, fmt.Errorf("class %d: %w", class, err)
		}
		if rows < 0 {
			if rows = len(values); rows > maxPredictions/t.classes {
				return table{}, fmt.Errorf("%s: %d rows, want at most %d numbers", t.from, rows, maxPredictions)
			}
			t.values = make([]float64, rows*t.classes)
		}
		if len(values) != rows {
			return table{}, fmt.Errorf("damaged: %d rows of class %d, and %d of class 0", len(values), class, rows)
		}
		for row, x := range values {
			t.values[row*t.classes+class] = x
		}
	}
	t.labels, err = r.readLabels(c.label, rows)
	return t, err
}

// readLabels reads the column with the labels; −1 is none.
func (r parquetReader) readLabels(column, rows int) ([]int, error) {
	if column < 0 {
		return nil, nil
	}
	values, _, err := r.read(column)
	if err != nil {
		return nil, fmt.Errorf("label: %w", err)
	}
	if len(values) != rows {
		return nil, fmt.Errorf("damaged: %d labels for %d rows", len(values), rows)
	}
	labels := make([]int, rows)
	for row, x := range values {
		switch {
		case math.IsNaN(x):
			labels[row] = -1
		case !isLabel(x):
			return nil, fmt.Errorf("row %d: label %v, want a class number from 0", row, x)
		default:
			labels[row] = int(x)
		}
	}
	return labels, nil
}

// read returns the numbers of a column, and how many each row has of them. Nulls
// are NaN, but in lists, where they are left out.
func (r parquetReader) read(column int) (values []float64, lengths []int, err error) {
	list := len(r.leaves[column]) > 1
	buffer := make([]parquet.Value, 1024)
	count := 0
	add := func(v parquet.Value) error {
		if v.RepetitionLevel() == 0 {
			lengths = append(lengths, 0)
		}
		if len(lengths) == 0 {
			return errors.New("damaged: a list without a beginning")
		}
		if list && v.IsNull() {
			return nil
		}
		x, err := parquetNumber(v)
		values = append(values, x)
		lengths[len(lengths)-1]++
		return err
	}
	for _, group := range r.file.RowGroups() {
		chunk := parquet.NewColumnChunkValueReader(group.ColumnChunks()[column])
		for n := 0; err == nil; {
			if n, err = chunk.ReadValues(buffer); n == 0 && err == nil {
				err = io.ErrNoProgress
			}
			if count += n; count > maxPredictions {
				err = fmt.Errorf("more than %d numbers", maxPredictions)
			}
			for i := 0; i < n; i++ {
				if e := add(buffer[i]); e != nil {
					err = e
					break
				}
			}
		}
		chunk.Close()
		if err != io.EOF {
			return nil, nil, err
		}
		err = nil
	}
	return values, lengths, nil
}

// parquetNumber returns NaN for null.
func parquetNumber(v parquet.Value) (float64, error) {
	if v.IsNull() {
		return math.NaN(), nil
	}
	switch v.Kind() {
	case parquet.Double:
		return v.Double(), nil
	case parquet.Float:
		return float64(v.Float()), nil
	case parquet.Int32:
		return float64(v.Int32()), nil
	case parquet.Int64:
		return float64(v.Int64()), nil
	}
	return 0, fmt.Errorf("type %v, want a number", v.Kind())
}
