package baseline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// noise is 40 random examples.
type noise struct{ shape []int64 }

func (d noise) Len() int                  { return 40 }
func (d noise) Shape() []int64            { return d.shape }
func (d noise) Labels() target.Target     { return target.Target{} }
func (d noise) ClassNames() []string      { return nil }
func (d noise) Name(i int) string         { return fmt.Sprint("noise ", i) }
func (d noise) Sources() []dataset.Source { return nil }

func (d noise) Read(dst dataset.Values, i int) error {
	rng := rand.New(rand.NewPCG(uint64(i), 0))
	for k := range dst.Floats {
		dst.Floats[k] = float32(rng.NormFloat64())
	}
	return nil
}

// For every exporter's file, the outputs computed from the features and the last layer are those of the network.
func TestLastLayerOfExporters(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{
		"torch-dynamo", "torch-torchscript", "torchvision-resnet18", "bn-1d-3d/bn1d-nc", "bn-1d-3d/training-mode",
		"jax2onnx/nnx", "keras-tf2onnx/tf-keras", "keras-tf2onnx/fused-bn", "f16/torchscript", "f16/f64-dynamo",
	} {
		t.Run(folder, func(t *testing.T) {
			path := func(name string) string { return infertest.Path(infertest.Exporters, folder, name) }
			n := infertest.Network(t, infertest.Fit(t, infertest.Open(t, path("ckpt-1.onnx")), infertest.Open(t, path("ckpt-2.onnx"))))
			shape := slices.Clone(n.Input.Shape[1:])
			for i, d := range shape {
				if d < 1 {
					shape[i] = 8
				}
			}
			in := &baseline.Inputs{Runs: []baseline.Run{{Network: n}}, BatchNorm: batchnorm.Training{Data: noise{shape}}}
			layer, err := baseline.OpenLastLayer(t.Context(), infertest.Run(t), in)
			if err != nil {
				t.Fatal(err)
			}
			defer layer.Close()
			if err := layer.Compare(t.Context(), noise{shape}, 8); err != nil {
				t.Error(err)
			}
			// The network does not have this bias.
			m := layer.Mean()
			c, columns := m.Dims()
			m.Set(c-1, columns-1, m.At(c-1, columns-1)+3)
			infertest.WantError(t, layer.Compare(t.Context(), noise{shape}, 8), "a node after its last layer changes the output")
		})
	}
}

// The layer must have its weights in the posterior.
func TestHeadWeightsRefused(t *testing.T) {
	t.Parallel()
	layout, err := weights.NewLayout([]weights.Tensor{{Name: "w", Shape: []int64{3, 2}, DType: weights.F32, Role: weights.Constant}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = baseline.HeadWeights(layout, &onnxio.Head{Weight: "w", Scores: 3, Width: 2, Alpha: 1}, weights.Slice{})
	infertest.WantError(t, err, `tensor "w" of its last layer is not a separate parameter of the posterior`)
}
