package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// Field is one of several inputs of a network, and the part of an example for this input.
type Field struct {
	Name string // of the input, and of the array
	// Shape is the shape of the part, without the batch dimension. In [Options] a number below 1 leaves a dimension
	// open. Dims are the names of open dimensions, or "".
	Shape []int64
	Dims  []string `json:"-"`
	// Type is the type of the input: "float32", "float64", "float16", "bool", or an integer type such as "int64".
	Type string
	// Rows, if above 0, says that the values are row numbers of a table with Rows rows, such as token ids.
	Rows int64 `json:"-"`
}

// Whole reports whether the input takes only integers.
func (f Field) Whole() bool { return !strings.HasPrefix(f.Type, "float") }

// Ints reports whether the values of the field are integers in [Values]. Those of a uint8 field are floats, because
// they may be pictures.
func (f Field) Ints() bool { return f.Whole() && f.Type != "uint8" }

// Elements returns the number of values of an example, or 0 if a dimension is open.
func (f Field) Elements() int {
	n := 1
	for _, d := range f.Shape {
		n *= int(max(d, 0))
	}
	return n
}

// Size returns the size of an example of the field. No dimension may be open.
func (f Field) Size() Size {
	if f.Ints() {
		return Size{Ints: product(f.Shape)}
	}
	return Size{Floats: product(f.Shape)}
}

// channels returns the number of channels of the images that the input may take, or 0.
func (f Field) channels(p preprocess.Settings) int {
	if f.Ints() || f.Rows > 0 && f.Type != "uint8" {
		return 0
	}
	s, err := p.Resolve(f.Shape)
	if err != nil && !errors.Is(err, preprocess.ErrNoSize) {
		return 0
	}
	return s.Planes()
}

// Pictures reports which fields take images: the first that may, and all others with the same number of channels. Their
// images are preprocessed by p, as in a network with a single input. All other values, such as a mask for a colour
// image, reach the network unchanged.
func Pictures(fields []Field, p preprocess.Settings) []bool {
	take, channels := make([]bool, len(fields)), 0
	for i, f := range fields {
		c := f.channels(p)
		if channels == 0 {
			channels = c
		}
		take[i] = c > 0 && c == channels
	}
	return take
}

// Fields returns the parts of each example of d with their shapes. Read yields the parts in this order, one after the
// other. Fields returns nil if the examples are for a network with one input.
func Fields(d Dataset) []Field {
	if r, ok := d.(interface{ Fields() []Field }); ok {
		return r.Fields()
	}
	return nil
}

// Unit returns the word for one example of d: "image" if a field takes images, "window" of a text, else "example". It is "example" for a
// nil d, such as the data of saved predictions.
func Unit(d Dataset) string {
	if d == nil {
		return "example"
	}
	if _, ok := CutOf(d); ok {
		return "window"
	}
	fields := Fields(d)
	if fields == nil {
		fields = []Field{{Shape: d.Shape(), Type: "float32"}}
	}
	if slices.Contains(Pictures(fields, preprocess.Settings{}), true) {
		return "image"
	}
	return "example"
}

// inTable fails if v, cast to an integer, is not a row of the input's table.
func (f Field) inTable(v float64) error {
	if least, most := f.Limits(); f.Rows > 0 && (math.Trunc(v) < float64(least) || v >= float64(most)+1) {
		return fmt.Errorf("%v, want %d to %d: %s", v, least, most, f.takes())
	}
	return nil
}

// takes describes the values that the input takes.
func (f Field) takes() string {
	if f.Rows > 0 {
		return fmt.Sprintf("input %q takes numbers of rows in a table of %d, such as token ids", f.Name, f.Rows)
	}
	return fmt.Sprintf("input %q takes %s", f.Name, f.Type)
}

// exact is the largest integer such that float32 represents all smaller ones.
const exact = 1 << 24

// integers has the ranges of the integer types that inputs may have, limited to the range of int64, and NumPy's names.
var integers = map[string]struct {
	least, most int64
	numpy       string
}{
	"bool":   {0, 1, "|b1"},
	"int8":   {math.MinInt8, math.MaxInt8, "|i1"},
	"uint8":  {0, math.MaxUint8, "|u1"},
	"int16":  {math.MinInt16, math.MaxInt16, "<i2"},
	"uint16": {0, math.MaxUint16, "<u2"},
	"int32":  {math.MinInt32, math.MaxInt32, "<i4"},
	"uint32": {0, math.MaxUint32, "<u4"},
	"int64":  {math.MinInt64, math.MaxInt64, "<i8"},
	"uint64": {0, math.MaxInt64, "<u8"},
}

// Limits returns the smallest and the largest integer that the input takes, limited to the range of int64.
func (f Field) Limits() (least, most int64) {
	t, known := integers[f.Type]
	switch {
	case f.Rows > 0:
		return 0, f.Rows - 1
	case !known:
		return math.MinInt64, math.MaxInt64
	}
	return t.least, t.most
}
