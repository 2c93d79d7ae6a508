package fused

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// Largest is the size of the largest model file: protobuf's limit.
const Largest = math.MaxInt32

// pageSize is the page size of most systems. Elements that will be mapped start on their own page. Elements that fill
// no page stay in the model.
const pageSize = 4096

// DataName returns the name of a model's file of elements.
func DataName(model string) string { return model + ".data" }

// Size returns the sizes of the model's file and of the file with its elements, which is 0 if there is none. name is
// the model file's name.
func (m *Model) Size(name string) (model, data int64, err error) {
	s := &sink{data: DataName(name)}
	if err := m.graph(s, measured(m)); err != nil {
		return 0, 0, err
	}
	header, err := m.header(s.length)
	return int64(len(header)) + s.length, s.at, err
}

// Members calls do with the parameters of each member, in the order of the model's members.
type Members func(do func(parameters weights.Vector) error) error

// Write writes the model and, if it has one, the file of elements. create opens both. name is the model file's name.
func (m *Model) Write(name string, create func(file string) (io.Writer, error), members Members) error {
	plan := &sink{data: DataName(name)}
	if err := m.graph(plan, measured(m)); err != nil {
		return err
	}
	header, err := m.header(plan.length)
	if err != nil {
		return err
	}
	if size := int64(len(header)) + plan.length; size > Largest {
		return fmt.Errorf("%s: %d bytes, and protobuf stops at 2 GiB", name, size)
	}
	s := &sink{data: plan.data}
	if plan.at > 0 {
		if s.outside, err = create(s.data); err != nil {
			return err
		}
	}
	if s.model, err = create(name); err != nil {
		return err
	}
	if _, err := s.model.Write(header); err != nil {
		return err
	}
	if err := m.graph(s, members); err != nil {
		return err
	}
	if s.length != plan.length || s.at != plan.at {
		return fmt.Errorf("%s: %d and %d bytes written, want %d and %d", name, s.length, s.at, plan.length, plan.at)
	}
	return nil
}

// measured calls do for each member, without parameters.
func measured(m *Model) Members {
	return func(do func(weights.Vector) error) error {
		for range m.members {
			if err := do(nil); err != nil {
				return err
			}
		}
		return nil
	}
}

// A sink takes a model's bytes. It only counts them if there is no writer.
type sink struct {
	model, outside io.Writer
	length, at     int64  // bytes in either so far
	data           string // name of the file outside
}

func (s *sink) write(b []byte) error {
	s.length += int64(len(b))
	if s.model == nil {
		return nil
	}
	_, err := s.model.Write(b)
	return err
}

// elements adds size bytes that write writes.
func (s *sink) elements(size int64, write func(io.Writer) error) error {
	s.length += size
	if s.model == nil {
		return nil
	}
	return write(s.model)
}

// initializer adds a tensor to the graph. Its elements go outside if external is set and they fill a page.
func (s *sink) initializer(external bool, name string, elem onnxio.ElemType, shape []int64, size int64, write func(io.Writer) error) error {
	body := wire.TensorHeader(name, elem, shape)
	if external && size >= pageSize {
		pad := -s.at & (pageSize - 1)
		s.at += pad
		body = wire.AppendOutside(body, s.data, s.at, size)
		s.at += size
		if s.outside != nil {
			if _, err := s.outside.Write(make([]byte, pad)); err != nil {
				return err
			}
			if err := write(s.outside); err != nil {
				return err
			}
		}
		return s.write(wire.AppendBytes(nil, wire.GraphInitializer, body))
	}
	body = wire.AppendPrefix(body, wire.TensorRaw, int(size))
	if err := s.write(append(wire.AppendPrefix(nil, wire.GraphInitializer, len(body)+int(size)), body...)); err != nil {
		return err
	}
	return s.elements(size, write)
}

// content adds rewritten fields. fill writes the elements in their holes.
func (s *sink) content(c wire.Content, fill func(w io.Writer, tensor string) error) error {
	for _, p := range c.Parts {
		var err error
		if p.IsHole() {
			err = s.elements(int64(p.Len()), func(w io.Writer) error { return fill(w, p.Tensor) })
		} else {
			err = s.write(p.Data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// header returns the beginning of the ModelProto, up to its graph, which has the given size.
func (m *Model) header(graph int64) ([]byte, error) {
	b := wire.AppendVarint(nil, wire.ModelIR, uint64(m.ir))
	b = wire.AppendString(b, wire.ModelProducer, m.opts.Producer)
	b = wire.AppendString(b, wire.ModelProducerVersion, m.opts.Version)
	b = append(b, encodeOpsets(m.opsets)...)
	b = onnxio.AppendMetadata(b, m.opts.Metadata)
	for _, fn := range m.functions {
		n := m.networks[fn.network]
		r := &renaming{Network: n, scan: wire.NewScanner(n.content), calls: m.calls[fn.network]}
		c, err := r.function(fn.Graph)
		if err != nil {
			return nil, n.fail("", err)
		}
		b = wire.AppendPrefix(b, wire.ModelFunction, c.Size)
		for _, p := range c.Parts {
			b = append(b, p.Data...)
		}
	}
	return wire.AppendPrefix(b, wire.ModelGraph, int(graph)), nil
}

// graph writes the fields of the GraphProto.
func (m *Model) graph(s *sink, members Members) error {
	if m.infos == nil {
		m.infos = []byte{}
		for _, block := range []block{m.before, m.behind} {
			fields, err := info(m, block)
			if err != nil {
				return err
			}
			m.infos = append(m.infos, fields...)
		}
	}
	b := wire.AppendString(nil, wire.GraphName, "ensemble")
	for _, v := range m.inputs {
		b = wire.AppendBytes(b, wire.GraphInput, wire.Value(v.Name, v.ElemType, v.Shape, v.Dims))
	}
	if err := s.write(append(append(b, m.outputs...), m.before.fields(nil)...)); err != nil {
		return err
	}
	for _, t := range m.shared {
		if err := m.sharedTensor(s, t); err != nil {
			return err
		}
	}
	if m.opts.Storage == Int8 {
		for i := range m.networks {
			if err := m.means(s, i); err != nil {
				return err
			}
		}
	}
	for i := range m.networks {
		r := sharedRenaming(m, i)
		if err := s.nodes(r, m.common[i], nil); err != nil {
			return err
		}
		if err := s.write(valueInfo(m.values[i], m.common[i], r)); err != nil {
			return err
		}
	}
	k := 0
	err := members(func(parameters weights.Vector) error {
		err := m.member(s, k, parameters)
		k++
		return err
	})
	if err != nil {
		return err
	}
	if k != len(m.members) {
		return fmt.Errorf("%d members given, want %d", k, len(m.members))
	}
	return s.write(append(m.behind.fields(m.given), m.infos...))
}

// sharedTensor writes a tensor that several members read.
func (m *Model) sharedTensor(s *sink, t sharedTensor) error {
	n := m.networks[t.network]
	switch {
	case t.own:
		statistics := m.members[slices.IndexFunc(m.members, func(o Member) bool { return o.Network == t.network })].Statistics
		return m.whole(s, t.name, t.tensor, statistics)
	case t.elements.Len() > 0:
		var c wire.Content
		c.AddStretch(n.content, t.elements)
		if t.narrow {
			return narrowed(s, m.opts.External, t, c)
		}
		return s.initializer(m.opts.External, t.name, t.elem, t.shape, int64(t.elements.Len()), func(w io.Writer) error {
			for _, p := range c.Parts {
				if _, err := w.Write(p.Data); err != nil {
					return err
				}
			}
			return nil
		})
	}
	// Elements in lists of integers and similar fields are few, so they stay unchanged.
	r := &renaming{Network: n, scan: wire.NewScanner(n.content)}
	c, err := r.named(wire.Field{Num: wire.GraphInitializer, Body: t.at}, func(string) (string, error) { return "", nil })
	if err != nil {
		return err
	}
	c.AddCopy(wire.AppendString(nil, wire.TensorName, t.name)) // a Constant's tensor need not have one
	if err := s.write(wire.AppendPrefix(nil, wire.GraphInitializer, c.Size)); err != nil {
		return err
	}
	return s.content(c, nil)
}

// narrowed writes float32 elements as float16.
func narrowed(s *sink, external bool, t sharedTensor, c wire.Content) error {
	n := int64(t.elements.Len()) / weights.F32.Size()
	return s.initializer(external, t.name, t.elem, t.shape, n*weights.F16.Size(), func(w io.Writer) error {
		values := make(weights.Slice, n)
		raw := make([]byte, 0, t.elements.Len())
		for _, p := range c.Parts {
			raw = append(raw, p.Data...)
		}
		weights.F32.Float32s(values, raw)
		return weights.WriteTensor(w, weights.Tensor{Name: t.name, Shape: []int64{n}, DType: weights.F16}, values)
	})
}

// whole writes a tensor in its own type.
func (m *Model) whole(s *sink, name string, t tensor, from weights.Vector) error {
	size := t.entry.Len() * t.entry.DType.Size()
	return s.initializer(m.opts.External, name, t.elem, t.shape, size, func(w io.Writer) error {
		return weights.WriteTensor(w, t.entry, from)
	})
}

// member writes the k-th member's own parts: tensors, then nodes. Without parameters it only measures them.
func (m *Model) member(s *sink, k int, parameters weights.Vector) error {
	r := m.renaming(k)
	from := map[weights.Role]weights.Vector{weights.Parameter: parameters, weights.Statistic: m.members[k].Statistics}
	made := vectors{from, m.members[k].Ranges, &computed{}}
	for _, t := range r.tensors {
		if _, shared := r.known[t.name]; shared {
			continue
		}
		var err error
		if t.fill != nil {
			err = s.initializer(m.opts.External, r.prefix+t.name, t.elem, t.shape, int64(t.elements.Len()), func(w io.Writer) error {
				b, err := t.fill(made)
				if err == nil {
					_, err = w.Write(b)
				}
				return err
			})
		} else if m.quantised(t) {
			err = m.deviations(s, m.members[k].Network, r.prefix, t, parameters)
		} else {
			err = m.whole(s, r.prefix+t.name, t, from[t.entry.Role.Vector()])
		}
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.transposed)) {
		turned := encodeNode("Transpose", []string{r.prefix + r.transposed[name].name}, r.prefix+name,
			Attribute{Name: "perm", Ints: []int64{1, 0}})
		of := r.transposed[name]
		info := onnxio.Value{Name: r.prefix + name, ElemType: of.elem, Shape: []int64{of.shape[1], of.shape[0]}}.Info()
		if err := s.write(append(turned, info...)); err != nil {
			return err
		}
	}
	fill := func(w io.Writer, tensor string) error {
		entry := r.entries[tensor]
		return weights.WriteTensor(w, entry, from[entry.Role.Vector()])
	}
	i := m.members[k].Network
	if err := s.nodes(r, m.own[i], fill); err != nil {
		return err
	}
	return s.write(valueInfo(m.values[i], m.own[i], r))
}

// nodes adds nodes under their new names.
func (s *sink) nodes(r *renaming, nodes []*onnxio.Node, fill func(w io.Writer, tensor string) error) error {
	for _, d := range nodes {
		c, err := r.node(d.Body())
		if err != nil {
			return r.fail("", err)
		}
		if err := s.write(wire.AppendPrefix(nil, wire.GraphNode, c.Size)); err != nil {
			return err
		}
		if err := s.content(c, fill); err != nil {
			return err
		}
	}
	return nil
}
