package onnxio

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// strided is an [weights.Array] that has only every second element.
type strided struct {
	dtype weights.DType
	data  []byte
}

func (s strided) Len() int64 { return int64(len(s.data)) / s.dtype.Size() / 2 }

func (s strided) ReadBytes(dst []byte, off int64) {
	for size := s.dtype.Size(); len(dst) > 0; off++ {
		copy(dst[:size], s.data[2*off*size:])
		dst = dst[size:]
	}
}

// elsewhere returns a tensor's elements as they may lie in another file.
func elsewhere(m *Model, x *Tensor, dtype weights.DType, rowFlow bool) weights.Piece {
	values := make([]float32, x.Len())
	x.ElemType.DType().Float32s(values, m.Elements(x))
	if rowFlow {
		var spread []float32
		for _, v := range values {
			spread = append(spread, v, -1)
		}
		values = spread
	}
	p := weights.Piece{DType: dtype, Data: make([]byte, int64(len(values))*dtype.Size())}
	dtype.PutFloat32s(p.Data, values)
	if rowFlow {
		p.Array, p.Data = strided{dtype, p.Data}, nil
	}
	return p
}

// A model with the elements of another, wherever either keeps them, is that other
// one: as it is read, written, run and cut.
func TestHolding(t *testing.T) {
	folder := func(seed int) *Model { return open(t, filepath.Join(scattered(t, seed), "m.onnx")) }
	decoded := func(seed int) *Model {
		var list []byte
		for _, v := range replacement(3, seed) {
			list = varintField(list, wire.TensorInt32, uint64(weights.Float16Bits(v)))
		}
		return parse(t, tinyGraphModel(append(tensor("h", Float16, []int64{3}, nil), list...)))
	}
	page := func(seed int) *Model {
		return parse(t, tinyGraphModel(floats("large", replacement(pageSize, seed), pageSize)))
	}
	for name, pair := range map[string][2]*Model{
		"external": {folder(1), folder(2)}, "anywhere": {parse(t, weightsAnywhere(1)), parse(t, weightsAnywhere(2))},
		"decoded": {decoded(1), decoded(2)}, "large": {page(1), page(2)},
	} {
		for _, dtype := range []weights.DType{weights.F32, weights.F64, weights.F16} {
			for _, rowFlow := range []bool{false, true} {
				if name == "decoded" && dtype != weights.F16 {
					continue // would be narrowed
				}
				m, other := pair[0], pair[1]
				held := make(map[*Tensor]weights.Piece)
				for i, x := range m.tensors {
					if x.IsFloat() && !slices.Contains([]string{"same", "k", "eps"}, x.Name) {
						held[x] = elsewhere(other, other.tensors[i], dtype, rowFlow)
					}
				}
				h, err := m.WithWeights("other.pt", nil, held)
				if err != nil {
					t.Fatal(name, err)
				}
				checkHolding(t, h, other)
			}
		}
	}
}

func tinyGraphModel(initializers ...[]byte) []byte { return encodeModel(tinyGraph(initializers...)) }

func checkHolding(t *testing.T, h, other *Model) {
	t.Helper()
	sameElements(t, h, other)
	for i, x := range h.tensors {
		if n := x.Len(); x.IsFloat() && n > 2 && !slices.Equal(h.Stretch(x, 1, n-2), other.Stretch(other.tensors[i], 1, n-2)) {
			t.Errorf("%s: %q: another stretch", h.Path, x.Name)
		}
	}
	none := &weights.Layout{}
	folder := t.TempDir()
	writeFiles(t, folder, written(t, templateOf(t, h, none), "n.onnx", none, weights.Slice{}, weights.Slice{}))
	sameElements(t, other, open(t, filepath.Join(folder, "n.onnx")))
	whole, err := h.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	sameElements(t, other, parse(t, rendered(t, whole)))
	tpl, err := moved(h, none)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for name, b := range renderAll(t, tpl, none, weights.Slice{}, weights.Slice{}) {
		files[name] = []byte(b)
	}
	again, err := ParseFiles("again", files[""], files)
	if err != nil {
		t.Fatal(err)
	}
	sameElements(t, other, again)
	l := layoutOf(t, h)
	p, s := vectors(t, h, l)
	wantP, wantS := vectors(t, other, l)
	if !slices.Equal(read(t, p), read(t, wantP)) || !slices.Equal(read(t, s), read(t, wantS)) {
		t.Errorf("%s: other vectors", h.Path)
	}
}

func TestHoldingRefuses(t *testing.T) {
	m := parse(t, tinyGraphModel(floats("w", replacement(3, 1), 3), tensor("h", Float16, []int64{1}, []byte{0, 0})))
	w, h := m.tensors[0], m.tensors[1]
	_, err := m.WithWeights("o.pt", nil, map[*Tensor]weights.Piece{w: {DType: weights.F32, Data: make([]byte, 8)}})
	wantError(t, "fewer", err, `o.pt: tensor "w": 2 elements, want 3`, "")
	_, err = m.WithWeights("o.pt", nil, map[*Tensor]weights.Piece{h: {DType: weights.F32, Data: make([]byte, 4)}})
	wantError(t, "narrower", err, `o.pt: tensor "h": F32, which does not go into the graph's F16`, "in the type that the checkpoints have")
}

// Tensors that TorchScript merged get places of their own, one by one.
func TestUnmerge(t *testing.T) {
	identity := func(of, name string) []byte { return node("Identity", "", []string{of}, []string{name}) }
	add := node("Sum", "", []string{"a", "b", "c", "d"}, []string{"y"})
	for name, first := range map[string][]byte{
		"in the file": floats("a", replacement(2*pageSize, 1), 2*pageSize),
		"outside":     outside(tensor("a", Float, []int64{2}, nil), externalAt("a.bin")...),
	} {
		data := encodeModel(graph([][]byte{identity("a", "b"), identity("b", "c"), identity("c", "d"), add}, [][]byte{first}, [][]byte{output("y", Float)}))
		m, err := ParseFiles("m.onnx", data, map[string][]byte{"a.bin": render32(replacement(2, 1))})
		if err != nil {
			t.Fatal(err)
		}
		if merged := m.Merged(); len(merged) != 3 || merged["d"] != m.tensors[0] {
			t.Errorf("%s: merged %v", name, merged)
		}
		u, err := m.Unmerge([]string{"b", "d", "gone"})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(u.tensors); got != 3 {
			t.Errorf("%s: %d tensors, want 3", name, got)
		}
		last := u.Places()[len(u.Places())-1]
		var of []string
		for _, x := range last.Tensors {
			of = append(of, x.Name)
			if string(u.Elements(x)) != string(m.Elements(m.tensors[0])) || !slices.Equal(x.Shape, m.tensors[0].Shape) {
				t.Errorf("%s: %q has other elements", name, x.Name)
			}
		}
		if !slices.Equal(of, []string{"a", "b", "b", "d"}) {
			t.Errorf("%s: the node takes %q", name, of)
		}
	}
}
