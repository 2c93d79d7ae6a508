package wire

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Splice replaces a byte range, inside message In, by other bytes. The elements of a tensor may follow them: given
// ones, or a hole.
type Splice struct {
	At       Span
	With     []byte
	In       *Message
	Elements []byte
	Hole     string // the tensor's name
	Bytes    int    // length of the hole; 0 where there is none
}

// Apply returns a file with the splices applied, without a copy. If two splices overlap, it also returns the later
// one.
func Apply(data Content, splices []Splice) (Content, *Splice) {
	var file Content
	overlap := file.apply(data, splices, file.Add)
	return file, overlap
}

// ApplyInMessages is Apply for a file of messages, whose length prefixes are rewritten. Everything except large
// elements is copied into one part.
func ApplyInMessages(data Content, splices []Splice) (Content, *Splice) {
	var file Content
	overlap := file.apply(data, slices.Concat(splices, prefixes(splices)), file.AddCopy)
	return file, overlap
}

// small elements are copied with the bytes around them. The constant of a node is read as a whole.
const small = 4096

// apply adds the bytes between the splices, and the splices' own bytes, by add.
func (c *Content) apply(data Content, splices []Splice, add func([]byte)) (overlap *Splice) {
	// At the same place, bytes appended to a node come before those that follow the node.
	slices.SortStableFunc(splices, func(a, b Splice) int {
		return cmp.Or(cmp.Compare(a.At.Start, b.At.Start), cmp.Compare(b.In.depth(), a.In.depth()))
	})
	at := 0
	for _, s := range splices {
		if s.At.End == 0 { // nothing to do
			continue
		}
		if s.At.Start < at {
			return &s
		}
		c.addStretch(data, Span{at, s.At.Start}, add)
		add(s.With)
		if len(s.Elements) < small {
			add(s.Elements)
		} else {
			c.Add(s.Elements)
		}
		c.AddHole(s.Hole, s.Bytes)
		at = s.At.End
	}
	c.addStretch(data, Span{at, data.Size}, add)
	return nil
}

// prefixes returns the splices that rewrite the length prefixes around the
// given ones.
func prefixes(splices []Splice) []Splice {
	growth := make(map[*Message]int)
	var around []*Message
	for _, s := range splices {
		for m := s.In; m != nil; m = m.Parent {
			if _, seen := growth[m]; !seen {
				growth[m] = 0
				around = append(around, m)
			}
		}
		growth[s.In] += len(s.With) + len(s.Elements) + s.Bytes - s.At.Len()
	}
	// The innermost come first, since a longer prefix makes the surrounding message grow.
	slices.SortStableFunc(around, func(a, b *Message) int { return cmp.Compare(b.depth(), a.depth()) })
	var out []Splice
	for _, m := range around {
		if m.Parent == nil || growth[m] == 0 {
			continue
		}
		prefix := protowire.AppendVarint(nil, uint64(m.Body.Len()+growth[m]))
		old := Span{m.Length, m.Body.Start}
		growth[m.Parent] += growth[m] + len(prefix) - old.Len()
		out = append(out, Splice{At: old, With: prefix, In: m.Parent})
	}
	return out
}

// AppendVarint appends an integer field.
func AppendVarint(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

// AppendFloat appends a float field.
func AppendFloat(b []byte, num protowire.Number, v float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(b, num, protowire.Fixed32Type), math.Float32bits(v))
}

// AppendString appends a string field.
func AppendString(b []byte, num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

// AppendBytes appends a field of bytes, such as an encoded message.
func AppendBytes(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

// AppendPrefix appends tag and length of a field whose bytes follow elsewhere.
func AppendPrefix(b []byte, num protowire.Number, length int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.BytesType), uint64(length))
}
