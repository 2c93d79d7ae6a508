// Package inputs turns a picture or a table into what a network takes, in a browser. The folder wasm compiles it to
// WebAssembly. It uses the packages that the commands use, so pixels and numbers are the same bits.
//
// # Invariants
//
// A tensor has the bytes of its type, little-endian, for whole examples. Files are from strangers: what decoding a picture
// takes is known from its header, and bounded.
package inputs

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/weights"
)

// A Network says what a network takes: a picture, or numbers of a table.
type Network struct {
	Inputs []Input `json:"inputs"`
	// Picture is resolved. It is nil for tables.
	Picture *preprocess.Settings `json:"picture,omitempty"`
}

// An Input is one input of the network.
type Input struct {
	Name string `json:"name"`
	Type string `json:"type"` // of ONNX Runtime, such as float32
	// Shape is that of an example. An input of one number for each example may have none.
	Shape []int64 `json:"shape"`
	// Columns feed the input, in this order. There are none for pictures.
	Columns []string `json:"columns,omitempty"`
	// Rows, if above 0, says that the values are row numbers of a table with Rows rows.
	Rows int64 `json:"rows,omitempty"`
}

// takes says which numbers the input takes.
func (in Input) takes() table.Input { return table.Input{Name: in.Name, Type: in.Type, Rows: in.Rows} }

// A Tensor holds some examples.
type Tensor struct {
	Name, Type string
	Dims       []int64
	Data       []byte
}

// mostMemory bounds what decoding a picture takes, in bytes. A browser gives WebAssembly 4 GiB.
const mostMemory = 1 << 30

// width returns the bytes of a number, or 0 for a type that no input may have here.
func width(dtype string) int {
	return map[string]int{"float16": 2, "float32": 4, "float64": 8, "uint8": 1, "bool": 1, "int32": 4, "int64": 8}[dtype]
}

// floatTypes are the types that take values in float32.
var floatTypes = map[string]weights.DType{"float16": weights.F16, "float32": weights.F32, "float64": weights.F64}

// Check returns an error for a network that takes something else.
func (n Network) Check() error {
	for _, in := range n.Inputs {
		if width(in.Type) == 0 {
			return fmt.Errorf("input %q: takes %s, want float16, float32, float64, uint8, bool, int32 or int64", in.Name, in.Type)
		}
		elements := int64(1)
		for _, d := range in.Shape {
			elements *= d
		}
		if n.Picture == nil && (len(in.Shape) > 1 || elements != int64(len(in.Columns))) {
			return fmt.Errorf("input %q: %d columns, and an example has the shape %d", in.Name, len(in.Columns), in.Shape)
		}
	}
	if n.Picture != nil && len(n.Inputs) != 1 {
		return errors.New("pictures are for a network with one input")
	}
	return nil
}

// A Seen is a picture as the network sees it, before its values are normalised.
type Seen struct {
	Kind   string // of the file
	W, H   int    // before resizing
	Pixels picture.Picture
}

// Read decodes a picture and preprocesses it as score does.
func (n Network) Read(data []byte) (*Tensor, *Seen, error) {
	s := *n.Picture
	f, err := picture.Open(data)
	if err != nil {
		return nil, nil, err
	}
	f = f.Oriented(s.Orientation)
	grey := s.Planes() == 1
	if need := f.Memory(grey); need > mostMemory {
		return nil, nil, fmt.Errorf("%d×%d pixels take %d MB, and this page takes pictures of %d MB", f.W, f.H, need>>20, mostMemory>>20)
	}
	p, err := f.Decode(grey)
	if err == nil {
		p, err = s.Image.Apply(p)
	}
	if err != nil {
		return nil, nil, err
	}
	values := make([]byte, len(p.Pix))
	s.Lay(values, p)
	in := n.Inputs[0]
	t := &Tensor{in.Name, in.Type, append([]int64{1}, s.Shape()...), values}
	seen := &Seen{f.Kind(), f.W, f.H, p}
	if in.Type == "uint8" {
		return t, seen, nil
	}
	norm, err := s.Normalizer(s.Shape(), true)
	if err != nil {
		return nil, nil, err
	}
	floats := make([]float32, len(values))
	norm.Bytes(floats, values)
	t.Data = make([]byte, len(floats)*width(in.Type))
	floatTypes[in.Type].PutFloat32s(t.Data, floats)
	return t, seen, nil
}

// appendFloat appends a number in a float type.
func appendFloat(b []byte, dtype string, v float32) []byte {
	at, t := len(b), floatTypes[dtype]
	b = append(b, make([]byte, t.Size())...)
	t.PutFloat32s(b[at:], []float32{v})
	return b
}

// appendWhole appends a number in a type of whole numbers.
func appendWhole(b []byte, dtype string, v int64) []byte {
	var eight [8]byte
	binary.LittleEndian.PutUint64(eight[:], uint64(v))
	return append(b, eight[:width(dtype)]...)
}
