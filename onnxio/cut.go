package onnxio

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// A cutter takes an edited model apart into the files of a template.
type cutter struct {
	m     *Model
	move  move
	model []splice            // of the model's file
	files map[string][]splice // of its data files
	// A new data file takes the elements that move out of the model.
	newName string
	newFile content
}

// tensor cuts the elements of t out, where fill is set, as those of the named
// tensor; where they change files, it moves them.
func (c *cutter) tensor(t *Tensor, name string, fill bool) error {
	if t.Len() == 0 && t.external == nil {
		return nil
	}
	cut := splice{in: t.msg}
	if fill {
		cut.hole, cut.bytes = name, t.bytes()
	}
	switch x := t.external; {
	case x != nil && c.move != moveIn:
		if cut.bytes > 0 {
			cut.at = span{int(x.offset), int(x.offset) + cut.bytes}
		} else {
			cut = splice{} // so that the file is listed
		}
		c.files[x.location] = append(c.files[x.location], cut)
	case t.inPlace && c.move == moveOut && c.movable(t):
		c.putOutside(t, cut)
	case t.inPlace && fill:
		cut.at = t.payload
		c.model = append(c.model, cut)
	case t.inPlace:
		if large, ok := c.m.data.bytes(t.payload); ok && len(large) >= pageSize {
			cut.at, cut.elements = t.payload, large // which are not copied then
			c.model = append(c.model, cut)
		}
	case x != nil || fill:
		if !fill {
			if err := c.m.readable(t); err != nil {
				return err
			}
			cut.elements = c.m.elements(t)
		}
		cut.with = protowire.AppendVarint(protowire.AppendTag(nil, tensorRaw, protowire.BytesType), uint64(t.bytes()))
		c.replace(t, cut)
	}
	return nil
}

// replace puts another way of holding elements in the place of the fields that
// said where they are.
func (c *cutter) replace(t *Tensor, by splice) {
	for i, at := range t.fields {
		by.at = at
		if i > 0 {
			by = splice{at: at, in: t.msg}
		}
		c.model = append(c.model, by)
	}
}

// pageSize is that of most systems. Elements that are to be mapped start on a
// page of their own.
const pageSize = 4096

// movable reports whether the elements of t can move out of the model: those of
// an initializer of the main graph that fill a page.
func (c *cutter) movable(t *Tensor) bool {
	return t.bytes() >= pageSize && t.msg.parent == c.m.Graph.msg
}

// putOutside moves the elements of t into the new data file.
func (c *cutter) putOutside(t *Tensor, cut splice) {
	if tail := c.newFile.size % pageSize; tail > 0 {
		c.newFile.add(make([]byte, pageSize-tail))
	}
	with := slices.Concat(encodeEntry("location", c.newName),
		encodeEntry("offset", strconv.Itoa(c.newFile.size)), encodeEntry("length", strconv.Itoa(t.bytes())))
	with = protowire.AppendVarint(protowire.AppendTag(with, tensorLocation, protowire.VarintType), 1)
	c.replace(t, splice{in: t.msg, with: with})
	if cut.bytes > 0 {
		c.newFile.addHole(cut.hole, cut.bytes)
	} else {
		c.newFile.addStretch(c.m.data, t.payload, (*content).add)
	}
}

func (c *cutter) template() (*Template, error) {
	base := filepath.Base(c.m.Path)
	main, err := c.cut(base, c.m.data, slices.Concat(c.model, prefixes(c.model)), (*content).addCopy)
	if err != nil {
		return nil, err
	}
	tpl := &Template{files: []templateFile{{base, main}}, release: c.m.Release}
	for _, location := range slices.Sorted(maps.Keys(c.files)) {
		file, err := c.cut(location, c.m.files[location], c.files[location], (*content).add)
		if err != nil {
			return nil, err
		}
		tpl.files = append(tpl.files, templateFile{location, file})
	}
	if c.newFile.size > 0 {
		tpl.files = append(tpl.files, templateFile{c.newName, c.newFile})
	}
	return tpl, nil
}

// cut applies the splices to what a file holds. The bytes between them are
// added by add: a message is copied, so that all of it is in one part but for
// large elements.
func (c *cutter) cut(name string, data content, cuts []splice, add func(*content, []byte)) (content, error) {
	// At one place, what is appended to a node comes before what follows the node.
	slices.SortStableFunc(cuts, func(a, b splice) int {
		return cmp.Or(cmp.Compare(a.at.start, b.at.start), cmp.Compare(b.in.depth(), a.in.depth()))
	})
	var file content
	at := 0
	for _, s := range cuts {
		if s.at.end == 0 { // nothing to do
			continue
		}
		if s.at.start < at {
			return file, &Error{Path: c.m.Path, Tensor: s.hole, What: fmt.Sprintf("shares byte %d of %s with another tensor or edit", s.at.start, name)}
		}
		file.addStretch(data, span{at, s.at.start}, add)
		add(&file, s.with)
		file.add(s.elements)
		file.addHole(s.hole, s.bytes)
		at = s.at.end
	}
	file.addStretch(data, span{at, data.size}, add)
	return file, nil
}

// prefixes returns the splices that rewrite the length prefixes around the
// given ones.
func prefixes(splices []splice) []splice {
	growth := make(map[*message]int)
	var around []*message
	for _, s := range splices {
		for m := s.in; m != nil; m = m.parent {
			if _, seen := growth[m]; !seen {
				growth[m] = 0
				around = append(around, m)
			}
		}
		growth[s.in] += len(s.with) + len(s.elements) + s.bytes - (s.at.end - s.at.start)
	}
	// Innermost first, since a longer prefix makes the message around it grow.
	slices.SortStableFunc(around, func(a, b *message) int { return cmp.Compare(b.depth(), a.depth()) })
	var out []splice
	for _, m := range around {
		if m.parent == nil || growth[m] == 0 {
			continue
		}
		prefix := protowire.AppendVarint(nil, uint64(m.end-m.start+growth[m]))
		old := span{m.length, m.start}
		growth[m.parent] += growth[m] + len(prefix) - (old.end - old.start)
		out = append(out, splice{at: old, with: prefix, in: m.parent})
	}
	return out
}

func (m *message) depth() int {
	d := 0
	for ; m != nil; m = m.parent {
		d++
	}
	return d
}
