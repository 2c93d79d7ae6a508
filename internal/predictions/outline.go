package predictions

import (
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/task"
)

// outline is what the file of a part stores of a [Schema]. It does not store the columns. Their names, formats and
// shapes come from the task, so a forged file cannot change them.
type outline struct {
	Width          int
	Want           task.Want
	Hidden         []string // columns that no file shows
	Top            int      // number of ranked classes that files show
	ClassNames     []string
	Labels, Errors bool
}

// outline returns the part of the schema that a file stores.
func (s *Schema) outline() outline {
	o := outline{Width: s.Width, Want: s.Want, ClassNames: s.ClassNames, Labels: s.Labels, Errors: s.Errors}
	for _, c := range s.Columns {
		if c.Hidden {
			o.Hidden = append(o.Hidden, c.Name)
		}
		if c.Kind == task.Ranked {
			o.Top = c.Shown
		}
	}
	return o
}

// schema is the inverse of [Schema.outline]. It also returns the task with the given name.
func (o *outline) schema(name string) (task.Task, *Schema, error) {
	if o.Width < 1 || o.Want.Members < 0 || o.Top < 0 {
		return nil, nil, errors.New("nothing says what its rows hold")
	}
	t, err := task.OfWidth(name, o.Width)
	if err != nil {
		return nil, nil, err
	}
	if o.ClassNames != nil && len(o.ClassNames) != t.ClassNames() {
		return nil, nil, fmt.Errorf("%d names for %d classes", len(o.ClassNames), t.ClassNames())
	}
	columns := t.Columns(o.Want)
	for i := range columns {
		c := &columns[i]
		c.Hidden = slices.Contains(o.Hidden, c.Name)
		if c.Kind == task.Ranked {
			c.Shown = o.Top
		}
	}
	return t, &Schema{Columns: columns, Want: o.Want, ClassNames: o.ClassNames, Labels: o.Labels, Errors: o.Errors, Width: o.Width}, nil
}

// fits reports whether a row needs at most the given number of bytes.
func (s *Schema) fits(most int64) bool {
	left := most - rowHead
	for _, c := range s.Columns {
		n := int64(1)
		for _, d := range c.Shape {
			if d < 1 || int64(d) > left/n {
				return false
			}
			n *= int64(d)
		}
		left -= int64(c.Bytes()) // at most 12 times n
	}
	return left >= 0
}

// classCheck refuses rows with a class number that the task does not have. Writers look up the class name by that number.
type classCheck struct {
	fields  []field
	classes int // 0 where the task has none
}

func (c *classCheck) check(row *Row) error {
	none := func(class float64) bool { return !(class >= 0 && class < float64(c.classes)) }
	if c.classes > 0 && row.Label >= c.classes {
		return fmt.Errorf("row %d: label %d of %d classes", row.Index, row.Label, c.classes)
	}
	if row.Error != "" {
		return nil
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
			if none(values[i]) {
				return fmt.Errorf("row %d: class %v of %d", row.Index, values[i], c.classes)
			}
		}
	}
	return nil
}
