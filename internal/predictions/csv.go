package predictions

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/cell"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/task"
)

// column is a column of a table without lists, but for path, label and error.
type column struct {
	name string
	text func(values []float64) string // of those of a row
}

// cells lists them.
func (s *Schema) cells() []column {
	var list []column
	add := func(name string, at int, text func(float64) string) {
		list = append(list, column{name, func(values []float64) string { return text(values[at]) }})
	}
	class := func(v float64) string { return strconv.Itoa(int(v)) }
	named := func(v float64) string { return cell.Guard(s.ClassNames[int(v)]) }
	for _, f := range s.fields() {
		text := number
		if f.Kind == task.Class {
			text = class
		}
		switch {
		case f.Kind == task.Ranked:
			for k := range f.Shape[0] {
				name, at := fmt.Sprintf(f.Cell, k+1), f.at+2*k
				add(name, at, class)
				if s.ClassNames != nil {
					add(name+"_name", at, named)
				}
				add(name+"_probability", at+1, number)
			}
		case f.Shape == nil:
			add(f.Name, f.at, text)
			if f.named != "" {
				add(f.named, f.at, named)
			}
		default:
			for i := range f.Len() {
				add(fmt.Sprintf(f.Cell, place(i, f.Shape)...), f.at+i, text)
			}
		}
	}
	return list
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

// Header lists the columns of a CSV file.
func (s *Schema) Header() []string {
	names := []string{"path"}
	if s.classes() {
		names = append(names, "label")
	}
	for _, c := range s.cells() {
		names = append(names, c.name)
	}
	if s.Errors {
		names = append(names, "error")
	}
	return names
}

// CSV writes rows as CSV (RFC 4180, with line feeds). What an example with
// an error does not have is empty. Texts are guarded as package cell says.
type CSV struct {
	schema  *Schema
	classes bool // there is a column for their numbers
	cells   []column
	out     *csv.Writer
	begun   bool
	record  []string
}

// NewCSV returns a writer of CSV, for rows that are passed on while others are not
// known yet.
func NewCSV(w io.Writer, s *Schema) *CSV {
	return &CSV{schema: s, classes: s.classes(), cells: s.cells(), out: csv.NewWriter(w)}
}

func (c *CSV) begin() error {
	if c.begun {
		return nil
	}
	c.begun = true
	header := c.schema.Header()
	for i, name := range header {
		header[i] = cell.Guard(name)
	}
	return c.out.Write(header)
}

// Write writes a row.
func (c *CSV) Write(r *Row) error {
	if err := c.begin(); err != nil {
		return err
	}
	record := append(c.record[:0], cell.Guard(r.Path))
	switch {
	case !c.classes:
	case r.Label >= 0:
		record = append(record, strconv.Itoa(r.Label))
	default:
		record = append(record, "")
	}
	for _, x := range c.cells {
		text := ""
		if r.Error == "" {
			text = x.text(r.Values)
		}
		record = append(record, text)
	}
	if c.schema.Errors {
		record = append(record, cell.Guard(r.Error))
	}
	c.record = record
	return c.out.Write(record)
}

// Flush passes on what is held back.
func (c *CSV) Flush() error {
	c.out.Flush()
	return c.out.Error()
}

// Close ends the file, in which there is a header at least.
func (c *CSV) Close() error {
	if err := c.begin(); err != nil {
		return err
	}
	return c.Flush()
}

// readCSV reads a table of text, in which commas or tabs are between cells.
func readCSV(f io.Reader, comma rune) (table, error) {
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
	header = slices.Clone(header)
	for i, name := range header {
		header[i] = cell.Bare(name)
	}
	c, err := findColumns(header)
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

// parseLabel returns −1 for what is missing. Some programs write all numbers as
// floats: 3.0.
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
