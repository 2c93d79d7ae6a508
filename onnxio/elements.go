package onnxio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// elements describes the place of a tensor's elements. Most lie in one piece in the model file, in the layout of
// memory; payload is that piece. Others must be decoded, or lie in another file.
type elements struct {
	inPlace  bool
	payload  wire.Span // in the model file
	decoded  []byte    // else: in the layout of memory; nil if they are not needed
	external *external // else: in another file
	// fields are the fields that give the elements, or their place. Another form replaces them all.
	fields []wire.Span
	ints   []int64 // the elements of a short list of int64, such as the shape that a Reshape takes
}

// inMemory are the fields that, when packed, hold elements in the layout of memory.
var inMemory = []wire.Number{wire.TensorRaw, wire.TensorFloat, wire.TensorDouble}

// shortList is the largest number of elements whose values ints holds.
const shortList = 8

// shortText is the largest length of a text in an attribute that is kept.
const shortText = 16

// listFields are the typed fields that, when packed, hold floats in the layout of memory (onnx.proto, TensorProto).
var listFields = map[ElemType]int{Float: wire.TensorFloat, Double: wire.TensorDouble, Float16: wire.TensorInt32, BFloat16: wire.TensorInt32}

// tensor reads a TensorProto and finds its elements.
func (s *scanner) tensor(f wire.Field, parent *wire.Message) (*Tensor, error) {
	t := &Tensor{}
	in := storage{external: external{length: -1, seen: make(map[string]bool)}}
	err := s.message(f, parent, &t.msg, func(f wire.Field) error { return s.tensorField(t, &in, f) })
	if err == nil {
		err = s.place(t, &in)
	}
	var e *Error
	switch {
	case err == nil:
		return t, nil
	case !errors.As(err, &e):
		e = &Error{Err: err}
	}
	e.Tensor = t.local
	return nil, e
}

// storage collects the fields of a tensor that give its elements, or their place.
type storage struct {
	external external
	outside  bool
	fields   []wire.Field // fields with elements, of any kind
}

func (s *scanner) tensorField(t *Tensor, in *storage, f wire.Field) (err error) {
	switch f.Num {
	case wire.TensorDims:
		if f.Type != wire.Varint { // else a single one
			err = f.Want(wire.Bytes)
		}
		return errors.Join(err, s.Varints(f, func(v uint64) error {
			t.Shape = append(t.Shape, int64(v))
			return s.Keep(wire.NameCost)
		}))
	case wire.TensorType:
		t.ElemType, err = ElemType(f.Value), f.Want(wire.Varint)
	case wire.TensorName:
		t.local, err = s.String(f)
	case wire.TensorSegment:
		err = errors.New("tensor in segments")
	case wire.TensorExternal:
		err = s.externalEntry(&in.external, f)
		t.replaces(f.Span())
	case wire.TensorLocation:
		in.outside = f.Value == 1
		t.replaces(f.Span())
	case wire.TensorRaw, wire.TensorFloat, wire.TensorInt32, wire.TensorString, wire.TensorInt64, wire.TensorDouble, wire.TensorUint64:
		in.fields = append(in.fields, f)
		err = s.Keep(wire.ItemCost / 2)
	}
	return err
}

// place records where the elements of a tensor are, once all its fields are read.
func (s *scanner) place(t *Tensor, in *storage) error {
	n, err := weights.Elements(t.Shape)
	switch {
	case err != nil:
		return err
	case in.outside && len(in.fields) > 0:
		return &Error{What: "elements both in the file and outside"}
	case in.outside:
		t.external = &in.external
		return nil
	case len(in.external.seen) > 0:
		return &Error{What: "external data, but its location is said to be the file itself"}
	}
	notOutside := t.fields
	t.fields = nil // an explicit "not outside" stays unchanged
	if t.ElemType == Int64 && n <= shortList {
		t.ints = s.shortList(in.fields)
	}
	if f := in.fields; len(f) == 1 && f[0].Type == wire.Bytes && slices.Contains(inMemory, f[0].Num) {
		t.payload = f[0].Body
	}
	if !t.IsFloat() {
		return nil
	}
	if err := s.locate(t, in.fields, n); err != nil || !t.inPlace {
		return err
	}
	t.fields = append(notOutside, in.fields[0].Span())
	return nil
}

// shortList returns the values of a few int64, or nil if they cannot be read.
func (s *scanner) shortList(fields []wire.Field) (list []int64) {
	for _, f := range fields {
		switch f.Num {
		case wire.TensorInt64:
			if s.Varints(f, func(v uint64) error { list = append(list, int64(v)); return s.Keep(wire.ItemCost / 8) }) != nil {
				return nil
			}
		case wire.TensorRaw:
			b, err := s.Bytes(f)
			if err != nil || len(b) > 8*shortList {
				return nil
			}
			for ; len(b) >= 8; b = b[8:] {
				list = append(list, int64(binary.LittleEndian.Uint64(b)))
			}
		}
	}
	return list
}

// locate finds the n elements of a float tensor in the fields with elements, and checks their number.
func (s *scanner) locate(t *Tensor, fields []wire.Field, n int64) error {
	fail := func(format string, args ...any) error { return &Error{What: fmt.Sprintf(format, args...)} }
	if len(fields) == 0 {
		if n > 0 {
			return fail("%v %v without elements", t.ElemType, t.Shape)
		}
		return nil
	}
	size := t.ElemType.DType().Size()
	num := fields[0].Num
	if slices.ContainsFunc(fields, func(f wire.Field) bool { return f.Num != num }) {
		return fail("elements in several kinds of field")
	}
	packed := len(fields) == 1 && fields[0].Type == wire.Bytes
	list := listFields[t.ElemType]
	switch {
	case num == wire.TensorRaw && packed, int(num) == list && list != wire.TensorInt32 && packed:
		t.inPlace = true
		if got := int64(t.payload.Len()); got%size != 0 || got/size != n {
			return fail("%d bytes of elements, want %d for %v %v", got, n*size, t.ElemType, t.Shape)
		}
		return nil
	case int(num) != list:
		return fail("%v elements in field %d, want raw data", t.ElemType, num)
	}
	for _, f := range fields {
		if err := s.decode(t, f); err != nil {
			return fail("%v", err)
		}
		t.replaces(f.Span())
	}
	if got := int64(len(t.decoded)); got != n*size {
		return fail("%d elements, want %d for %v %v", got/size, n, t.ElemType, t.Shape)
	}
	return nil
}

// decode appends the elements of one field, a packed list or a single element.
func (s *scanner) decode(t *Tensor, f wire.Field) error {
	b, err := s.Bytes(f)
	if err := errors.Join(err, s.Keep(len(b))); err != nil {
		return err
	}
	if f.Num != wire.TensorInt32 {
		t.decoded = append(t.decoded, b...)
		return nil
	}
	// 16-bit floats are varints, with the bits in the lower half.
	return s.Varints(f, func(v uint64) error {
		t.decoded = binary.LittleEndian.AppendUint16(t.decoded, uint16(v))
		return nil
	})
}

// replaces records a field that raw data can replace. Adjacent fields are joined.
func (t *Tensor) replaces(at wire.Span) {
	if k := len(t.fields); k > 0 && t.fields[k-1].End == at.Start {
		t.fields[k-1].End = at.End
		return
	}
	t.fields = append(t.fields, at)
}

// Elements returns a tensor's elements in the layout of memory, little-endian, or nil if they are not available: see
// [Model.Readable]. They are valid until the model is closed.
func (m *Model) Elements(t *Tensor) []byte {
	if _, ok := m.held[t]; ok {
		return m.Stretch(t, 0, t.Len())
	}
	return m.own(t)
}

// own returns the elements in the model's own files.
func (m *Model) own(t *Tensor) []byte {
	switch {
	case t.external != nil:
		return t.external.data
	case t.inPlace:
		b, _ := m.data.Bytes(t.payload)
		return b
	}
	return t.decoded
}

// bytes returns the length of the elements, available or not. It is 0 for those in a file that was not given.
func (e *elements) bytes() int {
	switch {
	case e.external != nil && e.external.found:
		return int(e.external.length)
	case e.inPlace:
		return e.payload.Len()
	}
	return len(e.decoded)
}

// IsFloat reports whether a flat vector can hold the elements.
func (t *Tensor) IsFloat() bool { return t.ElemType.DType().IsFloat() }

// located returns an error if a tensor's elements lie in a file that was not given.
func (m *Model) located(t *Tensor) error {
	if t.external != nil && !t.external.found && t.Len() > 0 {
		return &Error{
			Path:   m.Path,
			Tensor: t.Name,
			What:   fmt.Sprintf("its elements are in another file, %q, which was not given", t.external.location),
		}
	}
	return nil
}

// Readable returns an error if a tensor's elements cannot be read.
func (m *Model) Readable(t *Tensor) error {
	if err := m.located(t); err != nil {
		return err
	}
	if _, ok := m.held[t]; !ok && t.bytes() > 0 && m.own(t) == nil {
		return &Error{Path: m.Path, Tensor: t.Name, What: "was cut out of the model"}
	}
	return nil
}
