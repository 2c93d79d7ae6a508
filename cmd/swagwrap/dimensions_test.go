package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// resized returns a model in which the named inputs and outputs have another size along an axis. It has no inferred
// shapes.
func resized(t *testing.T, path string, names []string, axis int, size uint64) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const inferred, valueName, shape, dimension, number = 13, 1, 2, 1, 1 // numbers of fields
	model := decodeModel(data)
	changed := 0
	for _, p := range places(model) {
		if p.kind == "graph" {
			p.fields = slices.DeleteFunc(p.fields, func(f *field) bool { return f.num == inferred })
		}
		if p.kind != "value" || !slices.ContainsFunc(p.fields, func(f *field) bool { return f.num == valueName && slices.Contains(names, string(f.bytes)) }) {
			continue
		}
		for _, s := range places(p.field) {
			if s.num == shape && s.kind == "shape" {
				s.fields[axis] = &field{num: dimension, wire: protowire.BytesType, kind: "dimension", fields: []*field{{num: number, wire: protowire.VarintType, number: size}}}
				changed++
			}
		}
	}
	if changed != len(names) {
		t.Fatalf("%s: %d of %q changed", path, changed, names)
	}
	return appendFields(nil, model.fields)
}

// A network that names sizes beyond the memory is refused before anything of these sizes is made: with the tensor's name, a
// hint, and exit code 65, within 200 MB.
func TestDimensions(t *testing.T) {
	dir := t.TempDir()
	program := executable(t, dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	small := func(name string) string { return filepath.Join("testdata", name) }
	states := func(name string) string { return infertest.Path("internal/infer/testdata/states", name) }
	tokens := append(numpy.Header("|u1", 200), make([]byte, 200)...)
	if err := os.WriteFile(at("tokens.npy"), tokens, 0o666); err != nil {
		t.Fatal(err)
	}
	images := small("images.npz")
	for _, tt := range []struct {
		files      [2]string
		fit, study []string
		names      string
		axes       int
	}{
		{[2]string{small("ckpt-1.onnx"), small("ckpt-2.onnx")}, []string{"--task", "classes"}, []string{"--bn-data", images}, "input", 4},
		{[2]string{small("ckpt-1.onnx"), small("ckpt-2.onnx")}, []string{"--task", "classes"}, []string{"--bn-data", images}, "logits", 2},
		{[2]string{small("language-1.onnx"), small("language-2.onnx")}, []string{"--task", "next-token", "--class-axis", "-1"}, []string{"--text", "rows=1 reset=windows"}, "x", 2},
		{[2]string{states("lstm2-a.onnx"), states("lstm2-b.onnx")}, []string{"--task", "next-token"}, []string{"--text", "rows=3 bptt=10"}, "h0 hn", 3},
		{[2]string{states("lstm2-a.onnx"), states("lstm2-b.onnx")}, []string{"--task", "next-token"}, []string{"--text", "rows=3 bptt=10"}, "scores", 3},
	} {
		data := images
		if tt.study[0] == "--text" {
			data = at("tokens.npy")
		}
		names := strings.Fields(tt.names)
		for axis := range tt.axes {
			if axis == 0 && (names[0] == "logits" || names[0] == "scores") {
				continue // the batch of an output is not used
			}
			for _, size := range []uint64{1e9, 1 << 40} {
				for k, file := range tt.files {
					if err := os.WriteFile(at(fmt.Sprint(k)), resized(t, file, names, axis, size), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				what := fmt.Sprintf("%s, axis %d, is %d", tt.names, axis, size)
				c := exec.Command(program, append(append([]string{"fit", "-q", "--force", "-o", at("p")}, tt.fit...), at("0"), at("1"))...)
				printed, peak := measured(t, c)
				if c.ProcessState.Success() {
					c = exec.Command(program, append(append([]string{"compare", "-q", "--memory", "128M", "--methods", "sgd"}, tt.study...), at("p"), data)...)
					printed, peak = measured(t, c)
				}
				if code := c.ProcessState.ExitCode(); code != 65 || !strings.Contains(printed, fmt.Sprintf("tensor %q: ", names[0])) || !strings.Contains(printed, "\nhint: ") || peak > 200<<20 {
					t.Errorf("%s: exit code %d, %d MB: %s", what, code, peak>>20, printed)
				}
			}
		}
	}
}
