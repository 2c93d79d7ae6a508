package onnxio

import (
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

func TestVectorErrors(t *testing.T) {
	l := layoutOf(t, fixture(t, "raw-f32"))
	for name, want := range map[string]string{
		"raw-f16": `raw-f16.onnx: tensor "w": F16 [4 3], want F32 [4 3]`,
		"folded":  `folded.onnx: tensor "w": missing`,
	} {
		m := fixture(t, name)
		_, err := m.Vector(l, weights.Parameter)
		wantError(t, name, err, want, "")
		_, err = NewTemplate(m, l)
		wantError(t, name+", template", err, want, "")
	}
}

// A layout's vector follows the layout's order and not the file's.
func TestVectorFollowsLayout(t *testing.T) {
	l, err := weights.NewLayout([]weights.Tensor{
		{Name: "b", Shape: []int64{3}, DType: weights.F32, Role: weights.Parameter},
		{Name: "w", Shape: []int64{4, 3}, DType: weights.F32, Role: weights.Parameter},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := fixture(t, "raw-f32")
	v, _ := vectors(t, m, l)
	if got, want := read(t, v), slices.Concat(replacement(3, 9), replacement(12, 0)); !slices.Equal(got, want) {
		t.Errorf("vector %v, want %v", got, want)
	}
	if got := render(t, templateOf(t, m, l), l, v, weights.Slice{}); string(got) != string(m.Bytes()) {
		t.Error("a template of this layout does not give the file back")
	}
}
