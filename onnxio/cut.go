package onnxio

import (
	"fmt"
	"maps"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// A cutter cuts an edited model into the files of a template.
type cutter struct {
	m     *Model
	move  move
	model []wire.Splice            // changes to the model's file
	files map[string][]wire.Splice // changes to its data files, by name
	// newFile is a new data file for the elements that move out of the model.
	newName string
	newFile wire.Content
}

// tensor handles the elements of t. If fill is set, it cuts them out as a hole for the named tensor. If they change
// files, it moves them.
func (c *cutter) tensor(t *Tensor, name string, fill bool) error {
	if t.Len() == 0 && t.external == nil {
		return nil
	}
	cut := wire.Splice{In: t.msg}
	_, held := c.m.held[t]
	switch {
	case fill:
		cut.Hole, cut.Bytes = name, t.bytes()
	case held:
		cut.Elements = c.m.Elements(t)
	}
	switch x := t.external; {
	case x != nil && c.move != moveIn:
		if fill || held {
			cut.At = wire.Span{Start: int(x.offset), End: int(x.offset) + t.bytes()}
		} else {
			cut = wire.Splice{} // lists the file without a change
		}
		c.files[x.location] = append(c.files[x.location], cut)
	case t.inPlace && c.move == moveOut && t.bytes() >= pageSize && t.msg.Parent == c.m.Graph.msg: // an initializer of the main graph
		c.putOutside(t, cut)
	case t.inPlace && (fill || held):
		cut.At = t.payload
		c.model = append(c.model, cut)
	case t.inPlace:
		if large, ok := c.m.data.Bytes(t.payload); ok && len(large) >= pageSize {
			cut.At, cut.Elements = t.payload, large // so they are not copied
			c.model = append(c.model, cut)
		}
	case x != nil || fill || held:
		if !fill && !held {
			if err := c.m.Readable(t); err != nil {
				return err
			}
			cut.Elements = c.m.Elements(t)
		}
		cut.With = wire.AppendPrefix(nil, wire.TensorRaw, t.bytes())
		c.replace(t, cut)
	}
	return nil
}

// replace replaces the fields that give the elements, or their place, by another form.
func (c *cutter) replace(t *Tensor, by wire.Splice) {
	for i, at := range t.fields {
		by.At = at
		if i > 0 {
			by = wire.Splice{At: at, In: t.msg}
		}
		c.model = append(c.model, by)
	}
}

// pageSize is the page size of most systems. Elements that will be mapped start on their own page.
const pageSize = 4096

// putOutside moves the elements of t into the new data file.
func (c *cutter) putOutside(t *Tensor, cut wire.Splice) {
	if tail := c.newFile.Size % pageSize; tail > 0 {
		c.newFile.Add(make([]byte, pageSize-tail))
	}
	c.replace(t, wire.Splice{In: t.msg, With: wire.AppendOutside(nil, c.newName, int64(c.newFile.Size), int64(t.bytes()))})
	switch {
	case cut.Bytes > 0:
		c.newFile.AddHole(cut.Hole, cut.Bytes)
	case cut.Elements != nil:
		c.newFile.Add(cut.Elements)
	default:
		c.newFile.AddStretch(c.m.data, t.payload)
	}
}

func (c *cutter) template() (*Template, error) {
	base := c.m.fileName()
	main, overlap := wire.ApplyInMessages(c.m.data, c.model)
	if overlap != nil {
		return nil, c.conflict(base, overlap)
	}
	tpl := &Template{files: []templateFile{{base, main}}, release: c.m.Release}
	for _, location := range slices.Sorted(maps.Keys(c.files)) {
		file, overlap := wire.Apply(c.m.files[location], c.files[location])
		if overlap != nil {
			return nil, c.conflict(location, overlap)
		}
		tpl.files = append(tpl.files, templateFile{location, file})
	}
	if c.newFile.Size > 0 {
		tpl.files = append(tpl.files, templateFile{c.newName, c.newFile})
	}
	return tpl, nil
}

func (c *cutter) conflict(file string, s *wire.Splice) error {
	return &Error{Path: c.m.Path, Tensor: s.Hole, What: fmt.Sprintf("shares byte %d of %s with another tensor or edit", s.At.Start, file)}
}
