package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// ErrNoPad is the error for lists of different lengths without a value to fill up the shorter ones.
var ErrNoPad = errors.New("lists differ in length, and nothing says what fills up the shorter ones")

// Length returns the length of example i of d along the first dimension of a field, if examples are filled up to the
// longest one. Otherwise it returns −1.
func Length(d Dataset, field, i int) int {
	if r, ok := d.(interface{ Length(field, i int) int }); ok {
		return r.Length(field, i)
	}
	return -1
}

// Positions returns the length of the longest list of example i of d, if lists are filled up to the longest one, or else 0.
func Positions(d Dataset, i int) (most int) {
	for field := range max(1, len(Fields(d))) {
		most = max(most, Length(d, field, i))
	}
	return most
}

// Length implements the function [Length].
func (d *record) Length(field, i int) int {
	if d.lengths == nil || d.lengths[field] == nil || d.fixed[field] {
		return -1
	}
	return d.lengths[field][i]
}

// positionsUsed implements the function positionsUsed. Lists of a fixed length count if they have one element for each position.
func (d *record) positionsUsed(i, n int) int {
	most := Positions(d, i)
	for field, lengths := range d.lengths {
		if lengths != nil && d.Length(field, i) < 0 && int(d.fields[field].Shape[0]) == n {
			most = max(most, lengths[i])
		}
	}
	return most
}

// sameLengths checks fields that share an open dimension. The dimension must have the same size for all of them in each
// example.
func (d *record) sameLengths(declared []Field) error {
	for k, f := range declared {
		if len(f.Dims) == 0 || f.Dims[0] == "" || f.Shape[0] > 0 {
			continue
		}
		for j, other := range declared[:k] {
			if len(other.Dims) == 0 || other.Dims[0] != f.Dims[0] || other.Shape[0] > 0 {
				continue
			}
			for i := range d.n {
				if a, b := d.Length(j, i), d.Length(k, i); a != b {
					return fmt.Errorf("row %d: a list of %d for input %q, and of %d for %q: want the same", i, a, other.Name, b, f.Name)
				}
			}
		}
	}
	return nil
}

// columns returns the part of the rows that consists of the given columns. Each has one number per row, or a single one
// has a list per row. Lists are filled up with pad, which is NaN if no value was given. lengths has the lengths of
// lists if some are filled up.
func (f Field) columns(of []*table.Column, n int, pad float64) (d Dataset, lengths []int, err error) {
	for _, c := range of {
		if c.Lengths != nil && len(of) > 1 {
			return nil, nil, fmt.Errorf("column %q: lists, and input %q is made of %d columns: want numbers", c.Name, f.Name, len(of))
		}
	}
	e := &examples{n: n}
	first := of[0]
	shape := []int64{int64(len(of))}
	if first.Lengths != nil {
		if shape, lengths, err = f.padded(first, pad); err != nil {
			return nil, nil, err
		}
	}
	seen, fits := accept(shape, f.Shape)
	switch {
	case fits:
	case first.Lengths != nil:
		return nil, nil, fmt.Errorf("column %q: %w", first.Name, mismatch(shape, f.Shape))
	default:
		var names []string
		for _, c := range of {
			names = append(names, c.Name)
		}
		return nil, nil, fmt.Errorf("%d columns %q for input %q, which takes %d: %w", len(of), names, f.Name, f.Shape, table.ErrColumns)
	}
	e.setShape(seen)
	e.size = Field{Type: f.Type, Shape: seen}.Size()
	for _, c := range of {
		if err := f.takes().Takes(c); err != nil {
			return nil, nil, err
		}
	}
	v := &columnValues{of: of, pad: pad}
	if first.Lengths != nil {
		v.begin = make([]int, n+1)
		each := product(first.Inner)
		for i, length := range first.Lengths {
			v.begin[i+1] = v.begin[i] + length*each
		}
	}
	return &values{e, v.read}, lengths, nil
}

// padded returns the shape of a column of lists after filling up. It also returns the lengths of the lists if the
// network takes any length, or if some lists are shorter than what it takes.
func (f Field) padded(c *table.Column, pad float64) (shape []int64, lengths []int, err error) {
	longest, shortest := slices.Max(c.Lengths), slices.Min(c.Lengths)
	isOpen := len(f.Shape) > 0 && f.Shape[0] < 1
	if len(f.Shape) == len(c.Inner)+1 && !isOpen {
		most := int(f.Shape[0])
		if longest > most {
			return nil, nil, fmt.Errorf("row %d, column %q: a list of %d, and input %q takes %d", slices.Index(c.Lengths, longest), c.Name,
				longest, f.Name, most)
		}
		longest = most
	}
	longest = max(longest, 1)
	if shortest < longest {
		if math.IsNaN(pad) {
			i := slices.Index(c.Lengths, shortest)
			return nil, nil, fmt.Errorf("row %d, column %q: a list of %d, and input %q wants %d: %w", i, c.Name, shortest, f.Name,
				longest, ErrNoPad)
		}
		if err := f.takes().TakesFloat(pad); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", setting.Pad.With(fmt.Sprintf("%s=%v", f.Name, pad)), err)
		}
	}
	shape = []int64{int64(longest)}
	for _, d := range c.Inner {
		shape = append(shape, int64(d))
	}
	if isOpen || shortest < longest {
		lengths = c.Lengths
	}
	return shape, lengths, nil
}

// columnValues reads the rows of columns.
type columnValues struct {
	of    []*table.Column
	begin []int // index of the first number of each row's list; nil for columns of numbers
	pad   float64
}

func (v *columnValues) read(dst Values, i int) error {
	if v.begin == nil {
		for k, c := range v.of {
			dst.put(k, c, i)
		}
		return nil
	}
	n := v.begin[i+1] - v.begin[i]
	for k := range n {
		dst.put(k, v.of[0], v.begin[i]+k)
	}
	for k := n; k < len(dst.Ints); k++ {
		dst.Ints[k] = int64(v.pad)
	}
	for k := n; k < len(dst.Floats); k++ {
		dst.Floats[k] = float32(v.pad)
	}
	return nil
}

// put writes number at of a column as value k of an example. Only one type of values is in use.
func (v Values) put(k int, c *table.Column, at int) {
	if len(v.Ints) == 0 {
		v.Floats[k] = c.Float32(at)
	} else {
		v.Ints[k] = c.Int64(at)
	}
}
