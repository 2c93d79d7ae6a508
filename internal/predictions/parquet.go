//go:build !noparquet

package predictions

import (
	"fmt"
	"io"
	"math"
	"reflect"

	"github.com/parquet-go/parquet-go"

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
		of, options := l.goType()
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

// goType returns the Go type of a column and the options for its struct tag.
func (l *leaf) goType() (of reflect.Type, options string) {
	switch {
	case l.class:
		return reflect.TypeFor[string](), ",optional,dict"
	case l.always:
		return reflect.TypeFor[string](), ""
	case l.text != nil:
		return reflect.TypeFor[string](), ",optional"
	case l.label:
		return reflect.TypeFor[int64](), ",optional"
	case l.kind == task.Flag:
		of = reflect.TypeFor[bool]()
	case l.kind == task.Class, l.kind == task.Subset:
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
	if l.kind == task.Subset {
		values = numbers(values)
	}
	for l.ragged && len(values) > 0 && math.IsNaN(values[len(values)-1]) {
		values = values[:len(values)-1]
	}
	if len(values) == 0 {
		return append(row, parquet.NullValue().Level(0, 0, column))
	}
	for i, v := range values {
		value := parquet.DoubleValue(v)
		switch {
		case l.label:
			value = parquet.Int64Value(int64(v))
		case l.kind == task.Flag:
			value = parquet.BooleanValue(v != 0)
		case l.kind == task.Class, l.kind == task.Subset:
			value = parquet.Int32Value(int32(v))
		case l.kind == task.Float32:
			value = parquet.FloatValue(float32(v))
		}
		row = append(row, value.Level(min(i, 1), defined, column))
	}
	return row
}

// numbers lists the classes of a set. It is nil for nil.
func numbers(mask []float64) (list []float64) {
	for _, c := range members(mask) {
		list = append(list, float64(c))
	}
	return list
}

// Flush ends a row group.
func (p *parquetWriter) Flush() error { return p.out.Flush() }

func (p *parquetWriter) Close() error { return p.out.Close() }
