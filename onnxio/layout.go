package onnxio

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

// NewLayout compares the checkpoints of one network and says which tensors
// make the flat vector. Of the floating-point initializers, those that batch
// norm nodes read their running statistics from are statistics, those that
// differ between checkpoints are parameters, and the rest are constants. The
// order is that of the first checkpoint's file.
//
// The checkpoints must be of one network: the same tensors by name, shape and
// type, used by the same sequence of operators. Otherwise NewLayout fails with
// an [*Error] whose hint lists up to five differences.
//
// With a single checkpoint nothing can be seen to differ: then every float
// tensor that is not a scalar is taken for a parameter.
func NewLayout(models []*Model) (*weights.Layout, error) {
	first := models[0]
	for _, m := range models[1:] {
		if err := sameNetwork(first, m); err != nil {
			return nil, err
		}
	}
	bns, err := first.BatchNorms()
	if err != nil {
		return nil, err
	}
	statistic := make(map[string]bool)
	for _, bn := range bns {
		statistic[bn.Mean], statistic[bn.Var] = true, true
	}

	var tensors []weights.Tensor
	for i := range first.Graph.Initializers {
		t := &first.Graph.Initializers[i]
		entry := weights.Tensor{Name: t.Name, Shape: t.Shape, DType: t.ElemType.DType()}
		for _, m := range models { // elements elsewhere can be neither compared nor copied
			if o := &m.Graph.Initializers[i]; o.external {
				return nil, m.readable(o)
			}
		}
		if !entry.DType.IsFloat() {
			continue
		}
		if t.external { // cannot even be compared
			return nil, first.readable(t)
		}
		switch {
		case statistic[t.Name]:
			entry.Role = weights.Statistic
		case len(models) == 1 && len(t.Shape) > 0, differs(models, i):
			entry.Role = weights.Parameter
		}
		if entry.Role != weights.Constant {
			for _, m := range models {
				if err := m.readable(&m.Graph.Initializers[i]); err != nil {
					return nil, err
				}
			}
		}
		tensors = append(tensors, entry)
	}
	l, err := weights.NewLayout(tensors)
	if err != nil {
		return nil, &Error{Path: first.Path, Err: err}
	}
	return l, nil
}

// differs reports whether initializer i is not equal in all models. Tensors
// whose elements are not readable in place are compared as encoded.
func differs(models []*Model, i int) bool {
	encoded := func(m *Model) []byte {
		t := &m.Graph.Initializers[i]
		if t.stored {
			return m.elements(t)
		}
		return m.data[t.msg.start:t.msg.end]
	}
	for _, m := range models[1:] {
		if !bytes.Equal(encoded(models[0]), encoded(m)) {
			return true
		}
	}
	return false
}

// maxDifferences is how many differences an error lists.
const maxDifferences = 5

// sameNetwork checks that m has the same float initializers, in the same order,
// and the same operators as want.
func sameNetwork(want, m *Model) error {
	diffs := differences(want, m)
	if len(diffs) == 0 {
		return nil
	}
	e := diffs[0]
	e.Path = m.Path
	var hint strings.Builder
	fmt.Fprintf(&hint, "all checkpoints must come from one network: compare them with swagwrap inspect %s %s", want.Path, m.Path)
	for _, d := range diffs[1:min(len(diffs), maxDifferences)] {
		if d.Tensor != "" {
			fmt.Fprintf(&hint, "\nalso tensor %q: %s", d.Tensor, d.What)
		} else {
			fmt.Fprintf(&hint, "\nalso %s", d.What)
		}
	}
	if n := len(diffs) - maxDifferences; n > 0 {
		fmt.Fprintf(&hint, "\nand %d more differences", n)
	}
	e.Hint = hint.String()
	return e
}

func differences(want, m *Model) []*Error {
	var diffs []*Error
	add := func(tensor, format string, args ...any) {
		diffs = append(diffs, &Error{Tensor: tensor, What: fmt.Sprintf(format, args...)})
	}
	a, b := want.Graph.Initializers, m.Graph.Initializers
	have := make(map[string]*Tensor, len(b))
	for i := range b {
		have[b[i].Name] = &b[i]
	}
	known := make(map[string]bool, len(a))
	for i := range a {
		w, t := &a[i], have[a[i].Name]
		known[w.Name] = true
		switch {
		case t == nil:
			add(w.Name, "missing, but present in %s", want.Path)
		case !slices.Equal(t.Shape, w.Shape):
			add(w.Name, "shape %v, want %v as in %s", t.Shape, w.Shape, want.Path)
		case t.ElemType != w.ElemType:
			add(w.Name, "type %v, want %v as in %s", t.ElemType, w.ElemType, want.Path)
		}
	}
	for _, t := range b {
		if !known[t.Name] {
			add(t.Name, "not in %s", want.Path)
		}
	}
	if len(diffs) > 0 {
		return diffs
	}
	for i := range a {
		if a[i].Name != b[i].Name {
			add(b[i].Name, "is tensor %d of the file, want %q there as in %s", i, a[i].Name, want.Path)
			return diffs
		}
	}
	x, y := want.Graph.Nodes, m.Graph.Nodes
	for i := range min(len(x), len(y)) {
		if x[i].OpType != y[i].OpType {
			add("", "node %d is %s %q, want %s %q as in %s", i, y[i].OpType, y[i].Name, x[i].OpType, x[i].Name, want.Path)
		}
	}
	if len(x) != len(y) {
		add("", "%d nodes, want %d as in %s", len(y), len(x), want.Path)
	}
	return diffs
}

// Vector returns the model's flat vector of role r. It reads from the model's
// file: it is valid until the model is closed.
func (m *Model) Vector(l *weights.Layout, r weights.Role) (weights.Vector, error) {
	tensors, err := m.holding(l, r)
	if err != nil {
		return nil, err
	}
	var pieces []weights.Piece
	for _, t := range tensors {
		pieces = append(pieces, weights.Piece{DType: t.ElemType.DType(), Data: m.elements(t)})
	}
	return weights.NewConcat(pieces)
}

// holding returns the model's tensors of role r in the layout's order, checked
// against it.
func (m *Model) holding(l *weights.Layout, r weights.Role) ([]*Tensor, error) {
	byName := make(map[string]*Tensor)
	for i := range m.Graph.Initializers {
		byName[m.Graph.Initializers[i].Name] = &m.Graph.Initializers[i]
	}
	var out []*Tensor
	for _, want := range l.Role(r) {
		t := byName[want.Name]
		switch {
		case t == nil:
			return nil, &Error{Path: m.Path, Tensor: want.Name, What: "missing"}
		case !slices.Equal(t.Shape, want.Shape) || t.ElemType.DType() != want.DType:
			return nil, &Error{Path: m.Path, Tensor: want.Name, What: fmt.Sprintf("%v %v, want %v %v", t.ElemType.DType(), t.Shape, want.DType, want.Shape)}
		}
		if err := m.readable(t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
