package wire

import (
	"bytes"
	"sort"
)

// Span is a byte range of a file.
type Span struct{ Start, End int }

// Len returns the number of bytes.
func (s Span) Len() int { return s.End - s.Start }

// Content is the content of a file, part by part. Bytes of a mapped file are not copied, so a Content is small even
// for a large file.
type Content struct {
	Parts []Part
	Size  int // in bytes, holes included
}

// A Part is a range of a file: bytes in memory, or a hole for the elements of a tensor.
type Part struct {
	Span
	Data   []byte // nil in a hole
	Tensor string // if this is a hole: the tensor that fills it
	copied bool   // added by AddCopy
}

// IsHole reports whether the part is a hole.
func (p Part) IsHole() bool { return p.Data == nil }

// ContentOf returns the content of a file in memory.
func ContentOf(data []byte) Content {
	var c Content
	c.Add(data)
	return c
}

// Add appends bytes without a copy.
func (c *Content) Add(data []byte) {
	if len(data) > 0 {
		c.Parts = append(c.Parts, Part{Span: Span{c.Size, c.Size + len(data)}, Data: data})
		c.Size += len(data)
	}
}

// AddCopy appends a copy of the bytes. It joins them with bytes that were copied right before.
func (c *Content) AddCopy(data []byte) {
	if len(data) == 0 {
		return
	}
	if k := len(c.Parts) - 1; k >= 0 && c.Parts[k].copied {
		last := &c.Parts[k]
		last.Data = append(last.Data, data...)
		last.End, c.Size = last.End+len(data), c.Size+len(data)
		return
	}
	c.Add(bytes.Clone(data))
	c.Parts[len(c.Parts)-1].copied = true
}

// AddHole appends a hole of the given number of bytes.
func (c *Content) AddHole(tensor string, bytes int) {
	if bytes > 0 {
		c.Parts = append(c.Parts, Part{Span: Span{c.Size, c.Size + bytes}, Tensor: tensor})
		c.Size += bytes
	}
}

// Append appends another content.
func (c *Content) Append(of Content) {
	for _, p := range of.Parts {
		if p.IsHole() {
			c.AddHole(p.Tensor, p.Len())
		} else {
			c.AddCopy(p.Data)
		}
	}
}

// AddStretch appends a range of another content, including holes.
func (c *Content) AddStretch(of Content, at Span) { c.addStretch(of, at, c.Add) }

func (c *Content) addStretch(of Content, at Span, add func([]byte)) {
	for i := of.find(at.Start); i < len(of.Parts) && of.Parts[i].Start < at.End; i++ {
		p := of.Parts[i]
		start, end := max(p.Start, at.Start), min(p.End, at.End)
		if p.IsHole() {
			c.AddHole(p.Tensor, end-start)
		} else {
			add(p.Data[start-p.Start : end-p.Start])
		}
	}
}

// find returns the index of the part that holds byte at.
func (c Content) find(at int) int {
	return sort.Search(len(c.Parts), func(i int) bool { return c.Parts[i].End > at })
}

// From returns the bytes of a range, up to the end of its first part.
func (c Content) From(at Span) []byte {
	i := c.find(at.Start)
	if i == len(c.Parts) || at.Start >= at.End || c.Parts[i].IsHole() {
		return nil
	}
	p := c.Parts[i]
	end := min(at.End, p.End)
	return p.Data[at.Start-p.Start : end-p.Start : end-p.Start]
}

// Copy returns a copy of a range, up to its first hole.
func (c Content) Copy(at Span) (out []byte) {
	for part := c.From(at); len(part) > 0; part = c.From(at) {
		out, at.Start = append(out, part...), at.Start+len(part)
	}
	return out
}

// Bytes returns a range that lies in one part, or false if the range contains a hole or spans several parts.
func (c Content) Bytes(at Span) ([]byte, bool) {
	b := c.From(at)
	return b, len(b) == at.Len()
}

// All returns all bytes of a content of one part, and nil for other contents.
func (c Content) All() []byte {
	if b, ok := c.Bytes(Span{0, c.Size}); ok {
		return b
	}
	return nil
}

// Hole returns the tensor that fills a range, or "" if the range is not one whole hole.
func (c Content) Hole(at Span) string {
	if i := c.find(at.Start); i < len(c.Parts) && c.Parts[i].IsHole() && c.Parts[i].Span == at {
		return c.Parts[i].Tensor
	}
	return ""
}

// absent reports whether a range lies in a hole.
func (c Content) absent(at Span) bool {
	i := c.find(at.Start)
	return i < len(c.Parts) && c.Parts[i].IsHole() && c.Parts[i].End >= at.End
}

// held returns the number of bytes outside holes.
func (c Content) held() int {
	n := 0
	for _, p := range c.Parts {
		n += len(p.Data)
	}
	return n
}
