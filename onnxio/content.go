package onnxio

import (
	"bytes"
	"sort"
)

// content is what a file holds, part by part. Bytes of a mapped file stay where
// they are: a content is small, whatever it is the content of.
type content struct {
	parts []part
	size  int // holes included
}

// A part is a stretch of a file: bytes that are at hand, or a hole where the
// elements of a tensor belong.
type part struct {
	span
	data   []byte // none in a hole
	copied bool   // by addCopy
	tensor string // of a hole: whose elements
}

func (p part) isHole() bool { return p.data == nil }

// contentOf is the content of a file that is at hand.
func contentOf(data []byte) content {
	var c content
	c.add(data)
	return c
}

// add appends bytes, which stay where they are.
func (c *content) add(data []byte) {
	if len(data) > 0 {
		c.parts = append(c.parts, part{span: span{c.size, c.size + len(data)}, data: data})
		c.size += len(data)
	}
}

// addCopy appends a copy of the bytes, in one part with what was copied right
// before them.
func (c *content) addCopy(data []byte) {
	if len(data) == 0 {
		return
	}
	if k := len(c.parts) - 1; k >= 0 && c.parts[k].copied {
		last := &c.parts[k]
		last.data = append(last.data, data...)
		last.end, c.size = last.end+len(data), c.size+len(data)
		return
	}
	c.add(bytes.Clone(data))
	c.parts[len(c.parts)-1].copied = true
}

// addHole appends a hole.
func (c *content) addHole(tensor string, bytes int) {
	if bytes > 0 {
		c.parts = append(c.parts, part{span: span{c.size, c.size + bytes}, tensor: tensor})
		c.size += bytes
	}
}

// addStretch appends a stretch of another content, its bytes by add, holes
// included.
func (c *content) addStretch(of content, at span, add func(*content, []byte)) {
	for i := of.find(at.start); i < len(of.parts) && of.parts[i].start < at.end; i++ {
		p := of.parts[i]
		start, end := max(p.start, at.start), min(p.end, at.end)
		if p.isHole() {
			c.addHole(p.tensor, end-start)
		} else {
			add(c, p.data[start-p.start:end-p.start])
		}
	}
}

// find returns the index of the part that holds byte at.
func (c content) find(at int) int {
	return sort.Search(len(c.parts), func(i int) bool { return c.parts[i].end > at })
}

// from returns the bytes of a stretch as far as its first part has them.
func (c content) from(at span) []byte {
	i := c.find(at.start)
	if i == len(c.parts) || at.start >= at.end || c.parts[i].isHole() {
		return nil
	}
	p := c.parts[i]
	end := min(at.end, p.end)
	return p.data[at.start-p.start : end-p.start : end-p.start]
}

// bytes returns a stretch that lies in one part, or false where there is a hole
// in it.
func (c content) bytes(at span) ([]byte, bool) {
	b := c.from(at)
	return b, len(b) == at.end-at.start
}

// absent reports whether a stretch lies in a hole.
func (c content) absent(at span) bool {
	i := c.find(at.start)
	return i < len(c.parts) && c.parts[i].isHole() && c.parts[i].end >= at.end
}

// held returns how many bytes are at hand.
func (c content) held() int {
	n := 0
	for _, p := range c.parts {
		n += len(p.data)
	}
	return n
}
