package table

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// An Input says which numbers an input of a network takes. The commands and the page in a browser both ask it.
type Input struct {
	Name string
	Type string // of ONNX Runtime, such as float32 or int64
	Rows int64  // if above 0, the numbers name rows of a table with Rows rows, such as token ids
}

// integers has the ranges of the integer types that inputs may have, limited to the range of int64.
var integers = map[string]struct{ least, most int64 }{
	"bool":   {0, 1},
	"int8":   {math.MinInt8, math.MaxInt8},
	"uint8":  {0, math.MaxUint8},
	"int16":  {math.MinInt16, math.MaxInt16},
	"uint16": {0, math.MaxUint16},
	"int32":  {math.MinInt32, math.MaxInt32},
	"uint32": {0, math.MaxUint32},
	"int64":  {math.MinInt64, math.MaxInt64},
	"uint64": {0, math.MaxInt64},
}

// Integer reports whether the input takes only integers.
func (in Input) Integer() bool { return !strings.HasPrefix(in.Type, "float") }

// Limits returns the smallest and the largest integer that the input takes, limited to the range of int64.
func (in Input) Limits() (least, most int64) {
	t, known := integers[in.Type]
	switch {
	case in.Rows > 0:
		return 0, in.Rows - 1
	case !known:
		return math.MinInt64, math.MaxInt64
	}
	return t.least, t.most
}

// String describes the values that the input takes.
func (in Input) String() string {
	if in.Rows > 0 {
		return fmt.Sprintf("input %q takes numbers of rows in a table of %d, such as token ids", in.Name, in.Rows)
	}
	return fmt.Sprintf("input %q takes %s", in.Name, in.Type)
}

// Takes fails if the input does not take a number of the column.
func (in Input) Takes(c *Column) error {
	fail := func(k int, format string, args ...any) error {
		return fmt.Errorf("row %d, column %q: %w", c.row(k), c.Name, fmt.Errorf(format, args...))
	}
	least, most := in.Limits()
	for k, v := range c.Ints {
		if v < least || v > most {
			return fail(k, "%d, want %d to %d: %s", v, least, most, in)
		}
	}
	for k, v := range c.Floats {
		if !in.Integer() && math.IsInf(float64(float32(v)), 0) {
			return fail(k, "%v, want finite float32 values", v)
		}
		if err := in.TakesFloat(v); err != nil {
			return fail(k, "%w", err)
		}
	}
	return nil
}

// TakesFloat fails if the input does not take a number that is written as a float.
func (in Input) TakesFloat(v float64) error {
	if err := in.InTable(v); !in.Integer() || err != nil {
		return err
	}
	least, most := in.Limits()
	if v != math.Trunc(v) || v < float64(least) || v > float64(most) || v >= 1<<63 {
		return fmt.Errorf("%v, want whole numbers: %s", v, in)
	}
	return nil
}

// InTable fails if v, cast to an integer, is not a row of the input's table.
func (in Input) InTable(v float64) error {
	if least, most := in.Limits(); in.Rows > 0 && (math.Trunc(v) < float64(least) || v >= float64(most)+1) {
		return fmt.Errorf("%v, want %d to %d: %s", v, least, most, in)
	}
	return nil
}

func (c *Column) row(k int) int {
	if c.Lengths == nil {
		return k
	}
	each := 1
	for _, n := range c.Inner {
		each *= n
	}
	return slices.IndexFunc(c.Lengths, func(length int) bool { k -= length * each; return k < 0 })
}

// Float32 returns number k as networks take it in a float type.
func (c *Column) Float32(k int) float32 {
	if c.Ints != nil {
		return float32(c.Ints[k])
	}
	return float32(c.Floats[k])
}

// Int64 returns number k as networks take it in an integer type.
func (c *Column) Int64(k int) int64 {
	if c.Ints != nil {
		return c.Ints[k]
	}
	return int64(c.Floats[k])
}
