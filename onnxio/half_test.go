package onnxio

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"testing"
)

// A constant below the range of float16 is a mask only where nothing but a softmax reads it and its sums.
func TestMasks(t *testing.T) {
	low := math.Inf(-1)
	op := func(op, out string, in ...string) []byte { return node(op, "", in, []string{out}) }
	added := [][]byte{op("Add", "sum", "x", "c"), op("Softmax", "y", "sum")}
	for name, c := range map[string]struct {
		value float64
		nodes [][]byte
		want  []string
	}{
		"added":        {low, added, []string{"c", "sum"}},
		"finite":       {-1e9, added, []string{"c", "sum"}},
		"chosen":       {low, [][]byte{op("Where", "w", "b", "c", "x"), op("LogSoftmax", "y", "w")}, []string{"c", "w"}},
		"high":         {1e9, added, nil},
		"in range":     {-1e4, added, nil},
		"product":      {low, [][]byte{op("Mul", "m", "x", "c"), op("Softmax", "y", "m")}, nil},
		"read twice":   {low, append(added, op("Exp", "e", "c")), nil},
		"no softmax":   {low, [][]byte{op("Add", "y", "x", "c")}, nil},
		"sum read too": {low, append(added, op("Exp", "e", "sum")), nil},
	} {
		raw := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(c.value)))
		m := parse(t, encodeModel(graph(c.nodes, [][]byte{tensor("c", Float, nil, raw)}, [][]byte{output("y", Float)})))
		if got := slices.Sorted(maps.Keys(masks(m))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
