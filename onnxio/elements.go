package onnxio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// elements says where a tensor's elements are. Most lie in one piece in the
// model file, as they lie in memory; then payload is where. Others must be
// decoded, or lie in another file.
type elements struct {
	inPlace  bool
	payload  span      // inPlace: in the model file
	decoded  []byte    // else: as they would lie in memory; nil where they were not wanted
	external *external // else: in another file
	// fields are the fields that say what or where the elements are: what another
	// way of saying it replaces.
	fields []span
}

// elementSizes are the bytes of one element, by type. Types of less than a byte
// are left out.
var elementSizes = map[ElemType]int64{
	1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 14: 8, 15: 16, 16: 2, 17: 1, 18: 1, 19: 1, 20: 1,
}

// listFields are the typed fields that hold floats as they lie in memory when
// packed (onnx.proto, TensorProto).
var listFields = map[ElemType]protowire.Number{Float: tensorFloat, Double: tensorDouble, Float16: tensorInt32, BFloat16: tensorInt32}

// locate finds the n elements of a float tensor among the fields that hold
// elements, and checks their number.
func (s *scanner) locate(t *Tensor, fields []field, n int64) error {
	fail := func(format string, args ...any) error {
		return &Error{Tensor: t.local, What: fmt.Sprintf(format, args...)}
	}
	if len(fields) == 0 {
		if n > 0 {
			return fail("%v %v without elements", t.ElemType, t.Shape)
		}
		return nil
	}
	size := t.ElemType.DType().Size()
	num := fields[0].num
	if slices.ContainsFunc(fields, func(f field) bool { return f.num != num }) {
		return fail("elements in several kinds of field")
	}
	packed := len(fields) == 1 && fields[0].typ == protowire.BytesType
	list := listFields[t.ElemType]
	switch {
	case num == tensorRaw && packed, num == list && list != tensorInt32 && packed:
		t.inPlace, t.payload = true, fields[0].body
		if got := int64(t.payload.end - t.payload.start); got%size != 0 || got/size != n {
			return fail("%d bytes of elements, want %d for %v %v", got, n*size, t.ElemType, t.Shape)
		}
		return nil
	case num != list:
		return fail("%v elements in field %d, want raw data", t.ElemType, num)
	}
	for _, f := range fields {
		var err error
		if t.decoded, err = s.decode(t.decoded, f, num); err != nil {
			return fail("%v", err)
		}
		t.replaces(span{f.tag, f.body.end})
	}
	if got := int64(len(t.decoded)); got != n*size {
		return fail("%d elements, want %d for %v %v", got/size, n, t.ElemType, t.Shape)
	}
	return nil
}

// decode appends the elements of one field, a packed list or a single element.
func (s *scanner) decode(dst []byte, f field, num protowire.Number) ([]byte, error) {
	b, err := s.bytes(f)
	if err := errors.Join(err, s.keep(len(b))); err != nil {
		return nil, err
	}
	if num != tensorInt32 {
		return append(dst, b...), nil
	}
	// 16-bit floats: a varint each, with the bits in its lower half.
	for len(b) > 0 {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, wireError(n)
		}
		dst, b = binary.LittleEndian.AppendUint16(dst, uint16(v)), b[n:]
	}
	return dst, nil
}

// replaces notes a field that raw data can stand in for. Neighbours become one.
func (t *Tensor) replaces(at span) {
	if k := len(t.fields); k > 0 && t.fields[k-1].end == at.start {
		t.fields[k-1].end = at.end
		return
	}
	t.fields = append(t.fields, at)
}

// elements returns the tensor's elements as they lie in memory, or nil where they
// are not at hand.
func (m *Model) elements(t *Tensor) []byte {
	switch {
	case t.external != nil:
		return t.external.data
	case t.inPlace:
		b, _ := m.data.bytes(t.payload)
		return b
	}
	return t.decoded
}

// bytes returns the length of the elements, at hand or not. It is 0 for those
// in a file that was not given.
func (e *elements) bytes() int {
	switch {
	case e.external != nil && e.external.found:
		return int(e.external.length)
	case e.inPlace:
		return e.payload.end - e.payload.start
	}
	return len(e.decoded)
}

// located reports, as an error, that a tensor's elements lie in a file that was
// not given.
func (m *Model) located(t *Tensor) error {
	if t.external != nil && !t.external.found && t.Len() > 0 {
		return &Error{Path: m.Path, Tensor: t.Name, What: fmt.Sprintf("its elements are in another file, %q, which was not given", t.external.location)}
	}
	return nil
}

// readable reports, as an error, why a tensor's elements cannot be read.
func (m *Model) readable(t *Tensor) error {
	if err := m.located(t); err != nil {
		return err
	}
	if t.bytes() > 0 && m.elements(t) == nil {
		return &Error{Path: m.Path, Tensor: t.Name, What: "was cut out of the model"}
	}
	return nil
}
