package checkpoints

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// Later checkpoints are read by the layout of the earlier ones, whatever names
// they have; what was constant or tied before must be so in them.
func TestContinue(t *testing.T) {
	model := func(path string, seed int, names [3]string, constant, copied weights.Slice) *onnxio.Model {
		own := replacement(4, seed)
		if copied == nil {
			copied = own
		}
		nodes := [][]byte{
			node("Gemm", "first", []string{"x", names[0], names[2]}, []string{"h"}),
			node("Gemm", "last", []string{"h", names[1], names[2]}, []string{"y"}),
		}
		return withNodes(t, path, nodes, floats32(names[0], own, 2, 2), floats32(names[1], copied, 2, 2), floats32(names[2], constant, 2))
	}
	names, fixed := [3]string{"w", "copy", "c"}, weights.Slice{1, 2}
	first, second := model("a", 1, names, fixed, nil), model("b", 2, names, fixed, nil)
	l := layoutOf(t, first, second)
	if p := tensorNames(l.Role(weights.Parameter)); !slices.Equal(p, []string{"w"}) {
		t.Fatalf("parameters %q, want w alone", p)
	}

	renamed := model("d", 4, [3]string{"k", "l", "m"}, fixed, nil)
	s, err := Continue(second, l, []*onnxio.Model{model("c", 3, names, fixed, nil), renamed})
	if err != nil {
		t.Fatal(err)
	}
	if s.Layout != l || s.Reference != 0 || !s.ByPlace {
		t.Errorf("reference %d, by place %v", s.Reference, s.ByPlace)
	}
	for i, m := range s.Models {
		if p, _ := vectors(t, m, l); !slices.Equal(read(t, p), replacement(4, 3+i)) {
			t.Errorf("checkpoint %d: %v", i, read(t, p))
		}
	}

	const hint = "fit a new posterior from all checkpoints"
	for name, c := range map[string]struct {
		model      *onnxio.Model
		text, hint string
	}{
		"constant":  {model("e", 5, names, weights.Slice{1, 3}, nil), `e: tensor "c": differs, but was equal in all checkpoints of b`, hint},
		"copy":      {model("e", 5, names, fixed, replacement(4, 9)), `e: tensor "copy": differs from "w", but was one with it in all checkpoints of b`, hint},
		"no kin":    {tiny(t, floats32("w", replacement(4, 1), 2, 2)), "", "must come from one network"},
		"no layout": {fixture(t, "raw-f32"), "", ""},
	} {
		_, err := Continue(second, l, []*onnxio.Model{c.model})
		wantError(t, name, err, c.text, c.hint)
	}
}

// The sum is that of all files, one behind the other, and all bytes are reported.
func TestSum(t *testing.T) {
	m := fixture(t, "external")
	var all []byte
	for _, file := range m.Files() {
		all = append(all, file...)
	}
	read := 0
	got, err := Sum(t.Context(), m, func(n int) { read += n })
	if want := fmt.Sprintf("%x", sha256.Sum256(all)); err != nil || got != want || read != len(all) {
		t.Errorf("%s of %d bytes, %v, want %s of %d", got, read, err, want, len(all))
	}
}

// A sum ends with its context, within a file: large ones take many seconds.
func TestSumEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.onnx")
	model, err := os.ReadFile(filepath.Join("..", "testdata", "raw-f32.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	model = wire.AppendBytes(model, 6, make([]byte, 3*sumStretch)) // its doc_string
	if err := os.WriteFile(path, model, 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := onnxio.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	read := 0
	if _, err := Sum(ctx, m, func(n int) { read += n; cancel() }); !errors.Is(err, context.Canceled) || read != sumStretch {
		t.Errorf("%v after %d bytes", err, read)
	}
}

// Checkpoints that refer to one data file hold the same weights: the hint names the file, and how to save them.
func TestSharedData(t *testing.T) {
	t.Chdir(t.TempDir())
	refer := func(to, name string) []byte {
		entry := func(key, value string) []byte { return wire.AppendString(wire.AppendString(nil, 1, key), 2, value) }
		return wire.AppendBytes(outside(tensor(name, onnxio.Float, []int64{2, 3}, nil)), 13, entry("location", to))
	}
	for i, data := range []string{"one.data", "two.data"} {
		if err := os.WriteFile(data, bytes.Repeat([]byte{byte(i), 0, 0, 0x40}, 6), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	save := func(path, name, data string) string {
		if err := os.WriteFile(path, encode([][]byte{uses(name)}, refer(data, name)), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first, other := save("first.onnx", "w", "one.data"), save("other.onnx", "w", "two.data")
	for second, hint := range map[string]string{
		save("saved-again.onnx", "w", "one.data"):   "both refer to the data file one.data: ",
		save("and-renamed.onnx", "w.2", "one.data"): "both refer to the data file one.data: ",
		first: "give every checkpoint once",
	} {
		_, err := OpenRun(t.Context(), "", first, other, second)
		wantError(t, second, err, second+": has the same weights as first.onnx", hint)
		if _, err := OpenRun(t.Context(), "", first, second); second != first { // where no tensor differs at all
			wantError(t, second, err, second+": has the same weights as first.onnx", hint)
		}
	}
}
