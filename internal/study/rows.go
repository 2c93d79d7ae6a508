package study

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A Row is what a study says of one thing, such as a method, a setting or a group. A study fills it once. JSON has its cells as the
// fields of an object, and tables show those that have a header.
type Row []Cell

// A Cell is a figure, a text or another row.
type Cell struct {
	Key   string // in JSON, and for the columns of a [Section]
	Value any    // in JSON
	report.Column
	Text string // in tables
	// Mark refers to a warning below the table, in columns that show it.
	Mark string
	// Hidden cells are for tables alone.
	Hidden bool
}

// Column chooses cells for a column of a table. Header and Optional replace the cells' own, unless they are empty.
type Column struct {
	Key, Header string
	Optional    int
	Marked      bool // with the marks of the cells
}

// Keys returns a column for each key.
func Keys(keys ...string) (columns []Column) {
	for _, key := range keys {
		columns = append(columns, Column{Key: key})
	}
	return columns
}

// Fields returns a row from alternating keys and values of JSON.
func Fields(pairs ...any) (r Row) {
	for i := 0; i < len(pairs); i += 2 {
		r = append(r, Cell{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return r
}

// Rows returns a row for each item, and never nil.
func Rows[T any](items []T, row func(T) Row) []Row {
	rows := []Row{}
	for _, item := range items {
		rows = append(rows, row(item))
	}
	return rows
}

// Name returns a cell with a text. JSON has the text, too.
func Name(key, header, text string) Cell {
	return Cell{Key: key, Value: text, Column: report.Column{Header: header}, Text: text}
}

// Count returns a cell with a number of things.
func Count(key, header string, n int) Cell { return Number(key, header, n, report.Thousands(n)) }

// Number returns a cell with a figure.
func Number(key, header string, value any, text string) Cell {
	return Cell{Key: key, Value: value, Column: report.Column{Header: header, Align: report.Decimal}, Text: text}
}

// Shown returns a cell for tables alone. Its key is the header.
func Shown(header, text string) Cell {
	return Cell{Key: header, Column: report.Column{Header: header, Align: report.Decimal}, Text: text, Hidden: true}
}

// Marked returns the cell that marks a row at its end, such as the one that is advised. An empty mark leaves it out.
func Marked(mark string) Cell { return Shown(" ", mark).Aligned(report.Left).Blank() }

// Difference returns a cell with an interval. value is what JSON has.
func Difference(key, header string, value any, i chance.Interval) Cell {
	return Cell{Key: key, Value: value, Column: report.Column{Header: header, Align: report.Decimal}, Text: IntervalText(i)}
}

// IntervalText formats a difference with its interval, if that is known.
func IntervalText(i chance.Interval) string {
	if math.IsNaN(i.Low) && !math.IsNaN(i.Mean) && !math.IsInf(i.Mean, 0) {
		return report.Signed(i.Mean, 4)
	}
	return report.Signed(i.Mean, 4) + " " + report.Interval(i.Low, i.High, 4)
}

// Scores returns cells with scores. prefix begins the keys.
func Scores(prefix string, scores []task.Score) (r Row) {
	for _, s := range scores {
		r = append(r, Number(prefix+s.Key, s.Header, s.Value, Format(s)))
	}
	return r
}

// Format formats a score for a table.
func Format(s task.Score) string {
	switch v, m := s.Value, s.Metric; {
	case m.Optional && v != v:
		return ""
	case m.Percent:
		return report.Percent(v, m.Digits)
	default:
		return report.Fixed(v, m.Digits)
	}
}

// Blank returns the cell with nothing in a table where it is empty, instead of a dash.
func (c Cell) Blank() Cell {
	c.Empty = " "
	return c
}

// Renamed returns the cell with another key.
func (c Cell) Renamed(key string) Cell {
	c.Key = key
	return c
}

// Aligned returns the cell with another alignment of its column.
func (c Cell) Aligned(a report.Align) Cell {
	c.Align = a
	return c
}

// Droppable returns the cell with a column that a narrow screen leaves out: see [report.Column].
func (c Cell) Droppable(order int) Cell {
	c.Optional = order
	return c
}

// Cell returns a cell by its key, or nil if the row lacks it. "a/b" is b of the row in a.
func (r Row) Cell(key string) *Cell {
	for i := range r {
		if r[i].Key == key {
			return &r[i]
		}
	}
	if outer, inner, ok := strings.Cut(key, "/"); ok {
		if c := r.Cell(outer); c != nil {
			if row, ok := c.Value.(Row); ok {
				return row.Cell(inner)
			}
		}
	}
	return nil
}

// MarshalJSON writes the cells in their order, and null for no row and for a figure that is not finite.
func (r Row) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	b := []byte{'{'}
	for _, c := range r {
		if c.Hidden {
			continue
		}
		key, err := json.Marshal(c.Key)
		if err != nil {
			return nil, err
		}
		if x, ok := c.Value.(float64); ok {
			c.Value = Finite(x)
		}
		value, err := json.Marshal(c.Value)
		if err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, key...), ':'), value...)
	}
	return append(b, '}'), nil
}

// Finite returns a pointer to v, or nil if v is not finite, which becomes null in JSON.
func Finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
