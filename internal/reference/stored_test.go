package reference

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// The elements of made-up examples are part of a file format: those of Python's module, computed with NumPy 2.
func TestMadeUp(t *testing.T) {
	for _, tc := range []struct {
		in   StoredInput
		want []float64
	}{
		{StoredInput{Shape: []int{2}, Type: "float32", Low: -1, High: 1}, []float64{-0.22034060955047607, -0.966423511505127, 0.8015213012695312, 0.16586053371429443}},
		{StoredInput{Shape: []int{2}, Type: "int64", Low: 0, High: 255}, []float64{99.0, 4.0, 230.0, 149.0}},
		{StoredInput{Shape: []int{2}, Type: "float16", Low: 0, High: 3}, []float64{1.169921875, 0.05035400390625, 2.703125, 1.7490234375}},
		{StoredInput{Shape: []int{2}, Type: "bool", Low: 1, High: 1}, []float64{1, 1, 1, 1}},
	} {
		a, err := tc.in.array(7, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range a.Float64s() {
			if math.Abs(v-tc.want[i]) > 1e-12 {
				t.Errorf("%s: element %d is %v, want %v", tc.in.Type, i, v, tc.want[i])
			}
		}
	}
}

// What a model stores proves it, and no other one: with a weight changed by a hundredth, or other examples.
func TestStored(t *testing.T) {
	library, err := ort.Provider{}.Find("")
	if err != nil {
		t.Fatalf("%v (run make setup)", err)
	}
	rt, err := ort.Provider{}.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnxio.Open(filepath.Join("..", "..", "fixtures", "mnist", "checkpoints", "epoch-30.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := &Stored{Seed: 3, Examples: StoredExamples, Inputs: []StoredInput{{Name: m.FeedInputs()[0].Name, Shape: []int{1, 28, 28}, Type: "float32", Low: -0.4, High: 2.8}}}
	if err := s.Store(t.Context(), rt, m); err != nil {
		t.Fatal(err)
	}
	if len(s.Text()) > 4<<10 {
		t.Errorf("%d bytes", len(s.Text()))
	}
	back, err := ParseStored(s.Text())
	if err != nil {
		t.Fatal(err)
	}
	coarse := func(a About) float64 {
		r, err := s.runner(rt, m)
		if err != nil {
			t.Fatal(err)
		}
		r.About, r.strict = a, least
		if err := r.measureCoarse(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		return r.coarse
	}
	if tf32, half := coarse(About{}), coarse(About{DType: "float16"}); !(tf32 > least) || half != ofSteps*tf32 {
		t.Errorf("TF32 explains %g, and float16 %g", tf32, half)
	}
	verify := func(s *Stored, m *onnxio.Model) Difference {
		d, err := s.Verify(t.Context(), rt, m)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := verify(back, m); !d.Equal || d.Largest > 1e-3 {
		t.Errorf("the model itself: %+v", d)
	}
	elements := map[*onnxio.Tensor]weights.Piece{}
	for _, w := range m.Tensors() {
		if !w.IsFloat() || w.Len() < 1000 || len(elements) > 0 {
			continue
		}
		values := make([]float32, w.Len())
		w.ElemType.DType().Float32s(values, m.Elements(w))
		for i := range values {
			values[i] *= 1.05
		}
		data := make([]byte, 4*len(values))
		weights.F32.PutFloat32s(data, values)
		elements[w] = weights.Piece{DType: weights.F32, Data: data}
	}
	other, err := m.WithWeights(m.Path, nil, elements)
	if err != nil {
		t.Fatal(err)
	}
	if d := verify(back, other); d.Equal {
		t.Errorf("other weights: %+v", d)
	}
	back.Seed++
	if d := verify(back, m); d.Equal {
		t.Errorf("other examples: %+v", d)
	}
	for _, bad := range []string{"", "[]", "{}", `{"examples":2,"tolerance":1,"outputs":[{"name":"a","step":0,"numbers":[[1],[2]]}]}`,
		`{"examples":2,"tolerance":1,"outputs":[{"name":"a","step":1,"numbers":[[1]]}]}`, strings.Repeat(" ", mostStoredBytes+1)} {
		if _, err := ParseStored(bad); err == nil {
			t.Errorf("%.80s: no error", bad)
		}
	}
	for _, in := range []StoredInput{{Type: "text"}, {Type: "float32", Shape: []int{1 << 20, 1 << 20}}, {Type: "float32", Shape: []int{0}},
		{Type: "float32", Shape: []int{2}, Data: []byte{1}}} {
		if _, err := in.array(1, 4); err == nil {
			t.Errorf("%+v: no error", in)
		}
	}
	// Users' examples are as many as there is room for.
	f := &File{Path: "x.npz", arrays: map[string]numpy.Array{"inputs": {Type: elemTypes[1], Shape: []int{3, 1, 28, 28}, Data: make([]byte, 3*784*4)}}}
	if err := s.Keep(f, m); err != nil || s.Examples != 3 || len(s.Inputs[0].Data) != 3*784*4 {
		t.Errorf("%v: %d examples", err, s.Examples)
	}
}
