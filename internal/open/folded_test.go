package open

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

type noted struct {
	quiet
	notes *[]string
}

func (n noted) Logf(format string, _ ...any) { *n.notes = append(*n.notes, format) }

// A PyTorch checkpoint near graphs without normalisation shows that batch norm was folded before their export. Without one there is a note.
func TestFoldedBefore(t *testing.T) {
	t.Parallel()
	graph, err := os.ReadFile("../../fixtures/buffers/checkpoints/attribute-ts-1.onnx")
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnxio.Open("../../fixtures/buffers/checkpoints/attribute-ts-1.onnx")
	if err != nil {
		t.Fatal(err)
	}
	shape := m.Tensor("0.weight").Shape
	m.Close()
	for what, c := range map[string]struct {
		tensors map[string][]int64 // of a checkpoint beside the graph, or nil
		folded  bool
	}{
		"none":             {},
		"with statistics":  {map[string][]int64{"model.0.weight": shape, "model.1.running_var": {shape[0]}}, true},
		"no statistics":    {map[string][]int64{"0.weight": shape}, false},
		"another network":  {map[string][]int64{"0.weight": {1, 2}, "1.running_var": {2}}, false},
		"other names only": {map[string][]int64{"stem.weight": shape, "1.running_var": {2}}, false},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "epoch.onnx")
		if err := os.WriteFile(path, graph, 0o666); err != nil {
			t.Fatal(err)
		}
		var entries []statefile.Entry
		for name, shape := range c.tensors {
			n := int64(1)
			for _, d := range shape {
				n *= d
			}
			entries = append(entries, statefile.Entry{Name: name, DType: weights.F32, Shape: shape, Elements: func(w io.Writer) error {
				return weights.WriteFloats(w, make([]float32, n))
			}})
		}
		if entries != nil {
			f, err := os.Create(filepath.Join(dir, "epoch.pt"))
			if err == nil {
				err = statefile.Write(f, "x", entries, "")
				f.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		m, err := onnxio.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var notes []string
		s := &FitInputs{Opener: &Opener{Reporter: noted{notes: &notes}}, models: []*onnxio.Model{m}, source: &Source{}}
		of, sign := foldedBefore(s)
		if (sign != nil) != c.folded || c.folded && (of != path || !strings.Contains(sign.String(), "epoch.pt has its statistics")) || (len(notes) == 0) != c.folded {
			t.Errorf("%s: %v, notes %q", what, sign, notes)
		}
	}
}
