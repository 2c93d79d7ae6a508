package ensemble_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// Members in float16 and in 8 bits give nearly what score gives, and the operators of the network compute in these types: with batch
// norm of one and two dimensions, residuals, and convolutions of each channel alone.
func TestFusedInFewerBits(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for _, c := range []struct {
		name       string
		half, int8 float64 // tolerances
		layers     int     // of a member in 8 bits
	}{
		{"torch-torchscript", 0.01, 0.06, 4},
		{"torch-dynamo", 0.01, 0.06, 4},
		{"bn-1d-3d/torchscript-opset13", 0.01, 0.06, 3},
		{"torchvision-mobile/torchscript", 1e-4, 1e-3, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			var info struct{ Checkpoints []string }
			testfile.JSON(t, infertest.Path(infertest.Exporters, c.name, "golden.json"), &info)
			var models []*onnxio.Model
			for _, f := range info.Checkpoints {
				models = append(models, infertest.Open(t, infertest.Path(infertest.Exporters, c.name, f)))
			}
			n := infertest.Network(t, infertest.FitWith(t, swag.FitOptions{Rank: 2}, models...))
			shape := slices.Clone(n.Input.Shape[1:])
			for i, d := range shape {
				if d < 0 {
					shape[i] = 5
				}
			}
			data := made{shape, 40, !n.Input.ElemType.DType().IsFloat()}
			networks := []*infer.Network{n}
			mix := members(networks, 3, nil)
			want := scored(t, e, mix, networks, data)

			half := &ensemble.Fused{Ensemble: mix, Networks: networks, Members: mix.All(), Half: true}
			m := infertest.Open(t, files(t, e, half))
			near(t, run(t, e, m, data), want, c.half)
			for _, w := range m.Graph.Initializers {
				if w.ElemType == onnxio.Float && len(w.Shape) > 1 && strings.HasPrefix(w.Name, "member") {
					t.Errorf("%s is in float32", w.Name)
				}
			}

			eight := &ensemble.Fused{Ensemble: mix, Networks: networks, Members: mix.All()}
			if err := eight.Calibrate(t.Context(), e, data); err != nil {
				t.Fatal(err)
			}
			m = infertest.Open(t, files(t, e, eight))
			near(t, run(t, e, m, data), want, c.int8)
			layers := 0
			for _, w := range m.Graph.Initializers {
				if w.ElemType == onnxio.Int8 && len(w.Shape) > 1 {
					layers++
				}
			}
			if layers != c.layers*3 {
				t.Errorf("%d matrices in int8, want %d", layers, c.layers*3)
			}
		})
	}
}
