package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// parquetPredictions reads a Parquet file: columns for the classes, or one list.
func parquetPredictions(path string) (t table, err error) {
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
	for _, name := range slices.Concat(logitNames, probabilityNames) {
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
	t := table{from: fmt.Sprintf("list %q", name), named: meaning(name)}
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
		x, err := number(v)
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
	label := slices.IndexFunc(r.header(), func(h string) bool { return slices.Contains(numpy.Labels.Names, strings.ToLower(h)) })
	t.labels, err = r.readLabels(label, len(lengths))
	return t, err
}

// readColumns reads predictions where each class has a column.
func (r parquetReader) readColumns() (table, error) {
	c, err := findColumns(r.header())
	if err != nil {
		return table{}, err
	}
	t := table{from: c.from(), named: meaning(c.name), classes: len(c.classes)}
	rows := -1
	for class, column := range c.classes {
		var values []float64
		err := r.each(column, func(v parquet.Value) error {
			x, err := number(v)
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
			x, err := number(v)
			if err == nil && (x != math.Trunc(x) || !(0 <= x && x < 1<<31)) {
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

// number returns NaN for null.
func number(v parquet.Value) (float64, error) {
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
		pages := group.ColumnChunks()[column].Pages()
		for {
			page, err := pages.ReadPage()
			if err == io.EOF {
				break
			}
			if err != nil {
				return errors.Join(err, pages.Close())
			}
			if err := eachOfPage(page, buffer, &count, f); err != nil {
				return errors.Join(err, pages.Close())
			}
		}
		if err := pages.Close(); err != nil {
			return err
		}
	}
	return nil
}

func eachOfPage(page parquet.Page, buffer []parquet.Value, count *int, f func(parquet.Value) error) error {
	defer parquet.Release(page)
	values := page.Values()
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
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrNoProgress
		}
	}
}
