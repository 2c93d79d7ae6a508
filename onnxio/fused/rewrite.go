package fused

import (
	"fmt"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// renaming maps the names in a member's nodes to the names in the fused model.
type renaming struct {
	*Network
	scan   *wire.Scanner
	prefix string            // begins the names of the member's own values
	known  map[string]string // names of shared values: the input, and tensors
	calls  map[[2]string]string
}

// of returns the new name of a value.
func (r *renaming) of(name string) string {
	if name == "" || r.prefix == "" { // an omitted optional input, or a name inside a function
		return name
	}
	if s, ok := r.known[name]; ok {
		return s
	}
	if owner, ok := r.tied[name]; ok {
		name = owner
	}
	return r.prefix + name
}

// define is of for a value that the main graph or one inside it defines. It must not hide a value of a surrounding
// graph.
func (r *renaming) define(name string) (string, error) {
	if _, shared := r.known[name]; shared && name != "" {
		return "", fmt.Errorf("tensor %q: an inner graph uses the name for something else", name)
	}
	return r.of(name), nil
}

// node returns a node of the member. It leaves out what exporters note about their source in documentation and
// metadata, because every member would repeat it.
func (r *renaming) node(at wire.Span) (wire.Content, error) {
	var c wire.Content
	op, domain := "", ""
	err := r.scan.Fields(at, func(f wire.Field) error {
		switch f.Num {
		case wire.NodeDoc, wire.NodeMetadata:
			return nil
		case wire.NodeInput, wire.NodeOutput, wire.NodeName, wire.NodeOpType, wire.NodeDomain:
			s, err := r.scan.String(f)
			if err != nil {
				return err
			}
			switch f.Num {
			case wire.NodeInput:
				s = r.of(s)
			case wire.NodeOutput:
				s, err = r.define(s)
			case wire.NodeName:
				s = r.prefix + s
			case wire.NodeOpType:
				op = s
				return nil
			case wire.NodeDomain:
				domain = s
			}
			c.AddCopy(wire.AppendString(nil, f.Num, s))
			return err
		case wire.NodeAttribute:
			return r.attribute(&c, f)
		}
		c.AddStretch(r.content, f.Span())
		return nil
	})
	if s, ok := r.calls[[2]string{domain, op}]; ok {
		op = s
	}
	c.AddCopy(wire.AppendString(nil, wire.NodeOpType, op))
	return c, err
}

func (r *renaming) attribute(c *wire.Content, f wire.Field) error {
	var inner wire.Content
	err := r.scan.Fields(f.Body, func(f wire.Field) error {
		if f.Num != wire.AttrGraph && f.Num != wire.AttrGraphs {
			inner.AddStretch(r.content, f.Span())
			return nil
		}
		g, err := r.graph(f.Body)
		enclose(&inner, f.Num, g)
		return err
	})
	enclose(c, f.Num, inner)
	return err
}

// enclose appends a field that holds a message.
func enclose(c *wire.Content, num wire.Number, message wire.Content) {
	c.AddCopy(wire.AppendPrefix(nil, num, message.Size))
	c.Append(message)
}

// graph returns a graph inside a node.
func (r *renaming) graph(at wire.Span) (wire.Content, error) {
	var c wire.Content
	err := r.scan.Fields(at, func(f wire.Field) error {
		var inner wire.Content
		var err error
		switch f.Num {
		case wire.GraphValueInfo, wire.GraphQuantization, wire.GraphDoc, wire.GraphMetadata: // about names that no longer exist
			return nil
		case wire.GraphNode:
			inner, err = r.node(f.Body)
		case wire.GraphInput, wire.GraphInitializer:
			inner, err = r.named(f, r.define)
		case wire.GraphOutput:
			inner, err = r.named(f, func(s string) (string, error) { return r.of(s), nil })
		default:
			c.AddStretch(r.content, f.Span())
			return nil
		}
		enclose(&c, f.Num, inner)
		return err
	})
	return c, err
}

// named returns a value or a tensor under its new name.
func (r *renaming) named(f wire.Field, rename func(string) (string, error)) (wire.Content, error) {
	num := wire.Number(wire.ValueName)
	if f.Num == wire.GraphInitializer {
		num = wire.TensorName
	}
	var c wire.Content
	err := r.scan.Fields(f.Body, func(f wire.Field) error {
		if f.Num != num {
			c.AddStretch(r.content, f.Span())
			return nil
		}
		s, err := r.scan.String(f)
		if err != nil {
			return err
		}
		s, err = rename(s)
		c.AddCopy(wire.AppendString(nil, num, s))
		return err
	})
	return c, err
}

// function returns a model-local function under its new name.
func (r *renaming) function(fn *onnxio.Graph) (wire.Content, error) {
	var c wire.Content
	err := r.scan.Fields(fn.Body(), func(f wire.Field) error {
		switch f.Num {
		case wire.FunctionName:
			c.AddCopy(wire.AppendString(nil, wire.FunctionName, r.calls[[2]string{fn.Domain, fn.Name}]))
		case wire.FunctionNode:
			inner, err := r.call(f.Body)
			enclose(&c, f.Num, inner)
			return err
		default:
			c.AddStretch(r.content, f.Span())
		}
		return nil
	})
	return c, err
}

// call returns a node of a function, which may call another function. Its names belong to the function, and do not
// change.
func (r *renaming) call(at wire.Span) (wire.Content, error) {
	plain := *r
	plain.prefix, plain.known = "", nil
	return plain.node(at)
}
