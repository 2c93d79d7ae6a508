package fused_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/fused"
	"github.com/swagwrap/swagwrap/weights"
)

// FuzzNetwork: whatever model onnxio reads, two members of it are refused, or are a model that
// it reads too.
func FuzzNetwork(f *testing.F) {
	for _, name := range []string{"control-flow/cond-dynamo", "control-flow/functions", "control-flow/ir3-inputs", "bn-1d-3d/torchscript-opset7"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "exporters", filepath.FromSlash(name), "ckpt-1.onnx"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	none := &weights.Layout{}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnxio.Parse("m.onnx", data)
		if err != nil || len(m.FeedInputs()) == 0 || slices.ContainsFunc(m.FeedInputs(), func(v onnxio.Value) bool { return len(v.Shape) == 0 }) {
			return
		}
		template, err := onnxio.NewWholeTemplate(m, none)
		if err != nil {
			return
		}
		n, err := fused.NewNetwork("m.onnx", template, none, m.FeedInputs(), m.Graph.Outputs[0].Name)
		if err != nil {
			return
		}
		two, err := fused.New([]*fused.Network{n}, []fused.Member{{Number: 0}, {Number: 1}}, fused.Options{})
		if err != nil {
			return
		}
		for k := range 2 {
			if two.Gives([]string{"a", "b"}[k], two.Scores(k), -1) != nil {
				return
			}
		}
		var file bytes.Buffer
		err = two.Write("fused.onnx", func(string) (io.Writer, error) { return &file, nil }, func(do func(weights.Vector) error) error {
			if err := do(weights.Slice{}); err != nil {
				return err
			}
			return do(weights.Slice{})
		})
		if err != nil {
			return
		}
		if _, err := onnxio.Parse("fused.onnx", file.Bytes()); err != nil {
			t.Fatalf("what was written of %d bytes is not read again: %v", len(data), err)
		}
	})
}
