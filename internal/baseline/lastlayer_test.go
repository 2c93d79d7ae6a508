package ensemble

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// noise is 40 random examples.
type noise struct{ shape []int64 }

func (d noise) Len() int                  { return 40 }
func (d noise) Shape() []int64            { return d.shape }
func (d noise) Labels() []int             { return nil }
func (d noise) ClassNames() []string      { return nil }
func (d noise) Name(i int) string         { return fmt.Sprint("noise ", i) }
func (d noise) Sources() []dataset.Source { return nil }

func (d noise) Read(dst []float32, i int) error {
	rng := rand.New(rand.NewPCG(uint64(i), 0))
	for k := range dst {
		dst[k] = float32(rng.NormFloat64())
	}
	return nil
}

// The last layer of every exporter's file, computed by us of the features that
// the network gives out, is what the network gives out.
func TestLastLayerOfExporters(t *testing.T) {
	const exporters = "../../fixtures/exporters"
	for _, folder := range []string{
		"torch-dynamo", "torch-torchscript", "torchvision-resnet18", "bn-1d-3d/bn1d-nc", "bn-1d-3d/training-mode",
		"jax2onnx/nnx", "keras-tf2onnx/tf-keras", "keras-tf2onnx/fused-bn", "f16/torchscript", "f16/f64-dynamo",
	} {
		t.Run(folder, func(t *testing.T) {
			models := []*onnxio.Model{open(t, filepath.Join(exporters, folder, "ckpt-1.onnx")), open(t, filepath.Join(exporters, folder, "ckpt-2.onnx"))}
			set, err := onnxio.NewSet(models)
			if err != nil {
				t.Fatal(err)
			}
			n := network(t, fitSet(t, set))
			shape := append([]int64{}, n.Input.Shape[1:]...)
			for i, d := range shape {
				if d < 1 {
					shape[i] = 8
				}
			}
			l := &Lineup{Runs: []Run{{n, nil}}}
			l.BatchNorm.Data = noise{shape}
			w := &work{Lineup: l, ctx: t.Context(), engine: &Engine{Runtime: openRuntime(t)}}
			err = w.withSWA(0, func(swa swaWeights) error {
				layer, err := w.openLastLayer(swa)
				if err != nil {
					return err
				}
				defer layer.Close()
				batches := [][]int{{0, 1, 2, 3, 4, 5, 6, 7}}
				if err := w.eachBatch(layer, l.BatchNorm.Data, batches, func(int, *mat.Dense) error { return nil }); err != nil {
					return err
				}
				// Another bias is not what the network has.
				c, columns := layer.mean.Dims()
				layer.mean.Set(c-1, columns-1, layer.mean.At(c-1, columns-1)+3)
				err = w.eachBatch(layer, l.BatchNorm.Data, batches, func(int, *mat.Dense) error { return nil })
				if err == nil || !strings.Contains(err.Error(), "something but its last layer shapes the output") {
					t.Errorf("with another bias: error %v", err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A layer whose weights are in no vector of the posterior does not suit.
func TestHeadWeightsRefused(t *testing.T) {
	layout, err := weights.NewLayout([]weights.Tensor{{Name: "w", Shape: []int64{3, 2}, DType: weights.F32, Role: weights.Constant}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = headWeights(layout, &onnxio.Head{Weight: "w", Scores: 3, Width: 2, Alpha: 1}, weights.Slice{})
	if err == nil || !strings.Contains(err.Error(), `tensor "w" of its last layer is no parameter of its own`) {
		t.Errorf("error %v", err)
	}
}
