package predictions

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Header lists the columns of a CSV file.
func (s *Schema) Header() []string {
	names := []string{"path", "label"}
	for _, f := range s.fields() {
		switch {
		case f.Kind == task.Ranked:
			for k := range f.Shape[0] {
				name := fmt.Sprintf(f.Cell, k+1)
				names = append(names, name)
				if s.ClassNames != nil {
					names = append(names, name+"_name")
				}
				names = append(names, name+"_probability")
			}
		case f.Shape == nil:
			names = append(names, f.Name)
			if f.named != "" {
				names = append(names, f.named)
			}
		default:
			for i := range f.Len() {
				names = append(names, fmt.Sprintf(f.Cell, place(i, f.Shape)...))
			}
		}
	}
	if s.Errors {
		names = append(names, "error")
	}
	return names
}

// place returns the indices of an element of an array in row-major order.
func place(i int, shape []int) []any {
	at := make([]any, len(shape))
	for d, n := range slices.Backward(shape) {
		at[d] = i % n
		i /= n
	}
	return at
}

// csvWriter writes rows as CSV (RFC 4180, with line feeds). What an example with
// an error does not have is empty.
type csvWriter struct {
	schema *Schema
	fields []field
	out    *csv.Writer
	header []string
	begun  bool
	record []string
}

// NewCSV returns a writer of CSV, for rows that are passed on while others are not
// known yet.
func NewCSV(w io.Writer, s *Schema) Writer {
	return &csvWriter{schema: s, fields: s.fields(), out: csv.NewWriter(w), header: s.Header()}
}

func (c *csvWriter) begin() error {
	if c.begun {
		return nil
	}
	c.begun = true
	return c.out.Write(c.header)
}

func (c *csvWriter) Write(r *Row) error {
	if err := c.begin(); err != nil {
		return err
	}
	cells := append(c.record[:0], r.Path, "")
	if r.Label >= 0 {
		cells[1] = strconv.Itoa(r.Label)
	}
	if r.Error == "" {
		for i := range c.fields {
			cells = c.append(cells, &c.fields[i], r)
		}
	}
	for len(cells) < len(c.header) {
		cells = append(cells, "")
	}
	if c.schema.Errors {
		cells[len(cells)-1] = r.Error
	}
	c.record = cells
	return c.out.Write(cells)
}

// append appends the cells of a column.
func (c *csvWriter) append(cells []string, f *field, r *Row) []string {
	values, names := f.values(r), c.schema.ClassNames
	if f.Kind == task.Ranked {
		for top := range slices.Chunk(values, 2) {
			cells = append(cells, strconv.Itoa(int(top[0])))
			if names != nil {
				cells = append(cells, names[int(top[0])])
			}
			cells = append(cells, number(top[1]))
		}
		return cells
	}
	for _, v := range values {
		cells = append(cells, f.text(v))
	}
	if f.named != "" {
		cells = append(cells, names[int(values[0])])
	}
	return cells
}

func (c *csvWriter) Flush() error {
	c.out.Flush()
	return c.out.Error()
}

func (c *csvWriter) Close() error {
	if err := c.begin(); err != nil {
		return err
	}
	return c.Flush()
}

// readCSV reads a table of text, in which commas or tabs are between cells.
func readCSV(path string, comma rune) (table, error) {
	f, err := os.Open(path)
	if err != nil {
		return table{}, file.Cause(err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	head, err := in.Peek(512)
	if err != nil && err != io.EOF {
		return table{}, file.Cause(err)
	}
	if numpy.Known(head) || bytes.HasPrefix(head, []byte("PAR1")) || bytes.IndexByte(head, 0) >= 0 {
		return table{}, errors.New("not a text file")
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) { // a byte order mark, as spreadsheets write it
		in.Discard(3)
	}
	r := csv.NewReader(in)
	r.Comma, r.ReuseRecord = comma, true
	header, err := r.Read()
	if err == io.EOF {
		return table{}, errors.New("empty")
	}
	if err != nil {
		return table{}, err
	}
	c, err := findColumns(slices.Clone(header))
	if err != nil {
		return table{}, err
	}
	t := c.table()
	for row := 0; ; row++ {
		record, err := r.Read()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return table{}, err // names the line
		}
		for class, column := range c.classes {
			x, err := parseValue(record[column])
			if err != nil {
				return table{}, fmt.Errorf("row %d: class %d: %w", row, class, err)
			}
			t.values = append(t.values, x)
		}
		if c.label >= 0 {
			label, err := parseLabel(record[c.label])
			if err != nil {
				return table{}, fmt.Errorf("row %d: %w", row, err)
			}
			t.labels = append(t.labels, label)
		}
	}
}

// parseValue returns NaN for what is missing.
func parseValue(s string) (float64, error) {
	if s = strings.TrimSpace(s); s == "" {
		return math.NaN(), nil
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q, want a number", s)
	}
	return x, nil
}

// parseLabel returns −1 for what is missing. Programs that know one type of number
// write 3.0.
func parseLabel(s string) (int, error) {
	if s = strings.TrimSpace(s); s == "" {
		return -1, nil
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !isLabel(x) {
		return 0, fmt.Errorf("label %.40q, want a class number from 0", s)
	}
	return int(x), nil
}
