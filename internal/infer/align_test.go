package infer_test

import (
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
)

func TestAlign(t *testing.T) {
	t.Parallel()
	n := func(path string, classes int64, shape ...int64) *infer.Network {
		return infer.NewNamed(path, classes, onnxio.Value{Name: "x", Shape: shape})
	}
	twin := n("copy", 10, -1, 1, 28, 28)
	twin.Posterior.ID = "a"
	carded := n("b", 10, -1, 1, 28, 28)
	carded.Posterior.Card.ClassNames = []string{"zero"}
	for _, tc := range []struct {
		others []*infer.Network
		err    string
		shapes [][]int64 // of the first and the others, once aligned
	}{
		{others: []*infer.Network{n("b", 10, 16, 1, 28, 28)}, shapes: [][]int64{{-1, 1, 28, -1}, {16, 1, 28, 28}}},
		{others: []*infer.Network{n("b", 0, -1, 1, -1, -1), n("c", 10, -1, -1, -1, 28)}, shapes: [][]int64{{-1, 1, 28, 28}, {-1, 1, 28, 28}, {-1, 1, 28, 28}}},
		{others: []*infer.Network{twin}, err: "copy: is the same posterior as a"},
		{others: []*infer.Network{carded}, err: "b: class_names of its model card is not that of a"},
		{others: []*infer.Network{n("b", 3, -1, 1, 28, 28)}, err: "b: 3 classes, want 10 as in a"},
		// The first says nothing of the last dimension, so it takes the third to disagree.
		{others: []*infer.Network{n("b", 10, -1, 1, 28, 28), n("c", 10, -1, 1, 28, 32)}, err: `c: tensor "x": examples of shape [1 28 32], want [1 28 28] as in b`},
		{others: []*infer.Network{n("b", 10, -1, 3, 28, 28)}, err: `b: tensor "x": examples of shape [3 28 28], want [1 28 -1] as in a`},
		{others: []*infer.Network{n("b", 10, -1, 784)}, err: "examples of shape [784], want"},
	} {
		networks := append([]*infer.Network{n("a", 10, -1, 1, 28, -1)}, tc.others...)
		err := infer.Align(networks)
		if tc.err != "" {
			infertest.WantError(t, err, tc.err)
			continue
		}
		if err != nil {
			t.Error(err)
		}
		tc.shapes[0][3] = 28
		for i, n := range networks {
			if !slices.Equal(tc.shapes[i], n.Input.Shape) {
				t.Errorf("%s: shape %v, want %v", n.Posterior.Path, n.Input.Shape, tc.shapes[i])
			}
		}
	}
}

// Networks of several inputs take the same ones, in whatever order.
func TestAlignInputs(t *testing.T) {
	t.Parallel()
	value := func(name string, elem onnxio.ElemType, shape ...int64) onnxio.Value {
		return onnxio.Value{Name: name, ElemType: elem, Shape: shape, Dims: make([]string, len(shape))}
	}
	ids, mask, x := value("ids", onnxio.Int64, -1, -1), value("mask", onnxio.Float, -1, 7), value("x", onnxio.Float, -1, 3)
	for want, other := range map[string][]onnxio.Value{
		"":                            {value("mask", onnxio.Float, 4, -1), value("ids", onnxio.Int64, 4, 7)},
		"b: takes 3 inputs, want 2":   {ids, mask, x},
		`b: tensor "x": a takes`:      {ids, x},
		"shape [6], want [7] as in a": {ids, value("mask", onnxio.Float, -1, 6)},
		"int64, want float as in a":   {ids, value("mask", onnxio.Int64, -1, 7)},
		"takes 1 inputs, want 2 as a": {x},
	} {
		a, b := infer.NewNamed("a", 10, ids, mask), infer.NewNamed("b", 10, other...)
		err := infer.Align([]*infer.Network{a, b})
		if want != "" {
			infertest.WantError(t, err, want)
			continue
		}
		if err != nil || !slices.Equal(a.Inputs[0].Shape, []int64{-1, 7}) || !slices.Equal(b.Inputs[0].Shape, []int64{4, 7}) || !slices.Equal(b.Input.Shape, []int64{4, -1}) {
			t.Errorf("%v, %v, %v, %v", err, a.Inputs, b.Inputs, b.Input)
		}
		if f := b.Fields(); f[1].Name != "ids" || f[1].Type != "int64" || f[1].Shape[0] != 7 {
			t.Errorf("fields %v", f)
		}
	}
}
