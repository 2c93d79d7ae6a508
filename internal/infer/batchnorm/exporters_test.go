package batchnorm_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// exported is a case of fixtures/exporters: checkpoints as a real exporter wrote
// them, and what its framework computes with them.
type exported struct {
	dir         string
	golden      *weights.Safetensors
	Case        string
	Checkpoints []string
	Batches     []int
	Frozen      []string // parameters of the framework's that are equal in all checkpoints
}

// exceptions are the cases that do not go the whole road, and why.
var exceptions = map[string]struct {
	refused  string // the error of NewSet
	noRun    string // the error of running it
	changed  bool   // written models differ from the file
	lastMade bool   // the golden outputs of the last checkpoint are not of this file
}{
	"bn-1d-3d/shared-dynamo":      {refused: "running statistics shared by batch norm nodes"},
	"bn-1d-3d/shared-torchscript": {refused: "running statistics shared by batch norm nodes"},
	// Brought back to inference. The exporter ran the network once in training
	// mode, which moved the statistics in the file away from the framework's.
	"bn-1d-3d/training-mode":   {changed: true, lastMade: true},
	"encodings/f16-int32-data": {changed: true}, // becomes raw data
	"control-flow/functions":   {refused: `batch norm inside function "ConvBnRelu0"`},
	"f16/bf16-dynamo":          {noRun: `type "bfloat16" is not supported`}, // nor by ONNX Runtime's CPU kernels
}

func exportedCases(t *testing.T) []exported {
	t.Helper()
	var cases []exported
	err := filepath.WalkDir(infertest.Path(infertest.Exporters), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "golden.json" {
			return err
		}
		c := exported{dir: filepath.Dir(path)}
		js, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(js, &c); err != nil {
			return err
		}
		c.golden, err = weights.OpenSafetensors(filepath.Join(c.dir, "golden.safetensors"))
		if err != nil {
			return err
		}
		t.Cleanup(func() { c.golden.Close() })
		cases = append(cases, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// array is a dataset in memory.
type array struct {
	shape  []int64
	values []float32
}

func newArray(t *testing.T, st *weights.Safetensors, name string) array {
	t.Helper()
	v, ok := st.View(name)
	if !ok {
		t.Fatalf("golden.safetensors has no %q", name)
	}
	a := array{shape: v.Shape[1:], values: make([]float32, v.Len())}
	if v.DType == weights.I64 {
		for i := range a.values {
			a.values[i] = float32(int64At(v.Data, i))
		}
		return a
	}
	v.Float32s(a.values, 0)
	return a
}

func int64At(b []byte, i int) int64 {
	var v int64
	for k := 7; k >= 0; k-- {
		v = v<<8 | int64(b[8*i+k])
	}
	return v
}

func (a array) size() int {
	n, _ := weights.Elements(a.shape)
	return int(n)
}
func (a array) Len() int                  { return len(a.values) / a.size() }
func (a array) Shape() []int64            { return a.shape }
func (a array) Labels() target.Target     { return target.Target{} }
func (a array) ClassNames() []string      { return nil }
func (a array) Name(i int) string         { return "example" }
func (a array) Sources() []dataset.Source { return nil }
func (a array) Read(dst dataset.Values, i int) error {
	copy(dst.Floats, a.values[i*a.size():])
	return nil
}

// Each real export goes the whole road: SWA's weights, its recomputed
// batch-norm statistics and its outputs against the framework's own, and every
// checkpoint back to the bytes it came from.
//
// Tolerances are the issue's: statistics 1e-5 relative and outputs 1e-4, for
// float16 1e-2 of both, since it has 11 bits.
func TestExporters(t *testing.T) {
	t.Parallel()
	testExporters(t, infertest.Run(t))
}

// Weights as inputs give what weights as constants give.
func TestExportersParameterized(t *testing.T) {
	t.Parallel()
	parameterized := ort.Provider{Parameterized: true}
	testExporters(t, infertest.Run(t).On(infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Provider: parameterized, Passes: parameterized})))
}

func testExporters(t *testing.T, e infer.Run) {
	for _, c := range exportedCases(t) {
		t.Run(c.Case, func(t *testing.T) {
			var models []*onnxio.Model
			for _, name := range c.Checkpoints {
				models = append(models, infertest.Open(t, filepath.Join(c.dir, name)))
			}
			statTol, outTol := 1e-5, 1e-4
			if models[0].FeedInputs()[0].ElemType == onnxio.Float16 {
				statTol, outTol = 1e-2, 1e-2
			}
			set, err := checkpoints.New(models)
			except := exceptions[c.Case]
			if except.refused != "" {
				infertest.WantError(t, err, except.refused)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			n := infertest.Network(t, infertest.Fit(t, models...))
			c.checkMean(t, set, n.Posterior)
			checkTies(t, n)
			if !except.changed {
				c.checkRoundTrip(t, n, set)
			}

			if except.noRun != "" {
				_, err := batchnorm.Recompute(t.Context(), e, n, make(weights.Slice, n.Posterior.Len()), batchnorm.Training{Data: newArray(t, c.golden, "input")})
				infertest.WantError(t, err, except.noRun)
				return
			}
			infertest.SWA(t, n.Posterior, func(parameters weights.Vector) error {
				statistics := n.Posterior.Statistics
				if n.Recomputes() {
					statistics = c.checkStatistics(t, e, n, set, parameters, statTol)
				}
				model, err := n.Model("SWA", parameters, statistics)
				if err != nil {
					return err
				}
				c.checkOutputs(t, e, model, "logits.swa", outTol)
				return nil
			})
			if except.lastMade {
				return
			}
			last, err := n.AsIs(models[len(models)-1])
			if err != nil {
				t.Fatal(err)
			}
			c.checkOutputs(t, e, last, "logits.last", outTol)
		})
	}
}

// named returns the golden tensor for a layout's entry: goldens bear the names
// of the first checkpoint, or the entry's where the first has several tensors
// merged into one.
func (c exported) named(t *testing.T, set *checkpoints.Set, prefix, name string) []float64 {
	t.Helper()
	v, ok := c.golden.View(prefix + set.Models[0].Tensor(name).Name)
	if own, found := c.golden.View(prefix + name); found && (!ok || len(set.Models[0].Tensors()) < len(set.Models[set.Reference].Tensors())) {
		v, ok = own, true
	}
	if !ok {
		return nil
	}
	out := make([]float64, v.Len())
	v.Float64s(out, 0)
	return out
}

// checkMean wants every parameter of the framework's in the layout, and no
// other that moved. float32 has seven digits.
func (c exported) checkMean(t *testing.T, set *checkpoints.Set, p *swag.Posterior) {
	t.Helper()
	found := 0
	for _, entry := range p.Layout.Tensors {
		if entry.Role != weights.Parameter {
			continue
		}
		want := c.named(t, set, "swa.", entry.Name)
		if want == nil {
			t.Errorf("%s: a parameter here, and none of the framework's", entry.Name)
			continue
		}
		found++
		got := make([]float64, entry.Len())
		p.Mean(got, entry.Offset)
		for i := range got {
			at := i
			if entry.Transposed {
				rows, columns := int(entry.Shape[0]), int(entry.Shape[1])
				at = i/rows + i%rows*columns
			}
			if infertest.Far(got[i], want[at], 1e-6, 1e-6) {
				t.Errorf("%s[%d]: mean %v, want %v", entry.Name, at, got[i], want[at])
				break
			}
		}
	}
	for _, s := range c.golden.Sections {
		if strings.HasPrefix(s.Name, "swa.") {
			found--
		}
	}
	if found+len(c.Frozen) != 0 {
		t.Errorf("%d of the framework's parameters were not found, want the %d frozen ones: %q", -found, len(c.Frozen), c.Frozen)
	}
}

// checkTies wants tied matrices to be equal in a member, after the exporter
// wrote them twice.
func checkTies(t *testing.T, n *infer.Network) {
	t.Helper()
	l := n.Posterior.Layout
	err := infer.EachMember(t.Context(), nil, n.Posterior, swag.SampleOptions{Seed: 1, Scale: 0.5}, 0, 1, func(_ int, parameters weights.Vector) error {
		model, err := n.Model("member", parameters, n.Posterior.Statistics)
		if err != nil {
			return err
		}
		b, err := model.Filled.Template.Render(l, parameters, n.Posterior.Statistics)
		if err != nil {
			return err
		}
		member, err := onnxio.Parse("member", b)
		if err != nil {
			return err
		}
		for _, entry := range l.Tensors {
			if entry.Tied == "" {
				continue
			}
			// As a layout of its own, each matrix is a vector.
			read := func(name string) []float32 {
				alone, err := weights.NewLayout([]weights.Tensor{{Name: name, Shape: member.Tensor(name).Shape, DType: entry.DType, Role: weights.Parameter}})
				if err != nil {
					t.Fatal(err)
				}
				v, err := member.Vector(alone, weights.Parameter)
				if err != nil {
					t.Fatal(err)
				}
				out := make([]float32, v.Len())
				if err := v.ReadAt(out, 0); err != nil {
					t.Fatal(err)
				}
				return out
			}
			a, b := read(entry.Tied), read(entry.Name)
			rows, columns := int(entry.Shape[0]), int(entry.Shape[1])
			for r := range rows {
				for k := range columns {
					at := r*columns + k
					if entry.Transposed {
						at = k*rows + r
					}
					if b[r*columns+k] != a[at] {
						t.Fatalf("%s and %s are not tied in a member", entry.Name, entry.Tied)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkRoundTrip wants every checkpoint to come out as it went in, its data
// files too: the reference through the posterior's graph, and each through a
// template of its own.
func (c exported) checkRoundTrip(t *testing.T, n *infer.Network, set *checkpoints.Set) {
	t.Helper()
	reference := set.Models[set.Reference]
	parameters, statistics, err := n.Vectors(reference)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := onnxio.ParseTemplate(n.Posterior.Graph)
	if err != nil {
		t.Fatal(err)
	}
	c.checkBytes(t, graph, n.Posterior.Layout, parameters, statistics)
	for _, name := range c.Checkpoints {
		m := infertest.Open(t, filepath.Join(c.dir, name))
		set, err := checkpoints.New([]*onnxio.Model{m})
		if err != nil {
			t.Fatal(err)
		}
		l := set.Layout
		tpl, err := onnxio.NewTemplate(m, l)
		if err != nil {
			t.Fatal(err)
		}
		parameters, err := m.Vector(l, weights.Parameter)
		if err != nil {
			t.Fatal(err)
		}
		statistics, err := m.Vector(l, weights.Statistic)
		if err != nil {
			t.Fatal(err)
		}
		c.checkBytes(t, tpl, l, parameters, statistics)
	}
}

func (c exported) checkBytes(t *testing.T, tpl *onnxio.Template, l *weights.Layout, parameters, statistics weights.Vector) {
	t.Helper()
	files := make(map[string]*bytes.Buffer)
	err := tpl.Write(tpl.Files()[0], func(name string) (io.Writer, error) {
		files[name] = &bytes.Buffer{}
		return files[name], nil
	}, l, parameters, statistics)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range files {
		want, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s: not the bytes it came from", name)
		}
	}
}

func (c exported) checkStatistics(t *testing.T, e infer.Run, n *infer.Network, set *checkpoints.Set, parameters weights.Vector, tol float64) weights.Slice {
	t.Helper()
	train := newArray(t, c.golden, "input")
	var batches [][]int
	next := 0
	for _, size := range c.Batches {
		var idx []int
		for range size {
			idx = append(idx, next)
			next++
		}
		batches = append(batches, idx)
	}
	got, err := batchnorm.RecomputeBatches(t.Context(), e, n, parameters, batchnorm.Training{Data: train}, batches)
	if err != nil {
		t.Fatal(err)
	}
	values := func(name string) []float64 {
		want := c.named(t, set, "bn.", name)
		if want == nil {
			t.Fatalf("golden.safetensors has no bn.%s", name)
		}
		return want
	}
	bns, err := set.Models[set.Reference].BatchNorms()
	if err != nil {
		t.Fatal(err)
	}
	for _, bn := range bns {
		mean, _ := n.Posterior.Layout.Find(bn.Mean)
		vari, _ := n.Posterior.Layout.Find(bn.Var)
		wantMean, wantVar := values(bn.Mean), values(bn.Var)
		for k := range wantMean {
			m, v := float64(got.Statistics[mean.Offset+int64(k)]), float64(got.Statistics[vari.Offset+int64(k)])
			if infertest.Far(m, wantMean[k], tol, math.Sqrt(wantVar[k])) || infertest.Far(v, wantVar[k], tol, 0) {
				t.Errorf("%s, channel %d: mean %v, want %v; variance %v, want %v", bn.Mean, k, m, wantMean[k], v, wantVar[k])
			}
		}
	}
	return got.Statistics
}

func (c exported) checkOutputs(t *testing.T, e infer.Run, model infer.Model, name string, tol float64) {
	t.Helper()
	s, err := e.Open(t.Context(), nil, model.Filled)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	test := newArray(t, c.golden, "input.test")
	out, err := s.Feed(t.Context(), test, dataset.Order{}.Indices(test.Len()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := infer.Float32s(out[0])
	if err != nil {
		t.Fatal(err)
	}
	v, ok := c.golden.View(name)
	if !ok || v.Len() != int64(len(got)) {
		t.Fatalf("%s: %d outputs, want %d", name, len(got), v.Len())
	}
	want := make([]float32, v.Len())
	v.Float32s(want, 0)
	for i := range got {
		if infertest.Far(float64(got[i]), float64(want[i]), tol, 1) {
			t.Errorf("%s[%d] = %v, want %v", name, i, got[i], want[i])
		}
	}
}
