package ort

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights"
)

// parameterized returns the network of a file with the weights of the file, and inputs for it in batches of four. The weights are those
// that differ in another file of the network. There are no inputs for a network that cannot be run.
func parameterized(t *testing.T, path string) (f onnxio.Filled, in []Tensor) {
	t.Helper()
	models, err := checkpoints.Open([]string{path, strings.Replace(path, "-2.onnx", "-1.onnx", 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		t.Cleanup(func() { m.Close() })
	}
	set, err := checkpoints.New(models)
	if err != nil {
		return f, nil
	}
	m, of := set.Models[set.Reference], [2]weights.Vector{}
	for i, role := range []weights.Role{weights.Parameter, weights.Statistic} {
		if of[i], err = m.Vector(set.Layout, role); err != nil {
			t.Fatal(err)
		}
	}
	template, err := onnxio.NewRuntimeTemplate(m, set.Layout)
	if err == nil {
		f, err = template.Fill(set.Layout, of[0], of[1])
	}
	if err != nil {
		t.Fatal(err)
	}
	return f, some(m)
}

// first returns the first n rows of inputs.
func first(in []Tensor, n int64) (out []Tensor) {
	for _, t := range in {
		size := t.len() / int(t.Shape[0]) * int(n)
		t.Shape = append([]int64{n}, t.Shape[1:]...)
		t.F32, t.I64, t.U8, t.Raw = t.F32[:min(size, len(t.F32))], t.I64[:min(size, len(t.I64))], t.U8[:min(size, len(t.U8))], t.Raw[:min(size*RawSize(t.Type), len(t.Raw))]
		out = append(out, t)
	}
	return out
}

// Networks of all exporters give the same scores in a session for batches of one size as in one for all sizes. Batches of
// other sizes share one more session.
func TestFixedBatch(t *testing.T) {
	ran := 0
	for _, pattern := range []string{"cmd/swagwrap/testdata/*-2.onnx", "fixtures/exporters/*/ckpt-2.onnx", "fixtures/exporters/*/*/ckpt-2.onnx"} {
		paths, err := filepath.Glob("../../" + pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range paths {
			f, in := parameterized(t, path)
			if in == nil || strings.Contains(path, "noisy") { // it draws random numbers
				continue
			}
			free, fixed := openParameterized(t, f, 0), openParameterized(t, f, 4)
			if free.parameterized == nil {
				continue
			}
			opened := rt.copied.sessions.Load()
			for _, n := range []int64{4, 3, 4, 1, 2} {
				own := in
				if free.inputs[0].Shape[0] < 0 {
					own = first(in, n)
				}
				want, got := run(t, free, own...)[0], run(t, fixed, own...)[0]
				if !slices.Equal(want.Shape, got.Shape) {
					t.Fatalf("%s: shape %v, want %v", path, got.Shape, want.Shape)
				}
				for i, v := range want.F32 {
					if math.Abs(float64(v-got.F32[i])) > 1e-6*math.Max(1, math.Abs(float64(v))) {
						t.Fatalf("%s: score %d of %d rows is %v, want %v", path, i, n, got.F32[i], v)
					}
				}
			}
			if more := rt.copied.sessions.Load() - opened; more > 1 {
				t.Errorf("%s: %d more sessions for three other sizes, want 1", path, more)
			}
			ran++
		}
	}
	if ran < 60 {
		t.Errorf("%d networks ran", ran)
	}
}

func openParameterized(t *testing.T, f onnxio.Filled, batch int) *Session {
	t.Helper()
	s, err := rt.NewFilledSession(t.Context(), f, Options{Threads: 1, Provider: Provider{Parameterized: true}, Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Runs of batches of one size compute no shapes, nor what depends on shapes alone. These are the nodes that are left.
func TestFixedBatchNodes(t *testing.T) {
	for network, most := range map[string]int{"transformer-tied/dynamo": 38, "transformer-tied/torchscript-folding": 35, "lstm/dynamo": 33, "torchvision-resnet18": 16} {
		f, in := parameterized(t, "../../fixtures/exporters/"+network+"/ckpt-2.onnx")
		var nodes [2]int
		for i, batch := range []int{0, 4} {
			p, err := rt.Place(t.Context(), f, Options{Threads: 1, Provider: Provider{Parameterized: true}, Batch: batch}, func(*Session) ([]Tensor, error) { return in, nil })
			if err != nil {
				t.Fatal(err)
			}
			nodes[i] = p.Pieces
		}
		if nodes[1] > most || nodes[0] <= most {
			t.Errorf("%s: %d nodes with a free batch, %d with a fixed one, want %d", network, nodes[0], nodes[1], most)
		}
	}
}

// A graph that does not accept the batch has a session for all sizes.
func TestFixedBatchRefused(t *testing.T) {
	m, err := onnxio.Parse("even.onnx", read(t, "even.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	layout, err := weights.NewLayout([]weights.Tensor{{Name: "W", Role: weights.Parameter, DType: weights.F32, Shape: []int64{3, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	template, err := onnxio.NewRuntimeTemplate(m, layout)
	if err != nil {
		t.Fatal(err)
	}
	f, err := template.Fill(layout, weights.Slice{1, 2, 3, 4, 5, 6}, weights.Slice{})
	if err != nil {
		t.Fatal(err)
	}
	x := Tensor{Shape: []int64{2, 3}, F32: []float32{1, 0, 0, 0, 1, 0}}
	for batch, accepted := range map[int]bool{2: true, 3: false} {
		s := openParameterized(t, f, batch)
		if (s.parameterized.of.fixed != nil) != accepted || (s.parameterized.of.free != nil) == accepted {
			t.Errorf("batch %d: accepted %v", batch, s.parameterized.of.fixed != nil)
		}
		if got := run(t, s, x)[0].F32; !slices.Equal(got, []float32{1, 2, 3, 4}) {
			t.Errorf("batch %d: %v", batch, got)
		}
		if _, err := rt.Place(t.Context(), f, Options{Threads: 1, Provider: Provider{Parameterized: true}, Batch: batch}, func(*Session) ([]Tensor, error) { return []Tensor{x}, nil }); err != nil {
			t.Errorf("batch %d: %v", batch, err)
		}
	}
}

// If the memory of a GPU is too small for a batch, its session is closed before others run. The members keep their weights.
func TestFixedBatchDivided(t *testing.T) {
	f, in := parameterized(t, "../../fixtures/exporters/torchvision-resnet18/ckpt-2.onnx")
	want := run(t, openParameterized(t, f, 0), first(in, 2)...)[0].F32
	s := openParameterized(t, f, 4)
	end := SimulateGPU(&Simulation{Room: 2})
	defer end()
	if _, err := s.Run(t.Context(), in); err == nil || !strings.Contains(err.Error(), "the memory of the GPU is used up") || s.parameterized.of.fixed != nil {
		t.Fatalf("%v, session %v", err, s.parameterized.of.fixed)
	}
	if got := run(t, s, first(in, 2)...)[0].F32; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
