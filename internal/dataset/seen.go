package dataset

import (
	"cmp"
	"encoding/binary"
	"io"
	"math"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// seenBlock is the number of examples that WriteBatch holds in memory.
const seenBlock = 128

// WriteBatch writes the first n examples, or all if there are fewer, as the network sees them. The output is a .npy
// array of shape [n, Shape...], in float32, or in uint8 if asBytes is true. For a dataset with several [Fields] it is
// an .npz file with an array for each. If skip is true, an unreadable example is zeros before normalisation. Otherwise
// it is an error.
func WriteBatch(w io.Writer, d Dataset, n int, asBytes, skip bool) error {
	n = min(n, d.Len())
	fields := seenFields(d, asBytes)
	if len(fields) == 1 {
		return writeSeen(w, d, fields, 0, n, skip)
	}
	z := numpy.NewArchive(w)
	for k, f := range fields {
		out, err := z.Create(f.Name + ".npy")
		if err == nil {
			err = writeSeen(out, d, fields, k, n, skip)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}

// WriteStream writes all examples as the network sees them, in batches. A batch is a .npy array of the examples' names, and
// one of each field, one after the other.
func WriteStream(w io.Writer, d Dataset, batch int, asBytes bool) error {
	fields := seenFields(d, asBytes)
	for from := 0; from < d.Len(); from += batch {
		rows, err := readRows(d, from, min(from+batch, d.Len()), false)
		if err == nil {
			err = writeNames(w, d, from, len(rows))
		}
		for _, f := range fields {
			if err == nil {
				err = f.write(w, len(rows), f.cut(rows, fields))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// seenFields returns the fields of the examples. A dataset without fields has one.
func seenFields(d Dataset, asBytes bool) []Field {
	if fields := Fields(d); fields != nil {
		return fields
	}
	f := Field{Shape: d.Shape()}
	if asBytes {
		f.Type = "uint8"
	}
	return []Field{f}
}

// writeSeen writes field k of the first n examples, a block at a time.
func writeSeen(w io.Writer, d Dataset, fields []Field, k, n int, skip bool) error {
	if n == 0 {
		return fields[k].write(w, 0, nil)
	}
	for from := 0; from < n; from += seenBlock {
		rows, err := readRows(d, from, min(from+seenBlock, n), skip)
		if err != nil {
			return err
		}
		var part []Values
		for _, f := range fields[:k+1] {
			part = f.cut(rows, fields)
		}
		header := 0
		if from == 0 {
			header = n
		}
		if err := fields[k].write(w, header, part); err != nil {
			return err
		}
	}
	return nil
}

// cut removes the field from the beginning of each row, and returns it. A row of a single field is returned whole.
func (f Field) cut(rows []Values, fields []Field) []Values {
	if len(fields) == 1 {
		return rows
	}
	part := make([]Values, len(rows))
	for i := range rows {
		part[i], rows[i] = rows[i].Cut(f.Size())
	}
	return part
}

// readRows reads the examples from to to−1.
func readRows(d Dataset, from, to int, skip bool) ([]Values, error) {
	size, err := SizeOf(d)
	if err != nil {
		return nil, err
	}
	var rows []Values
	for i := from; i < to; i++ {
		values := size.Make(1)
		rows = append(rows, values)
		err := d.Read(values, i)
		if err != nil && !skip {
			return nil, err
		}
		if err != nil {
			values.Clear()
			if b, ok := d.(Bytes); ok {
				b.Normalize(values.Floats, make([]byte, size.Floats))
			}
		}
	}
	return rows, nil
}

// integerTypes has NumPy's names of the integer types that inputs may have.
var integerTypes = map[string]string{
	"bool":   "|b1",
	"int8":   "|i1",
	"uint8":  "|u1",
	"int16":  "<i2",
	"uint16": "<u2",
	"int32":  "<i4",
	"uint32": "<u4",
	"int64":  "<i8",
	"uint64": "<u8",
}

// write writes the field of rows. Before them it writes the header of an array of n examples, unless n is 0 and rows continue
// an array.
func (f Field) write(w io.Writer, n int, rows []Values) error {
	dtype := cmp.Or(integerTypes[f.Type], "<f4")
	if n > 0 || len(rows) == 0 {
		shape := []int{n}
		for _, s := range f.Shape {
			shape = append(shape, int(s))
		}
		if _, err := w.Write(numpy.Header(dtype, shape...)); err != nil {
			return err
		}
	}
	var b []byte
	for _, row := range rows {
		b = b[:0]
		for _, v := range row.Ints {
			b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(v))[:dtype[2]-'0']...)
		}
		for _, v := range row.Floats {
			if f.Type == "uint8" {
				b = append(b, uint8(v))
			} else {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// writeNames writes the names of n examples as an array of texts, whose characters take four bytes each.
func writeNames(w io.Writer, d Dataset, from, n int) error {
	width := 1
	for i := range n {
		width = max(width, utf8.RuneCountInString(d.Name(from+i)))
	}
	b := numpy.Header(numpy.Text(width), n)
	for i := range n {
		left := width
		for _, r := range d.Name(from + i) {
			b = binary.LittleEndian.AppendUint32(b, uint32(r))
			left--
		}
		b = append(b, make([]byte, 4*left)...)
	}
	_, err := w.Write(b)
	return err
}
