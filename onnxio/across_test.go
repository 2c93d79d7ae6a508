package onnxio

import (
	"slices"
	"testing"
)

// Nodes that compute over the first axis are found, and no others: reductions over other
// axes, and a network whose batch norm has running statistics.
func TestAcrossBatch(t *testing.T) {
	for name, want := range map[string][]Across{
		"ckpt-1.onnx":               nil,
		"tokens-1.onnx":             nil,
		"unmasked-1.onnx":           nil,
		"training-1.onnx":           nil, // has running statistics: what swagwrap writes is for inference
		"across-1.onnx":             {{`ReduceMean "mean"`, false}},
		"without-statistics-1.onnx": {{`BatchNormalization "bn"`, true}, {`ReduceMean "mean"`, false}, {`ReduceMean "mean_kept"`, false}, {`ReduceMean "var"`, false}},
	} {
		m, err := Open("../cmd/swagwrap/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if got := m.AcrossBatch(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
