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
