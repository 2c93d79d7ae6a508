package predictions

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/task"
)

// rowGroupBytes limits the memory for a row group, in bytes.
const rowGroupBytes = 32 << 20

// parquetWriter writes rows as Parquet. For an example with an error, all columns except path, label and error are null
// or empty.
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

// parquet returns the Go type of a column and the options for its struct tag.
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

// appendParquet appends the values of a column in row r, or one null if there are none.
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

// parquet reads the picked columns of a Parquet file.
func (r *rowReader) parquet(f io.ReaderAt, size int64) (err error) {
	defer func() {
		// The library panics on some damaged files.
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged: %v", p)
		}
	}()
	if err := checkFooter(f, size); err != nil {
		return err
	}
	file, err := parquet.OpenFile(io.NewSectionReader(f, 0, size), size)
	if err != nil {
		return err
	}
	in := parquetReader{file: file, leaves: file.Schema().Columns()}
	picks, err := r.pick(in.columns())
	if err != nil {
		return err
	}
	r.Len = int(file.NumRows())
	for _, p := range picks {
		if err := r.parquetColumns(in, p); err != nil {
			return err
		}
	}
	return nil
}

// parquetColumns reads a list in each row, or one number of each row from each column.
func (r *rowReader) parquetColumns(in parquetReader, p pick) error {
	if len(p.columns) > 0 && r.Len > maxPredictions/len(p.columns) {
		return fmt.Errorf("%d rows of %d columns, want at most %d numbers", r.Len, len(p.columns), maxPredictions)
	}
	var all []float64
	for i, column := range p.columns {
		path := in.leaves[column]
		values, lengths, err := in.read(column)
		if err == nil && len(lengths) != r.Len {
			err = fmt.Errorf("damaged: %d rows of %d", len(lengths), r.Len)
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", path[0], err)
		}
		if len(path) > 1 {
			return r.lists(p.key, values, lengths)
		}
		if all == nil {
			all = make([]float64, r.Len*len(p.columns))
		}
		for row, x := range values {
			all[row*len(p.columns)+i] = x
		}
	}
	r.Values[p.key] = all
	return nil
}

// lists adds the lists of all rows. lengths has the length of each list.
func (r *rowReader) lists(key string, values []float64, lengths []int) error {
	for row, n := range lengths {
		if err := r.take(key, row, values[:n]); err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		values = values[n:]
	}
	return nil
}

// checkFooter refuses a footer that claims to be longer than the file. The library would allocate memory for it before
// it reads.
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

// columns lists the columns of the file. A path of several names belongs to a list or a group.
func (r parquetReader) columns() (all []savedColumn) {
	for _, path := range r.leaves {
		all = append(all, savedColumn{path[0], len(path) > 1})
	}
	return all
}

// read returns the numbers of a column, and their count in each row. A null is NaN. Nulls in a list are left out.
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
