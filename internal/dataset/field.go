package dataset

import (
	"errors"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset/table"
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

// takes says which numbers the input takes.
func (f Field) takes() table.Input { return table.Input{Name: f.Name, Type: f.Type, Rows: f.Rows} }

// Integer reports whether the input takes only integers.
func (f Field) Integer() bool { return f.takes().Integer() }

// Limits returns the smallest and the largest integer that the input takes, limited to the range of int64.
func (f Field) Limits() (least, most int64) { return f.takes().Limits() }

// Ints reports whether the values of the field are integers in [Values]. Those of a uint8 field are floats, because
// they may be pictures.
func (f Field) Ints() bool { return f.Integer() && f.Type != "uint8" }

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

// exact is the largest integer such that float32 represents all smaller ones.
const exact = 1 << 24
