package onnxio

import (
	"reflect"
	"testing"
)

// A network that was exported for one image becomes the same network for any
// number: as it is exported with a free batch, but for the name of the dimension,
// and without the shapes in between.
func TestFreeBatch(t *testing.T) {
	t.Parallel()
	fixed, free := open(t, "../cmd/swagwrap/testdata/single-1.onnx"), open(t, "../cmd/swagwrap/testdata/ckpt-1.onnx")
	if len(fixed.Graph.inferred) == 0 {
		t.Fatal("the fixture has no shapes in between")
	}
	e := fixed.Edit()
	e.DynamicBatch()
	got := parse(t, edited(t, fixed, e))
	for what, pair := range map[string][2][]Value{"inputs": {got.Graph.Inputs, free.Graph.Inputs}, "outputs": {got.Graph.Outputs, free.Graph.Outputs}} {
		for i, v := range pair[0] {
			if w := pair[1][i]; v.Name != w.Name || v.ElemType != w.ElemType || !reflect.DeepEqual(v.Shape, w.Shape) || v.Dims[0] != "" {
				t.Errorf("%s: %+v, want %+v without the name", what, v, w)
			}
		}
	}
	var lists [][]int64
	for _, p := range got.Places() {
		for _, x := range p.Tensors {
			if x != nil && x.ints != nil {
				lists = append(lists, x.ints)
			}
		}
	}
	if want := [][]int64{{-1, 2}, {-1}}; !reflect.DeepEqual(lists, want) {
		t.Errorf("shapes %v, want %v", lists, want)
	}
	if len(got.Graph.inferred) > 0 {
		t.Errorf("%d shapes in between are left", len(got.Graph.inferred))
	}

	same := free.Edit()
	if same.DynamicBatch(); len(same.splices) > 0 {
		t.Errorf("a free batch was freed: %d changes", len(same.splices))
	}
}

// A Reshape may take 0 as a size of its own. With a free batch 0 copies a size.
func TestFreeBatchOfReshape(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]int64{"row-list-1": {0, 2, -1}, "row-joined-1": {0}} {
		m := open(t, "../cmd/swagwrap/testdata/"+name+".onnx")
		e := m.Edit()
		e.DynamicBatch()
		got := parse(t, edited(t, m, e))
		for i := range got.Graph.Nodes {
			switch n := &got.Graph.Nodes[i]; n.OpType {
			case "Reshape":
				if n.Int("allowzero", 0) != 0 {
					t.Errorf("%s: allowzero is left", name)
				}
				if name == "row-list-1" && !reflect.DeepEqual(got.lists()[n.Inputs[1]], want) {
					t.Errorf("%s: shape %v, want %v", name, got.lists()[n.Inputs[1]], want)
				}
			case "Concat":
				if first := got.lists()[n.Inputs[0]]; !reflect.DeepEqual(first, want) {
					t.Errorf("%s: first part %v, want %v", name, first, want)
				}
			}
		}
	}
}
