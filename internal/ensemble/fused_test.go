package ensemble_test

import (
	"bufio"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/fused"
	"github.com/swagwrap/swagwrap/swag"
)

// made are examples that a network takes: normal numbers, or small whole ones.
type made struct {
	shape []int64
	count int
	whole bool
}

func (x made) Len() int                  { return x.count }
func (x made) Shape() []int64            { return x.shape }
func (x made) Labels() target.Target     { return target.Target{} }
func (x made) ClassNames() []string      { return nil }
func (x made) Name(int) string           { return "example" }
func (x made) Sources() []dataset.Source { return nil }
func (x made) Read(dst dataset.Values, i int) error {
	r := rand.New(rand.NewPCG(7, uint64(i)))
	for k := range dst.Floats {
		if dst.Floats[k] = float32(r.NormFloat64()); x.whole {
			dst.Floats[k] = float32(r.IntN(8))
		}
	}
	return nil
}

// members is an ensemble of so many members of each network, with the statistics of
// checkpoints in turn.
func members(networks []*infer.Network, each int, weight []float64) *ensemble.Ensemble {
	e := &ensemble.Ensemble{Path: "e.safetensors", ID: "0123", Sampling: ensemble.Draw{Seed: 1, Scale: 0.5, Covariance: "swag-diag"}}
	for i, n := range networks {
		c := ensemble.Component{Posterior: ensemble.Reference{Path: n.Posterior.Path, ID: n.Posterior.ID}, Members: each, Weight: 1 / float64(len(networks))}
		if weight != nil {
			c.Weight = weight[i]
		}
		for k := range each {
			stored := n.Posterior.StoredStatistics
			c.Statistics = append(c.Statistics, stored[k%len(stored)])
		}
		e.Components = append(e.Components, c)
	}
	return e
}

// files has a fused model's files written into a folder, and returns the path of the model.
func files(t *testing.T, e *infer.Engine, j *ensemble.Fused) string {
	t.Helper()
	m, err := j.Model(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var open []*os.File
	var buffers []*bufio.Writer
	err = j.Write(t.Context(), m, "fused.onnx", func(name string) (io.Writer, error) {
		f, err := os.Create(filepath.Join(dir, name))
		open, buffers = append(open, f), append(buffers, bufio.NewWriter(f))
		return buffers[len(buffers)-1], err
	}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	model, data, err := m.Size("fused.onnx")
	for i, f := range open {
		buffers[i].Flush()
		size, _ := f.Seek(0, io.SeekEnd)
		if want := []int64{data, model}[len(open[i:])%2]; len(open) == 2 && size != want || err != nil {
			t.Errorf("%s: %d bytes, want %d, %v", f.Name(), size, want, err)
		}
		f.Close()
	}
	path := filepath.Join(dir, "fused.onnx")
	if err := infertest.NodeReadsOutput(infertest.Open(t, path)); err != nil {
		t.Error(err)
	}
	return path
}

// record is what a model or a scorer tells of examples.
type record struct{ prob, entropy, mutual []float64 }

// largest returns the largest differences of two.
func (a record) largest(b record) (prob, entropy, mutual float64) {
	d := func(a, b []float64) (d float64) {
		if len(a) != len(b) {
			return math.Inf(1)
		}
		for i, v := range a {
			if v != v || b[i] != b[i] {
				return math.NaN()
			}
			d = max(d, math.Abs(v-b[i]))
		}
		return d
	}
	return d(a.prob, b.prob), d(a.entropy, b.entropy), d(a.mutual, b.mutual)
}

// run runs a fused model.
func run(t *testing.T, e *infer.Engine, m *onnxio.Model, data dataset.Dataset) record {
	t.Helper()
	filled, err := m.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	out := outputs(t, e, filled, data, 7, "prob", "entropy", "mutual_information") // batches of two sizes
	return record{wide(out[0]), wide(out[1]), wide(out[2])}
}

func wide(values []float32) (out []float64) {
	for _, v := range values {
		out = append(out, float64(v))
	}
	return out
}

// outputs runs a model over data, and returns what its outputs give for all examples.
func outputs(t *testing.T, e *infer.Engine, model onnxio.Filled, data dataset.Dataset, batch int, names ...string) [][]float32 {
	t.Helper()
	s, err := e.Open(t.Context(), nil, model, names...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := make([][]float32, max(1, len(names)))
	for from := 0; from < data.Len(); from += batch {
		var rows []int
		for i := from; i < min(from+batch, data.Len()); i++ {
			rows = append(rows, i)
		}
		got, err := s.Feed(t.Context(), data, rows)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if len(got[i].Shape) != 2 || int(got[i].Shape[0]) != len(rows) {
				t.Errorf("output %d has the shape %d for %d examples", i, got[i].Shape, len(rows))
			}
			all[i] = append(all[i], got[i].F32...)
		}
	}
	return all
}

// scored is what rows say, as score writes them.
func scored(t *testing.T, e *infer.Engine, mix *ensemble.Ensemble, networks []*infer.Network, data dataset.Dataset) record {
	t.Helper()
	s, err := ensemble.NewScorer(t.Context(), e, ensemble.Scoring{Ensemble: mix, Networks: networks, Data: data, Want: task.RowOptions{Outcomes: true}})
	if err != nil {
		t.Fatal(err)
	}
	var out record
	err = s.Run(t.Context(), 0, nil, func(c *infer.Chunk) error {
		for row := range s.Rows(c) {
			at := 0
			for _, column := range s.Schema(1).Columns {
				values := row.Values[at:][:column.Len()]
				at += column.Len()
				switch column.Name {
				case "probs":
					out.prob = append(out.prob, values...)
				case "predictive_entropy":
					out.entropy = append(out.entropy, values...)
				case "mutual_information":
					out.mutual = append(out.mutual, values...)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFusedExporters: a fused model gives what score gives, probabilities, entropy and mutual
// information to 1e-6, some ten roundings of float32: with control flow, other types, old
// opsets, recurrent layers, and constants outside initializers. make nightly takes all
// fixtures.
func TestFusedExporters(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"control-flow/if-body-initializers", "control-flow/constants-frozen", "control-flow/ir3-inputs",
		"torchvision-mobile/dynamo", "f16/f64-dynamo", "bn-1d-3d/torchscript-opset7"} {
		t.Run(name, func(t *testing.T) { fusedExporter(t, engine(t), name) })
	}
}

// fusedExporter holds the fused model of a fixture's checkpoints against score.
func fusedExporter(t *testing.T, e *infer.Engine, name string) {
	var info struct{ Checkpoints []string }
	testfile.JSON(t, infertest.Path(infertest.Exporters, name, "golden.json"), &info)
	var models []*onnxio.Model
	for _, f := range info.Checkpoints {
		models = append(models, infertest.Open(t, infertest.Path(infertest.Exporters, name, f)))
	}
	n := infertest.Network(t, infertest.FitWith(t, swag.FitOptions{Rank: 2}, models...))
	shape := slices.Clone(n.Input.Shape[1:])
	for i, d := range shape {
		if d < 0 {
			shape[i] = 5
		}
	}
	networks := []*infer.Network{n}
	data := made{shape, 10, !n.Input.ElemType.DType().IsFloat()}
	mix := members(networks, 3, nil)
	want := scored(t, e, mix, networks, data)
	tol := 1e-6
	if strings.HasPrefix(name, "f16/") && name != "f16/f64-dynamo" {
		tol = 2e-3 // 11 bits, and another order of operations where casts are fused
	}
	j := &ensemble.Fused{Ensemble: mix, Networks: networks, Members: mix.All()}
	m := infertest.Open(t, files(t, e, j))
	near(t, run(t, e, m, data), want, tol)
	tensorConstants(t, m)
	// A deviation in 8 bits is off by a 254th of the largest in its row.
	j.Storage, j.External = fused.Int8, true
	near(t, run(t, e, infertest.Open(t, files(t, e, j)), data), want, 1e-2)
}

// tensorConstants fails where a Constant is not a tensor, which several compilers do not read.
func tensorConstants(t *testing.T, m *onnxio.Model) {
	t.Helper()
	for _, g := range m.Graphs() {
		for _, n := range g.Nodes {
			for _, a := range n.Attributes {
				if n.OpType == "Constant" && a.Name != "value" {
					t.Errorf("%q is a constant in %s, want a tensor", n.Outputs, a.Name)
				}
			}
		}
	}
}

// near fails where a number of got is further than tol from that of want.
func near(t *testing.T, got, want record, tol float64) {
	t.Helper()
	prob, entropy, mutual := got.largest(want)
	t.Logf("off by %.2g in probability, %.2g in entropy, %.2g in mutual information", prob, entropy, mutual)
	if !(prob <= tol && entropy <= tol && mutual <= tol) {
		t.Errorf("off by %.2g in probability, %.2g in entropy, %.2g in mutual information, want %g", prob, entropy, mutual, tol)
	}
}

// Members of two posteriors that weigh differently, all and some of them.
func TestFusedMixture(t *testing.T) {
	t.Parallel()
	e, networks, data := engine(t), infertest.Halves(t), made{[]int64{1, 28, 28}, 20, false}
	mix := members(networks, 2, []float64{0.7, 0.3})
	for _, c := range []*float64{nil, ptr(2.5)} {
		if c != nil {
			mix.Calibration = task.WithNumber("classes", *c)
		}
		j := &ensemble.Fused{Ensemble: mix, Networks: networks, Members: mix.All(), Producer: "swagwrap", Version: "v1"}
		path := files(t, e, j)
		near(t, run(t, e, infertest.Open(t, path), data), scored(t, e, mix, networks, data), 1e-6)
	}
	// Of the first posterior one member is left, which has the weight of both.
	j := &ensemble.Fused{Ensemble: mix, Networks: networks, Members: []int{1, 2, 3}}
	d, err := j.Check(t.Context(), e, files(t, e, j), data)
	if err != nil || d.Largest > 1e-6 || d.Changed > 0 || d.Examples != 20 {
		t.Errorf("%+v, %v", d, err)
	}
	j = &ensemble.Fused{Ensemble: mix, Networks: networks, Members: []int{2, 3}}
	if d, err = j.Check(t.Context(), e, files(t, e, j), data); err != nil || d.Largest > 1e-6 {
		t.Errorf("%+v, %v", d, err)
	}
}

func ptr[T any](v T) *T { return &v }
