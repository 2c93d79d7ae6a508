package predictions

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
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
	schema *Schema
	fields []field
	out    *parquet.GenericWriter[any]
	row    parquet.Row
	leaves int // that the row has values of so far
	limit  int // rows in a group
	rows   int
}

func newParquet(w io.Writer, s *Schema) *parquetWriter {
	p := &parquetWriter{schema: s, fields: s.fields()}
	// parquet-go keeps the order of columns only where they come from a struct.
	var fields []reflect.StructField
	column := func(value any, name, options string) {
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("F%d", len(fields)),
			Type: reflect.TypeOf(value),
			Tag:  reflect.StructTag(fmt.Sprintf(`parquet:"%s%s"`, name, options)),
		})
	}
	column("", "path", "")
	if s.Labels {
		column(int64(0), "label", ",optional")
	}
	lists := [2]int{} // bytes, of float64 and of float32
	for _, f := range p.fields {
		options := ",optional"
		if f.Shape != nil {
			options = ",list"
		}
		column(parquetType(f), f.Name, options)
		switch {
		case f.named != "":
			column("", f.named, ",optional,dict")
		case f.Kind == task.Ranked:
			column([]float64(nil), f.Name+"_probability", ",list")
		case f.Shape != nil && f.Kind == task.Float64:
			lists[0] += f.Bytes()
		case f.Shape != nil && f.Kind == task.Float32:
			lists[1] += f.Bytes()
		}
	}
	if s.Errors {
		column("", "error", ",optional")
	}
	schema := parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Elem().Interface())
	p.limit = max(1, rowGroupBytes/(256+max(8*s.Width, lists[0])+lists[1]))
	p.out = parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("swagwrap", "", ""))
	return p
}

// parquetType returns a value of the type that a column has in Go.
func parquetType(f field) any {
	list := f.Shape != nil
	switch {
	case f.Kind == task.Float64 && list:
		return []float64(nil)
	case f.Kind == task.Float64:
		return float64(0)
	case f.Kind == task.Float32 && list:
		return []float32(nil)
	case f.Kind == task.Float32:
		return float32(0)
	case list: // classes, ranked or not
		return []int32(nil)
	}
	return int32(0)
}

func (p *parquetWriter) Write(r *Row) error {
	p.row, p.leaves = p.row[:0], 0
	p.add(parquet.ByteArrayValue([]byte(r.Path)), 0)
	if p.schema.Labels {
		p.optional(r.Label >= 0, func() parquet.Value { return parquet.Int64Value(int64(r.Label)) })
	}
	for i := range p.fields {
		p.field(&p.fields[i], r)
	}
	if p.schema.Errors {
		p.optional(r.Error != "", func() parquet.Value { return parquet.ByteArrayValue([]byte(r.Error)) })
	}
	if _, err := p.out.WriteRows([]parquet.Row{p.row}); err != nil {
		return err
	}
	if p.rows++; p.rows%p.limit == 0 {
		return p.Flush()
	}
	return nil
}

// field adds what the row has of a column.
func (p *parquetWriter) field(f *field, r *Row) {
	var values []float64
	if r.Error == "" {
		values = f.values(r)
	}
	switch {
	case f.Kind == task.Ranked:
		p.list(values, 2, task.Class)
		p.list(values[min(1, len(values)):], 2, task.Float64)
	case f.Shape != nil:
		p.list(values, 1, f.Kind)
	default:
		p.optional(values != nil, func() parquet.Value { return parquetValue(values[0], f.Kind) })
		if f.named != "" {
			p.optional(values != nil, func() parquet.Value {
				return parquet.ByteArrayValue([]byte(p.schema.ClassNames[int(values[0])]))
			})
		}
	}
}

func parquetValue(v float64, kind task.Kind) parquet.Value {
	switch kind {
	case task.Class:
		return parquet.Int32Value(int32(v))
	case task.Float32:
		return parquet.FloatValue(float32(v))
	}
	return parquet.DoubleValue(v)
}

// add adds the one value of a column, with how many of its levels are there.
func (p *parquetWriter) add(v parquet.Value, defined int) {
	p.row = append(p.row, v.Level(0, defined, p.leaves))
	p.leaves++
}

func (p *parquetWriter) optional(ok bool, value func() parquet.Value) {
	if ok {
		p.add(value(), 1)
	} else {
		p.add(parquet.NullValue(), 0)
	}
}

// list adds every so many of the values as a list.
func (p *parquetWriter) list(values []float64, step int, kind task.Kind) {
	if len(values) == 0 {
		p.add(parquet.NullValue(), 0)
		return
	}
	for i := 0; i < len(values); i += step {
		p.row = append(p.row, parquetValue(values[i], kind).Level(min(i, 1), 1, p.leaves))
	}
	p.leaves++
}

// Flush ends a row group.
func (p *parquetWriter) Flush() error { return p.out.Flush() }

func (p *parquetWriter) Close() error { return p.out.Close() }

// readParquet reads a Parquet file: columns for the classes, or one list.
func readParquet(path string) (t table, err error) {
	f, err := os.Open(path)
	if err != nil {
		return table{}, file.Cause(err)
	}
	defer f.Close()
	defer func() {
		// The library panics on some damaged files.
		if r := recover(); r != nil {
			err = fmt.Errorf("damaged: %v", r)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return table{}, file.Cause(err)
	}
	if err := checkFooter(f, info.Size()); err != nil {
		return table{}, err
	}
	file, err := parquet.OpenFile(io.NewSectionReader(f, 0, info.Size()), info.Size())
	if err != nil {
		return table{}, err
	}
	r := parquetReader{file: file, leaves: file.Schema().Columns()}
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
	name := r.leaves[column][0]
	t := listTable(name)
	var lengths []int // of each row
	var values []float64
	err := r.each(column, func(v parquet.Value) error {
		if v.RepetitionLevel() == 0 {
			lengths = append(lengths, 0)
		}
		if len(lengths) == 0 {
			return errors.New("damaged: a list without a beginning")
		}
		if v.IsNull() {
			return nil
		}
		x, err := parquetNumber(v)
		values = append(values, x)
		lengths[len(lengths)-1]++
		return err
	})
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
	label := slices.IndexFunc(r.header(), isLabelName)
	t.labels, err = r.readLabels(label, len(lengths))
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
		var values []float64
		err := r.each(column, func(v parquet.Value) error {
			x, err := parquetNumber(v)
			values = append(values, x)
			return err
		})
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
	var labels []int
	err := r.each(column, func(v parquet.Value) error {
		label := -1
		if !v.IsNull() {
			x, err := parquetNumber(v)
			if err == nil && !isLabel(x) {
				err = fmt.Errorf("%v, want a class number from 0", x)
			}
			if err != nil {
				return fmt.Errorf("row %d: label %w", len(labels), err)
			}
			label = int(x)
		}
		labels = append(labels, label)
		return nil
	})
	if err == nil && len(labels) != rows {
		err = fmt.Errorf("damaged: %d labels for %d rows", len(labels), rows)
	}
	return labels, err
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

// each calls f with every value of a column.
func (r parquetReader) each(column int, f func(parquet.Value) error) error {
	buffer := make([]parquet.Value, 1024)
	count := 0
	for _, group := range r.file.RowGroups() {
		if err := eachOfChunk(group.ColumnChunks()[column], buffer, &count, f); err != nil {
			return err
		}
	}
	return nil
}

func eachOfChunk(chunk parquet.ColumnChunk, buffer []parquet.Value, count *int, f func(parquet.Value) error) error {
	values := parquet.NewColumnChunkValueReader(chunk)
	defer values.Close()
	for {
		n, err := values.ReadValues(buffer)
		if *count += n; *count > maxPredictions {
			return fmt.Errorf("more than %d numbers", maxPredictions)
		}
		for _, v := range buffer[:n] {
			if err := f(v); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case n == 0:
			return io.ErrNoProgress
		}
	}
}
