package wire

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// A scan may keep keepBase bytes plus keepPerByte for each byte of the file. The costs below are rough: an empty node
// takes five bytes of a file and three hundred of memory. A real graph of 100,000 nodes has 16 MB and costs 110 MB.
// Its weights may be elsewhere, and do not count.
const (
	keepBase    = 40 << 20
	keepPerByte = 5
	itemCost    = 320

	ItemCost = itemCost // of a message that is kept, such as a graph, node, attribute, value or tensor
	NameCost = 112      // of a name, a dimension or a field, while their list grows
)

// The wire types of fields in ONNX.
const (
	Varint  = protowire.VarintType
	Fixed32 = protowire.Fixed32Type
	Bytes   = protowire.BytesType
)

// Number is the number of a field.
type Number = protowire.Number

// Field is one field of a message, with absolute offsets into the file.
type Field struct {
	Num    protowire.Number
	Type   protowire.Type
	Tag    int    // offset of the tag
	Length int    // offset of the length prefix (Bytes)
	Body   Span   // the value's bytes
	Value  uint64 // of Varint and of fixed types
}

// Span returns the field's bytes, tag included.
func (f Field) Span() Span { return Span{f.Tag, f.Body.End} }

// Want checks the field's wire type.
func (f Field) Want(t protowire.Type) error {
	if f.Type != t {
		return fmt.Errorf("byte %d: field %d has wire type %d, want %d", f.Tag, f.Num, f.Type, t)
	}
	return nil
}

// Message is a length-delimited field that holds other fields. Its length
// prefix must change when something inside it grows or shrinks.
type Message struct {
	Parent *Message
	Tag    int // offset of the field's tag; for the file itself 0
	Length int // offset of the length prefix; for the file itself −1
	Body   Span
}

// Span returns the message's bytes as a field, tag included.
func (m *Message) Span() Span { return Span{m.Tag, m.Body.End} }

func (m *Message) depth() int {
	d := 0
	for ; m != nil; m = m.Parent {
		d++
	}
	return d
}

// Scanner walks the fields of a file, and accounts for the memory that they keep.
type Scanner struct {
	data Content
	held int // bytes of data outside holes
	kept int
}

// NewScanner returns a scanner of a file.
func NewScanner(data Content) *Scanner { return &Scanner{data: data, held: data.held()} }

// Keep accounts for something that will be kept, of the given cost. It fails if the total is out of proportion to the
// file.
func (s *Scanner) Keep(cost int) error {
	s.kept += cost
	return s.room(0)
}

func (s *Scanner) room(cost int) error {
	if s.kept+cost > keepBase+keepPerByte*s.held {
		return fmt.Errorf("too many nodes, tensors and names for a file of %d bytes", s.held)
	}
	return nil
}

// Count returns how many fields with the given number a message has, so that a list of them gets the right size at once.
// It fails as [Scanner.Keep] would for all of them.
func (s *Scanner) Count(f Field, num protowire.Number) (int, error) {
	n := 0
	err := s.Within(f, func(f Field) error {
		if f.Num == num {
			n++
		}
		return nil
	})
	return n, errors.Join(err, s.room(n*itemCost))
}

// Enter returns the message in the field, which will be kept.
func (s *Scanner) Enter(f Field, parent *Message) (*Message, error) {
	if err := s.Keep(itemCost); err != nil {
		return nil, err
	}
	if err := f.Want(Bytes); err != nil {
		return nil, err
	}
	return &Message{Parent: parent, Tag: f.Tag, Length: f.Length, Body: f.Body}, nil
}

// Fields calls do for each field of a message's body.
func (s *Scanner) Fields(body Span, do func(Field) error) error {
	for at := body.Start; at < body.End; {
		f, err := s.field(Span{at, body.End})
		if err != nil {
			return err
		}
		at = f.Body.End
		if err := do(f); err != nil {
			return err
		}
	}
	return nil
}

// Within calls do for each field of the message in a field.
func (s *Scanner) Within(f Field, do func(Field) error) error {
	if err := f.Want(Bytes); err != nil {
		return err
	}
	return s.Fields(f.Body, do)
}

// Entry returns the key and the value in a field, a StringStringEntryProto.
func (s *Scanner) Entry(f Field) (key, value string, err error) {
	err = s.Within(f, func(f Field) (err error) {
		switch f.Num {
		case entryKey:
			key, err = s.String(f)
		case entryValue:
			value, err = s.String(f)
		}
		return err
	})
	return key, value, err
}

// field reads the first field of a range.
func (s *Scanner) field(rest Span) (Field, error) {
	b := s.data.From(rest)
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 {
		return Field{}, fmt.Errorf("byte %d: %w", rest.Start, wireError(n))
	}
	f := Field{Num: num, Type: typ, Tag: rest.Start, Length: rest.Start + n}
	at := f.Length
	b = b[n:]
	length := 0 // length of the bytes after a length prefix, which may be a hole
	switch typ {
	case protowire.VarintType:
		f.Value, n = protowire.ConsumeVarint(b)
	case protowire.Fixed32Type:
		if s.data.absent(Span{at, at + 4}) {
			n = 4
			break
		}
		var v uint32
		v, n = protowire.ConsumeFixed32(b)
		f.Value = uint64(v)
	case protowire.Fixed64Type:
		f.Value, n = protowire.ConsumeFixed64(b)
	case protowire.BytesType:
		var v uint64
		if v, n = protowire.ConsumeVarint(b); n >= 0 {
			if v > uint64(rest.End-at-n) {
				return f, fmt.Errorf("byte %d: field %d: %w", at, num, errTruncated)
			}
			at, length, n = at+n, int(v), 0
		}
	default: // groups are not used by onnx.proto
		n = protowire.ConsumeFieldValue(num, typ, b)
	}
	if n < 0 {
		return f, fmt.Errorf("byte %d: field %d: %w", at, num, wireError(n))
	}
	f.Body = Span{at, at + n + length}
	return f, nil
}

var errTruncated = errors.New("the file ends in the middle of a field: truncated, or not protobuf")

// wireError explains a protowire failure in words a user can act on.
func wireError(n int) error {
	err := protowire.ParseError(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}

// Bytes returns the body of a field.
func (s *Scanner) Bytes(f Field) ([]byte, error) {
	b, ok := s.data.Bytes(f.Body)
	if !ok {
		return nil, fmt.Errorf("byte %d: field %d: has a hole for weights in it", f.Tag, f.Num)
	}
	return b, nil
}

// String returns the body of a field that is a string.
func (s *Scanner) String(f Field) (string, error) {
	if err := f.Want(Bytes); err != nil {
		return "", err
	}
	b, err := s.Bytes(f)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", fmt.Errorf("byte %d: field %d: not UTF-8", f.Tag, f.Num)
	}
	return string(b), nil
}

// Varints calls do for the integers of a field: a packed list, or a single one.
func (s *Scanner) Varints(f Field, do func(uint64) error) error {
	b, err := s.Bytes(f)
	for err == nil && len(b) > 0 {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return wireError(n)
		}
		b, err = b[n:], do(v)
	}
	return err
}
