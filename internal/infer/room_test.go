package infer_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// values returns the inputs and outputs of a graph.
func values(m *onnxio.Model) (all []*onnxio.Value) {
	for _, list := range [][]onnxio.Value{m.Graph.Inputs, m.Graph.Outputs} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// resize sets a dimension of the named inputs and outputs.
func resize(m *onnxio.Model, names string, axis int, size int64) {
	for _, v := range values(m) {
		if slices.Contains(strings.Fields(names), v.Name) {
			v.Shape[axis] = size
			v.Dims[axis] = ""
		}
	}
}

// Every dimension of a graph that is used as a size is compared with the memory first. The error names the tensor and
// says what to do.
func TestFits(t *testing.T) {
	const bytes = 128 << 20
	states := func(name string) string { return filepath.Join("testdata", "states", name) }
	small := func(name string) string { return infertest.Path(infertest.Small, name) }
	classes, tokens := swag.Card{Task: "classes"}, swag.Card{Task: "next-token"}
	for _, tt := range []struct {
		file    string
		card    swag.Card
		names   string // inputs and outputs that get the size
		axis    int
		printed string // the tensor in the error
	}{
		{small("ckpt-1.onnx"), classes, "input", 0, "input"},
		{small("ckpt-1.onnx"), classes, "input", 1, "input"},
		{small("ckpt-1.onnx"), classes, "input", 2, "input"},
		{small("ckpt-1.onnx"), classes, "input", 3, "input"},
		{small("ckpt-1.onnx"), classes, "logits", 1, "logits"},
		{small("ckpt-1.onnx"), swag.Card{Task: "labels"}, "logits", 1, "logits"},
		{small("ckpt-1.onnx"), swag.Card{Task: "regression"}, "logits", 1, "logits"},
		{small("tokens-1.onnx"), classes, "ids", 0, "ids"},
		{small("tokens-1.onnx"), classes, "mask", 0, "ids"}, // all inputs have the same batch
		{small("tokens-1.onnx"), classes, "mask", 1, "mask"},
		{small("language-1.onnx"), swag.Card{Task: "next-token", ClassAxis: -1}, "x", 0, "x"},
		{small("language-1.onnx"), swag.Card{Task: "next-token", ClassAxis: -1}, "x", 1, "x"},
		{small("language-1.onnx"), swag.Card{Task: "next-token", ClassAxis: -1}, "y", 1, "y"},
		{small("language-1.onnx"), swag.Card{Task: "next-token", ClassAxis: -1}, "y", 2, "y"},
		{states("lstm2-a.onnx"), tokens, "h0 hn", 0, "h0"},
		{states("lstm2-a.onnx"), tokens, "h0 hn", 1, "h0"},
		{states("lstm2-a.onnx"), tokens, "c0 cn", 1, "h0"},
		{states("lstm2-a.onnx"), tokens, "c0 cn", 2, "c0"},
		{states("lstm2-a.onnx"), tokens, "scores", 2, "scores"},
		{states("gru.onnx"), tokens, "h hn", 2, "h"},
		{states("cell.onnx"), tokens, "h_in h_out", 1, "h_in"},
		{states("gpt2.onnx"), tokens, "past_key_values.0.key present.0.key", 0, "past_key_values.0.key"},
		{states("gpt2.onnx"), tokens, "past_key_values.0.value present.0.value", 1, "past_key_values.0.value"},
		{states("gpt2.onnx"), tokens, "past_key_values.0.value present.0.value", 3, "past_key_values.0.value"},
		{states("gpt2.onnx"), tokens, "logits", 2, "logits"},
	} {
		m, err := onnxio.Open(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int64{1e9, 1 << 31, 1 << 40, 1 << 62, math.MaxInt64} {
			resize(m, tt.names, tt.axis, size)
			reliability.Heap(t, 0, func() {
				g, err := infer.ReadGraph(m, "", tt.card)
				if err == nil {
					err = g.Fits(memory.New(bytes))
				}
				want := fmt.Sprintf("%s: tensor %q: ", tt.file, tt.printed)
				if wrong, ok := err.(*onnxio.Error); !ok || !strings.HasPrefix(err.Error(), want) || !strings.Contains(wrong.Hint, "free dimensions") {
					t.Errorf("%s of %s, axis %d, is %d: error %v, want %s", tt.names, tt.file, tt.axis, size, err, want)
				}
			})
		}
		resize(m, tt.names, tt.axis, 2)
		if g, err := infer.ReadGraph(m, "", tt.card); err != nil || g.Fits(memory.New(bytes)) != nil {
			t.Errorf("%s of %s, axis %d, is 2: error %v", tt.names, tt.file, tt.axis, err)
		}
		m.Close()
	}
}

// FuzzStates: whatever the sizes of a graph are, reading it takes little memory, and what Fits allows is small.
func FuzzStates(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join("testdata", "states", "*.onnx"))
	if err != nil {
		f.Fatal(err)
	}
	const bytes = 128 << 20
	edit := func(value, axis uint8, size int64) []byte {
		return binary.LittleEndian.AppendUint64([]byte{value, axis}, uint64(size))
	}
	for i := range paths {
		for _, size := range []int64{1e9, 1 << 40, 1 << 62, -5, 0, 3} {
			f.Add(uint8(i), edit(1, 1, size))
			f.Add(uint8(i), slices.Concat(edit(1, 0, size), edit(4, 0, size)))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		m, err := onnxio.Open(paths[int(which)%len(paths)])
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		all := values(m)
		for ; len(edits) >= 10; edits = edits[10:] {
			if v := all[int(edits[0])%len(all)]; len(v.Shape) > 0 {
				axis := int(edits[1]) % len(v.Shape)
				v.Shape[axis], v.Dims[axis] = max(-1, int64(binary.LittleEndian.Uint64(edits[2:]))), ""
			}
		}
		reliability.Heap(t, 0, func() {
			g, err := infer.ReadGraph(m, "", swag.Card{Task: "next-token"})
			if err != nil || g.Fits(memory.New(bytes)) != nil {
				return
			}
			batch := int64(1)
			for _, v := range g.Inputs {
				batch = max(batch, v.Shape[0])
			}
			for _, v := range append(slices.Clone(g.Inputs), g.StateValues()...) {
				n := big.NewInt(batch)
				for _, d := range v.Shape[1:] {
					n.Mul(n, big.NewInt(max(1, d)))
				}
				if n.Cmp(big.NewInt(bytes/2/2)) > 0 { // floats have at least two bytes
					t.Errorf("%s of shape %v is allowed", v.Name, v.Shape)
				}
			}
		})
	})
}
