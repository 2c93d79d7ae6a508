package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// What export writes as weights is what it writes as a model: read against the graph again, SWA and members have the same
// bits. All else is as the last checkpoint has it: names, shapes, types, counters and ties.
func TestWeights(t *testing.T) {
	t.Parallel()
	fixtures := func(names ...string) string {
		return filepath.Join(append([]string{"..", "..", "fixtures"}, names...)...)
	}
	lora := filepath.Join("testdata", "lora")
	transposed := transposedStates(t, fixtures("exporters", "transformer-tied", "torchscript-folding"))
	for _, tt := range []struct {
		name, template, checkpoints, last, task string
		fit                                     []string
	}{
		{"state_dicts", fixtures("mnist", "model.onnx"), fixtures("mnist", "states"), fixtures("mnist", "states", "epoch-30.pt"), "", nil},
		{"a wrapper's prefix", fixtures("recipes", "wrapped", "model.onnx"), fixtures("recipes", "wrapped", "parallel"), "", "", nil},
		{"whole modules", fixtures("recipes", "wrapped", "model.onnx"), fixtures("recipes", "wrapped", "whole"), "", "", nil},
		{"Lightning", fixtures("recipes", "lightning", "model.onnx"), fixtures("recipes", "lightning", "checkpoints"), "", "", nil},
		{"timm", fixtures("recipes", "timm", "model.onnx"), fixtures("recipes", "timm", "output", "swag"), "", "", []string{"--state-dict", "state_dict"}},
		{"Hugging Face", fixtures("recipes", "trainer", "model.onnx"), fixtures("recipes", "trainer", "run"), fixtures("recipes", "trainer", "run", "checkpoint-65"), "", nil},
		{"adapters", filepath.Join(lora, "model.onnx") + "=" + filepath.Join(lora, "checkpoint-400"), lora, filepath.Join(lora, "checkpoint-400"), "next-token", nil},
		{"transposes", filepath.Join(transposed, "model.onnx"), transposed, filepath.Join(transposed, "epoch-3.pt"), "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			task := cmp.Or(tt.task, "classes")
			mustRun(t, append(append([]string{"fit", "-q", "--task", task, "--template", tt.template}, tt.fit...), "-o", at("p"), tt.checkpoints)...)
			last := tt.last
			if last == "" {
				last = lastCheckpoint(t, tt.checkpoints)
			}
			formats := []string{"x.pt", "x.safetensors"}
			if statefile.IsFolder(last) {
				formats = append(formats, "x/")
			}
			for _, of := range [][]string{nil, {"--member", "1"}} {
				export := append([]string{"export", "-q", "--force", "--bn", "keep"}, of...)
				mustRun(t, append(export, "-o", at("x.onnx"), at("p"))...)
				for _, name := range formats {
					mustRun(t, append(export, "-o", dir+"/"+name, at("p"))...)
					sameForm(t, at(name), last, name)
					sameWeights(t, at("p"), at("x.onnx"), at(name))
				}
			}
		})
	}
}

// sameWeights reads weights by the recipe of a posterior, and holds them against those of an exported model.
func sameWeights(t *testing.T, posterior, model, path string) {
	t.Helper()
	p, err := swag.Open(posterior)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	n, err := infer.NewNetwork(p, infer.KeepAll, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := checkpoints.Open([]string{path}, n.Template().Under(""))
	if err != nil {
		t.Fatal(err)
	}
	defer got[0].Close()
	want, err := onnxio.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	compared := 0
	for _, x := range p.Layout.Tensors {
		a, b := got[0].Tensor(x.Name), want.Tensor(x.Name)
		if x.Role == weights.Constant || b == nil {
			continue
		}
		if compared++; !bytes.Equal(got[0].Elements(a), want.Elements(b)) {
			t.Errorf("%s: tensor %q is not that of the model", path, x.Name)
		}
	}
	if compared < 3 {
		t.Errorf("%s: %d tensors compared", path, compared)
	}
}

// lastCheckpoint returns the last checkpoint that a fit of the folder takes.
func lastCheckpoint(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*[0-9].*"))
	if err != nil || len(paths) == 0 {
		t.Fatal(dir, err)
	}
	slices.SortFunc(paths, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b)/2 })
	return paths[len(paths)-1]
}

// sameForm holds the names, shapes, types and counters of an export against those of a checkpoint.
func sameForm(t *testing.T, path, checkpoint, name string) {
	t.Helper()
	a, b := firstDict(t, path), firstDict(t, checkpoint)
	for _, x := range b.All() {
		k := slices.IndexFunc(a.All(), func(y *statefile.Tensor) bool { return y.Name == x.Name })
		if k < 0 {
			t.Errorf("%s: tensor %q is missing", name, x.Name)
			continue
		}
		y := a.All()[k]
		if !slices.Equal(x.Shape, y.Shape) || x.DType != y.DType || !x.DType.IsFloat() && !bytes.Equal(x.Bytes(), y.Bytes()) {
			t.Errorf("%s: tensor %q is %v %v, want %v %v", name, x.Name, y.DType, y.Shape, x.DType, x.Shape)
		}
	}
	if len(a.All()) != len(b.All()) {
		t.Errorf("%s: %d tensors, want %d", name, len(a.All()), len(b.All()))
	}
}

func firstDict(t *testing.T, path string) *statefile.StateDict {
	t.Helper()
	f, err := statefile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	i := max(0, slices.IndexFunc(f.StateDicts(), func(sd *statefile.StateDict) bool { return sd.Key == "state_dict" }))
	return f.StateDicts()[i]
}

// transposedStates writes state_dicts for exports in which constants were folded: the tensors that the exporter numbered have
// the names and the order of PyTorch, which multiplies by the transpose.
func transposedStates(t *testing.T, exports string) string {
	t.Helper()
	dir := t.TempDir()
	for k := 1; k <= 3; k++ {
		m, err := onnxio.Open(filepath.Join(exports, fmt.Sprintf("ckpt-%d.onnx", k)))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var entries []statefile.Entry
		turned := 0
		for _, x := range m.Graph.Initializers {
			if !x.IsFloat() || len(x.Shape) == 0 {
				continue
			}
			e := statefile.Entry{Name: x.Name, DType: x.ElemType.DType(), Shape: x.Shape}
			data := m.Elements(x)
			if strings.HasPrefix(x.Name, "onnx::MatMul") && len(x.Shape) == 2 {
				turned++
				e.Name, e.Shape, data = fmt.Sprintf("layer.%d.weight", turned), []int64{x.Shape[1], x.Shape[0]}, turn(data, x.Shape)
			}
			e.Elements = func(w io.Writer) error { _, err := w.Write(data); return err }
			entries = append(entries, e)
		}
		if turned == 0 {
			t.Fatal("no transposes")
		}
		var b bytes.Buffer
		if err := statefile.Write(&b, "x", entries, ""); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("epoch-%d.pt", k)), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "graph"), os.DirFS(exports)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "graph", "ckpt-1.onnx"), filepath.Join(dir, "model.onnx")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// turn returns the transpose of a matrix of float32.
func turn(data []byte, shape []int64) []byte {
	out := make([]byte, len(data))
	rows, columns := int(shape[0]), int(shape[1])
	for r := range rows {
		for c := range columns {
			copy(out[4*(c*rows+r):][:4], data[4*(r*columns+c):])
		}
	}
	return out
}
