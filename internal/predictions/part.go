package predictions

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/task"
)

// outline is what the file of a part stores of a [Schema]. It does not store the columns. Their names, formats and
// shapes come from the task, so a forged file cannot change them.
type outline struct {
	Task           string
	Width          int
	Sides          [3]int `json:",omitzero"`  // shape of the positions of an example, if there are several
	Windows        int    `json:",omitempty"` // number of windows of each row of a text
	Want           task.RowOptions
	Hidden         []string // columns that no file shows
	Top            int      // number of ranked classes that files show
	ClassNames     []string
	Labels, Errors bool
}

// Head returns the head of the file for the rows of a part, or for all rows. The rows depend on the given parameters.
// name is the name of the task. With the file alone, merge writes what a single run would have written.
func (s *Schema) Head(name string, part records.Part, p records.Parameters) (*records.Head, error) {
	o := outline{
		Task:       name,
		Width:      s.Width,
		Want:       s.Want,
		ClassNames: s.ClassNames,
		Labels:     s.Labels,
		Errors:     s.Errors,
		Sides:      s.Sides,
		Windows:    s.Windows,
	}
	h := &records.Head{Parameters: p, Part: part}
	for _, c := range s.Columns {
		if c.Hidden {
			o.Hidden = append(o.Hidden, c.Name)
		}
		if c.Kind == task.Ranked {
			o.Top = c.Shown
		}
	}
	var err error
	h.Schema, err = json.Marshal(o)
	return h, err
}

// PartSchema is the inverse of [Schema.Head]. It also returns the task.
func PartSchema(h *records.Head) (task.Task, *Schema, error) {
	var o outline
	if err := json.Unmarshal(h.Schema, &o); err != nil {
		return nil, nil, err
	}
	if o.Width < 1 || o.Windows < 0 || h.Part.Rows()%max(1, o.Windows) != 0 || o.Want.Members < 0 || o.Top < 0 ||
		slices.Min(o.Sides[:]) < 0 || slices.Max(o.Sides[:]) > 1<<20 {
		return nil, nil, errors.New("nothing says what its rows hold")
	}
	t, err := task.OfWidth(o.Task, o.Width, o.Sides)
	if err != nil {
		return nil, nil, err
	}
	if o.ClassNames != nil && len(o.ClassNames) != t.About().Classes {
		return nil, nil, fmt.Errorf("%d names for %d classes", len(o.ClassNames), t.About().Classes)
	}
	columns := task.RowColumns(t, o.Want)
	for i := range columns {
		c := &columns[i]
		c.Hidden = slices.Contains(o.Hidden, c.Name)
		if c.Kind == task.Ranked {
			c.Shown = o.Top
		}
	}
	s := &Schema{
		Columns:    columns,
		Want:       o.Want,
		ClassNames: o.ClassNames,
		Labels:     o.Labels,
		Errors:     o.Errors,
		Width:      o.Width,
		Sides:      o.Sides,
		Windows:    o.Windows,
	}
	return t, s, s.checkSize()
}

// checkSize refuses columns that are larger than any row. The shapes may be forged.
func (s *Schema) checkSize() error {
	left := 1 << 30
	for _, c := range s.Columns {
		n := 1
		for _, d := range c.Shape {
			if d < 1 || d > left/n {
				return fmt.Errorf("column %q: shape %d", c.Name, c.Shape)
			}
			n *= d
		}
		left -= n
	}
	return nil
}

// size returns the number of values in a row.
func (s *Schema) size() (n int) {
	for _, c := range s.Columns {
		n += c.Len()
	}
	return n
}

// ReadPart reads the head of the file of a part, and checks all rows.
func ReadPart(path string) (*records.Saved, error) {
	return records.Read(path, records.ScorePart, func(h *records.Head) (func(*Row) error, error) {
		t, schema, err := PartSchema(h)
		if err != nil {
			return nil, err
		}
		check := rowCheck{schema.fields(), schema.size(), t.About().Classes}
		return check.row, nil
	})
}

// rowCheck refuses rows that have another number of values, or a class number that the task does not have. Writers look
// up the class name by that number.
type rowCheck struct {
	fields  []field
	size    int
	classes int // 0 where the task has none
}

func (c *rowCheck) row(row *Row) error {
	if c.classes > 0 && row.Label >= c.classes {
		return fmt.Errorf("row %d: label %d of %d classes", row.Index, row.Label, c.classes)
	}
	if row.Error != "" {
		return nil
	}
	if len(row.Values) != c.size {
		return fmt.Errorf("row %d: %d values, want %d", row.Index, len(row.Values), c.size)
	}
	for _, f := range c.fields {
		values, step := f.values(row), 2
		switch {
		case f.Kind == task.Class && f.Shape == nil:
			step = 1
		case f.Kind != task.Ranked:
			continue
		}
		for i := 0; i < len(values); i += step {
			if class := values[i]; !(class >= 0 && class < float64(c.classes)) {
				return fmt.Errorf("row %d: class %v of %d", row.Index, class, c.classes)
			}
		}
	}
	return nil
}
