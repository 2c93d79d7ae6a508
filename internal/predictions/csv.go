package predictions

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/csvsafe"
	"github.com/swagwrap/swagwrap/internal/task"
)

// column is a column of numbers or class names in a table. The columns path, label and error are not among these.
type column struct {
	name string
	text func(values []float64) string // makes the cell from the values of a row
}

func (s *Schema) cells() []column {
	var list []column
	add := func(name string, at int, text func(float64) string) {
		list = append(list, column{name, func(values []float64) string { return text(values[at]) }})
	}
	class := func(v float64) string { return strconv.Itoa(int(v)) }
	named := func(v float64) string { return csvsafe.Guard(s.ClassNames[int(v)]) }
	for _, f := range s.fields() {
		text := number
		switch f.Kind {
		case task.Class:
			text = class
		case task.Flag:
			text = func(v float64) string { return strconv.FormatBool(v != 0) }
		}
		switch {
		case f.Kind == task.Subset:
			list = append(list, column{f.Name, func(values []float64) string {
				return strings.Trim(fmt.Sprint(members(values[f.at:f.at+f.Len()])), "[]")
			}})
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

// members lists the classes of a set.
func members(mask []float64) []int {
	list := []int{}
	for c, in := range mask {
		if in != 0 {
			list = append(list, c)
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

// CSV writes rows as CSV (RFC 4180, with line feeds). Cells are empty where an example with an error has no value.
// Texts are guarded as in package csvsafe.
type CSV struct {
	schema  *Schema
	classes bool // there is a column for class numbers
	cells   []column
	out     *csv.Writer
	begun   bool
	record  []string
}

// NewCSV returns a CSV writer. It suits rows that are passed on before all of them are known.
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
		header[i] = csvsafe.Guard(name)
	}
	return c.out.Write(header)
}

// Write writes a row.
func (c *CSV) Write(r *Row) error {
	if err := c.begin(); err != nil {
		return err
	}
	record := append(c.record[:0], csvsafe.Guard(r.Path))
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
		record = append(record, csvsafe.Guard(r.Error))
	}
	c.record = record
	return c.out.Write(record)
}

// Flush writes buffered rows to the underlying writer.
func (c *CSV) Flush() error {
	c.out.Flush()
	return c.out.Error()
}

// Close flushes the file. A file without rows gets its header.
func (c *CSV) Close() error {
	if err := c.begin(); err != nil {
		return err
	}
	return c.Flush()
}
