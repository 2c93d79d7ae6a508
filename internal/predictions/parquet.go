package predictions

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
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
	file, err := filelist.OpenParquet(io.NewSectionReader(f, 0, size), size)
	if err != nil {
		return err
	}
	var columns []savedColumn
	for _, path := range file.Schema().Columns() { // a path of several names belongs to a list or a group
		columns = append(columns, savedColumn{path[0], len(path) > 1})
	}
	picks, err := r.pick(columns)
	if err != nil {
		return err
	}
	r.Len = int(file.NumRows())
	for _, p := range picks {
		n := len(p.columns)
		if r.Len > maxPredictions/n {
			return fmt.Errorf("%d rows of %d columns, want at most %d numbers", r.Len, n, maxPredictions)
		}
		set := func(row int, values []float64) error {
			if err := r.take(p.key, row, values); err != nil {
				return fmt.Errorf("row %d: %w", row, err)
			}
			return nil
		}
		if !columns[p.columns[0]].list {
			r.Values[p.key] = make([]float64, r.Len*n)
		}
		for i, column := range p.columns {
			if !columns[column].list {
				set = func(row int, values []float64) error {
					r.Values[p.key][row*n+i] = values[0]
					return nil
				}
			}
			if err := eachParquet(file, column, columns[column].list, set); err != nil {
				return fmt.Errorf("column %q: %w", columns[column].name, err)
			}
		}
	}
	return nil
}

// eachParquet calls f with the numbers of a column in each row: one number, or a list. A null is NaN. Nulls in a list
// are left out.
func eachParquet(file *parquet.File, column int, list bool, f func(row int, values []float64) error) error {
	rows, count := 0, 0
	var values []float64
	end := func() error { // of a row
		switch {
		case rows == 0:
			return nil
		case int64(rows) > file.NumRows() || !list && len(values) != 1:
			return errors.New("damaged: it has more values than rows")
		}
		return f(rows-1, values)
	}
	add := func(v parquet.Value) error {
		if v.RepetitionLevel() == 0 {
			if err := end(); err != nil {
				return err
			}
			rows, values = rows+1, values[:0]
		}
		if rows == 0 {
			return errors.New("damaged: a list without a beginning")
		}
		if list && v.IsNull() {
			return nil
		}
		x, err := parquetNumber(v)
		values = append(values, x)
		return err
	}
	buffer := make([]parquet.Value, 1024)
	for _, group := range file.RowGroups() {
		chunk := parquet.NewColumnChunkValueReader(group.ColumnChunks()[column])
		var err error
		for n := 0; err == nil; {
			if n, err = chunk.ReadValues(buffer); n == 0 && err == nil {
				err = io.ErrNoProgress
			}
			if count += n; count > maxPredictions {
				err = fmt.Errorf("more than %d numbers", maxPredictions)
			}
			for _, v := range buffer[:n] {
				if failed := add(v); failed != nil {
					err = failed
					break
				}
			}
		}
		chunk.Close()
		if err != io.EOF {
			return err
		}
	}
	if err := end(); err != nil {
		return err
	}
	if int64(rows) != file.NumRows() {
		return fmt.Errorf("damaged: %d rows of %d", rows, file.NumRows())
	}
	return nil
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
