package checkpoints

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// A constant may hold what no weight does where it is a mask or a bound, and
// nothing weighs with it.
func TestSoundConstants(t *testing.T) {
	nan, inf, least := float32(math.NaN()), float32(math.Inf(1)), float32(-math.MaxFloat32)
	for _, c := range []struct {
		name  string
		op    string
		value weights.Slice
		ok    bool
	}{
		{"a mask", "Add", weights.Slice{0, -inf}, true},
		{"a mask of the least number", "Where", weights.Slice{0, least}, true},
		{"a bound", "Clip", weights.Slice{inf}, true},
		{"a scale", "Mul", weights.Slice{1.8e19, 0}, true},
		{"not a mask", "Add", weights.Slice{0, inf}, false},
		{"not a number", "Add", weights.Slice{0, nan}, false},
		{"a bound that is no number", "Clip", weights.Slice{nan}, false},
		{"a huge scale", "Mul", weights.Slice{0, 1e38}, false},
		{"a frozen matrix", "MatMul", weights.Slice{0, -inf}, false},
		{"a huge frozen matrix", "MatMul", weights.Slice{-1e38, 0}, false},
		{"a frozen slope", "PRelu", weights.Slice{least}, false},
	} {
		model := func(k int) *onnxio.Model {
			return withNodes(t, fmt.Sprintf("%d.onnx", k), [][]byte{node(c.op, "n", []string{"x", "c"}, []string{"z"}), node("Mul", "m", []string{"z", "w"}, []string{"y"})},
				floats32("c", c.value, int64(len(c.value))), floats32("w", weights.Slice{float32(k), 1}, 2))
		}
		_, err := New([]*onnxio.Model{model(1), model(2)})
		if c.ok != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), `1.onnx: tensor "c": value `) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// NaN is a value that only a Where chooses, as JAX guards its variances, and nothing else.
func TestSoundGuards(t *testing.T) {
	t.Parallel()
	nan := weights.Slice{float32(math.NaN())}
	choose := func(value string) []byte { return node("Where", "n", []string{"c", value, "x"}, []string{"z"}) }
	for name, c := range map[string]struct {
		nodes [][]byte
		ok    bool
	}{
		"chosen":           {[][]byte{choose("nan")}, true},
		"repeated":         {[][]byte{node("Expand", "e", []string{"nan", "shape"}, []string{"nans"}), choose("nans")}, true},
		"the condition":    {[][]byte{node("Where", "n", []string{"nan", "x", "x"}, []string{"z"})}, false},
		"also added":       {[][]byte{choose("nan"), node("Add", "a", []string{"x", "nan"}, []string{"b"})}, false},
		"repeated, added":  {[][]byte{node("Expand", "e", []string{"nan", "shape"}, []string{"nans"}), node("Add", "n", []string{"x", "nans"}, []string{"z"})}, false},
		"of no Where here": {[][]byte{node("Add", "n", []string{"x", "nan"}, []string{"z"})}, false},
	} {
		model := func(k int) *onnxio.Model {
			return withNodes(t, fmt.Sprintf("%d.onnx", k), append(c.nodes, node("Mul", "m", []string{"z", "w"}, []string{"y"})),
				floats32("nan", nan), floats32("w", weights.Slice{float32(k), 1}, 2))
		}
		_, err := New([]*onnxio.Model{model(1), model(2)})
		if c.ok != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), `1.onnx: tensor "nan": value NaN`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A tensor of a type below 16 bits that differs would be one checkpoint's in every member.
func TestNarrow(t *testing.T) {
	t.Parallel()
	for name, elem := range map[string]onnxio.ElemType{"float8e4m3fn": 17, "uint4": 21, "int4": 22, "float4e2m1": 23, "int2": 26} {
		models := func(second byte) []*onnxio.Model {
			var out []*onnxio.Model
			for k, v := range []byte{0x31, second} {
				out = append(out, withNodes(t, fmt.Sprintf("%d.onnx", k+1), [][]byte{node("Cast", "n", []string{"q"}, []string{"z"}),
					node("Mul", "m", []string{"z", "w"}, []string{"y"})},
					tensor("q", elem, []int64{1}, []byte{v}), floats32("w", weights.Slice{float32(k), 1}, 2)))
			}
			return out
		}
		if _, err := New(models(0x31)); err != nil {
			t.Errorf("%s: equal: %v", name, err)
		}
		_, err := New(models(0x32))
		wantError(t, name, err, `1.onnx: tensor "q": `, "")
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
