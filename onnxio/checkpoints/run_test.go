package checkpoints_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
)

// epochs returns the paths of three checkpoints of MNIST.
func epochs(kind, extension string) (paths []string) {
	for _, epoch := range []string{"28", "29", "30"} {
		paths = append(paths, filepath.Join("../../fixtures/mnist", kind, "epoch-"+epoch+extension))
	}
	return paths
}

// A run of ONNX models and one of PyTorch's files of the same epochs give the same members. Only the latter needs a template
// to be read again.
func TestOpenRun(t *testing.T) {
	var members [2][]float32
	for i, tt := range []struct {
		graph string
		paths []string
	}{{"", epochs("checkpoints", ".onnx")}, {"../../fixtures/mnist/model.onnx", epochs("states", ".pt")}} {
		run, err := checkpoints.OpenRun(t.Context(), tt.graph, tt.paths...)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "p")
		p, err := swag.FitFile(t.Context(), path, run.Input, swag.FitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Close(); err != nil {
			t.Fatal(err)
		}
		s, err := swag.NewSampler(p, swag.SampleOptions{Seed: 1, Scale: 0.5})
		if err == nil {
			members[i], err = s.Member(t.Context(), 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		if (p.Template != nil) != (tt.graph != "") || len(p.Graph) == 0 || p.Checkpoints[2].Path != tt.paths[2] || len(p.Checkpoints[2].SHA256) != 64 {
			t.Errorf("%q: template %s, %d bytes of graph, checkpoint %+v", tt.graph, p.Template, len(p.Graph), p.Checkpoints[2])
		}
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := swag.FitFile(t.Context(), path, run.Input, swag.FitOptions{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("a second fit to one file: error %v", err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, was) {
			t.Errorf("a second fit changed the file of the first: %v", err)
		}
		p.Close()
	}
	if !slices.Equal(members[0], members[1]) {
		t.Error("ONNX models and PyTorch's files give different members")
	}
}

// What cannot be opened or matched is an error, and leaves nothing open and no file.
func TestOpenRunFails(t *testing.T) {
	onnx, states := epochs("checkpoints", ".onnx"), epochs("states", ".pt")
	for _, tt := range []struct {
		name, graph string
		paths       []string
	}{
		{"a missing checkpoint", "", []string{onnx[0], "missing.onnx"}},
		{"a missing graph", "missing.onnx", states},
		{"no graph", "", states},
		{"one checkpoint twice", "", []string{onnx[0], onnx[0]}},
		{"another network", "", []string{onnx[0], "../testdata/batchnorm.onnx"}},
		{"nothing", "", nil},
	} {
		if run, err := checkpoints.OpenRun(t.Context(), tt.graph, tt.paths...); err == nil || run != nil {
			t.Errorf("%s: no error", tt.name)
		}
	}
	run, err := checkpoints.OpenRun(t.Context(), "", onnx[0], onnx[1])
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	path := filepath.Join(t.TempDir(), "p")
	if _, err := swag.FitFile(t.Context(), path, run.Input, swag.FitOptions{Rank: 1}); err == nil {
		t.Error("a fit of rank 1 is no error")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a fit that failed left a file: %v", err)
	}
}
