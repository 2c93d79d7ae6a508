package infer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
)

// A convolution that WebGPU computes wrong is refused by its name, before a device is asked for.
func TestMisreadsChannels(t *testing.T) {
	t.Parallel()
	m := infertest.Open(t, infertest.Path("fixtures/exporters/torch-dynamo", "ckpt-2.onnx"))
	n := infertest.Network(t, infertest.Fit(t, m, infertest.Open(t, infertest.Path("fixtures/exporters/torch-dynamo", "ckpt-1.onnx"))))
	last, err := n.LastCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []ort.Provider{{}, {Name: ort.WebGPU}, {Name: ort.WebGPU, Precision: ort.F16}} {
		s, err := infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Provider: p}).Open(t.Context(), n.Graph, last.Filled, n.Output())
		if p.GPU() {
			wrong, ok := errors.AsType[*onnxio.Error](err)
			if !ok || wrong.Tensor != "conv2d_1" || !strings.Contains(wrong.Error(), "ONNX Runtime computes it wrong on WebGPU") || wrong.Hint == "" {
				t.Errorf("%v: %v", p, err)
			}
		} else if err != nil {
			t.Errorf("%v: %v", p, err)
		} else {
			s.Close()
		}
	}
}
