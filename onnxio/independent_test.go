package onnxio

import "testing"

// Every proof is right: networks that mix examples have none. Others may lack one.
func TestIndependent(t *testing.T) {
	for name, want := range map[string]bool{
		"cmd/swagwrap/testdata/ckpt-1.onnx":               true,
		"cmd/swagwrap/testdata/table-1.onnx":              true,
		"cmd/swagwrap/testdata/tokens-1.onnx":             true,
		"cmd/swagwrap/testdata/softmax-1.onnx":            true,
		"cmd/swagwrap/testdata/binary-1.onnx":             true,
		"cmd/swagwrap/testdata/fixed-batch-1.onnx":        true,
		"cmd/swagwrap/testdata/across-1.onnx":             false,
		"cmd/swagwrap/testdata/across-fixed-1.onnx":       false,
		"cmd/swagwrap/testdata/without-statistics-1.onnx": false,
		"cmd/swagwrap/testdata/mixing-1.onnx":             false,
		"fixtures/mnist/model.onnx":                       true,
		"fixtures/cifar/checkpoints/model.onnx":           true,
		"fixtures/dense/pixels/model.onnx":                true,
		"fixtures/dense/tokens/model.onnx":                true,
		"fixtures/exporters/lstm/torchscript/ckpt-1.onnx": true,
	} {
		m, err := Open("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if got := m.Independent(m.Graph.Outputs[0].Name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
