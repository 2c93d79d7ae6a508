package ensemble

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/onnxio"
	ckpt "github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// The golden numbers are PyTorch's, in float64; fixtures/mnist/make.py made
// them from the same checkpoints, and golden.json defines each in words.
const fixture = "../../fixtures/mnist"

// scores are the metrics of one method in golden.json. Repeated methods have
// them under mean and std.
type scores struct {
	Accuracy, NLL, Brier, ECE float64
	Temperature               float64
	Mean, Std                 *scores
}

func goldenScores(t *testing.T) map[string]scores {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixture, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g struct{ Metrics map[string]scores }
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g.Metrics
}

func goldenTensors(t *testing.T, folder string) *weights.Safetensors {
	t.Helper()
	st, err := weights.OpenSafetensors(filepath.Join(folder, "golden.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// golden returns a golden tensor's values.
func golden(t *testing.T, st *weights.Safetensors, name string) []float64 {
	t.Helper()
	v, ok := st.View(name)
	if !ok {
		t.Fatalf("golden.safetensors has no %q", name)
	}
	out := make([]float64, v.Len())
	v.Float64s(out, 0)
	return out
}

func openRuntime(t *testing.T) *ort.Runtime {
	t.Helper()
	path, err := ort.Locate("")
	if err != nil {
		t.Fatalf("%v (run make setup)", err)
	}
	rt, err := ort.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func checkpoints(t *testing.T) []*onnxio.Model {
	t.Helper()
	return openAll(t, filepath.Join(fixture, "checkpoints"), 30)
}

// openAll opens the epochs of a run, of which there are so many.
func openAll(t *testing.T, folder string, count int) []*onnxio.Model {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "epoch-*.onnx"))
	if err != nil || len(paths) != count {
		t.Fatalf("%s: %d checkpoints, %v", folder, len(paths), err)
	}
	var models []*onnxio.Model
	for _, p := range paths {
		models = append(models, open(t, p))
	}
	return models
}

func open(t *testing.T, path string) *onnxio.Model {
	t.Helper()
	m, err := onnxio.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// fit fits the fixture's posterior, with θ0 or without.
func fit(t *testing.T, theta0 bool) *swag.Posterior {
	t.Helper()
	models := checkpoints(t)
	if theta0 {
		models = append([]*onnxio.Model{open(t, filepath.Join(fixture, "checkpoints", "theta0.onnx"))}, models...)
	}
	set, err := ckpt.New(models)
	if err != nil {
		t.Fatal(err)
	}
	return fitIterates(t, set, theta0)
}

// fitSet fits a posterior to all checkpoints of a set.
func fitSet(t *testing.T, set *ckpt.Set) *swag.Posterior {
	t.Helper()
	return fitIterates(t, set, false)
}

func fitIterates(t *testing.T, set *ckpt.Set, theta0 bool) *swag.Posterior {
	t.Helper()
	vector := func(m *onnxio.Model, r weights.Role) weights.Vector {
		v, err := m.Vector(set.Layout, r)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	it := swag.Input{Layout: set.Layout}
	for _, m := range set.Models {
		it.Checkpoints = append(it.Checkpoints, swag.Checkpoint{Path: m.Path, Theta: vector(m, weights.Parameter), Statistics: vector(m, weights.Statistic)})
	}
	if theta0 {
		it.Theta0, it.Checkpoints = &it.Checkpoints[0], it.Checkpoints[1:]
	}
	graph, err := onnxio.NewTemplate(set.Models[set.Reference], set.Layout)
	if err != nil {
		t.Fatal(err)
	}
	if it.Graph, err = graph.MarshalBinary(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "posterior.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := swag.Fit(t.Context(), f, it, swag.FitOptions{}); err != nil {
		t.Fatal(err)
	}
	p, err := swag.Open(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func network(t *testing.T, p *swag.Posterior) *Network {
	t.Helper()
	n, err := NewNetwork(p, RecomputeTrained)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func data(t *testing.T, name string) dataset.Dataset {
	t.Helper()
	return openData(t, filepath.Join(fixture, name), dataset.Options{Preprocess: preprocess.Settings{Mean: []float64{0.1307}, Std: []float64{0.3081}}})
}

func openData(t *testing.T, path string, opts dataset.Options) dataset.Dataset {
	t.Helper()
	d, err := dataset.Open([]string{path}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fileOrder visits training images as the golden run did.
func fileOrder(t *testing.T) BatchNormData { return BatchNormData{Data: data(t, "train.npz")} }

// far reports whether got is off want by more than tol, relative to the larger
// of want and floor.
func far(got, want, tol, floor float64) bool {
	return !(math.Abs(got-want) <= tol*max(math.Abs(want), floor))
}

// Mean, variance and deviations against PyTorch. The issue asks for 1e-6, 1e-5
// and 1e-6 relative; mean and variance are float64 on both sides and differ by
// rounding alone, the deviations are float32 on both.
func TestGoldenPosterior(t *testing.T) {
	st := goldenTensors(t, fixture)
	for _, tc := range []struct {
		theta0     bool
		mean, vari string
		models     int
	}{
		{false, "swa.", "var.", 30},
		{true, "swa0.", "var0.", 31},
	} {
		p := fit(t, tc.theta0)
		if p.Options.Models != tc.models || p.Options.Columns != 20 {
			t.Errorf("θ0 %v: %+v", tc.theta0, p.Options)
		}
		k := p.Options.Columns
		for _, tensor := range p.Layout.Role(weights.Parameter) {
			n := tensor.Len()
			mean, variance := make([]float64, n), make([]float64, n)
			var deviations [][]float32
			for range k {
				deviations = append(deviations, make([]float32, n))
			}
			p.Mean(mean, tensor.Offset)
			p.Variance(variance, tensor.Offset)
			if err := p.Deviations(deviations, tensor.Offset); err != nil {
				t.Fatal(err)
			}
			wantMean, wantVar := golden(t, st, tc.mean+tensor.Name), golden(t, st, tc.vari+tensor.Name)
			for i := range n {
				if far(mean[i], wantMean[i], 1e-12, 0) || far(variance[i], wantVar[i], 1e-10, 0) {
					t.Fatalf("θ0 %v: %s[%d]: mean %v, want %v; variance %v, want %v", tc.theta0, tensor.Name, i, mean[i], wantMean[i], variance[i], wantVar[i])
				}
			}
			if tc.theta0 {
				continue // the golden file has the deviations of the default alone
			}
			wantDev := golden(t, st, "dev."+tensor.Name) // [K, n]
			for i := range int(n) {
				for c := range k {
					if got, want := float64(deviations[c][i]), wantDev[c*int(n)+i]; far(got, want, 1e-6, 0) {
						t.Fatalf("deviation %d of %s[%d]: %v, want %v", c, tensor.Name, i, got, want)
					}
				}
			}
		}
	}
}

// Recomputed statistics of SWA against PyTorch's after the reference's
// bn_update.
func TestGoldenBatchNorm(t *testing.T) {
	st, n := goldenTensors(t, fixture), network(t, fit(t, false))
	e := &Engine{Runtime: openRuntime(t)}
	err := EachMember(t.Context(), n.Posterior, swag.SampleOptions{}, 0, 1, func(_ int, parameters weights.Vector) error {
		got, err := e.Recompute(t.Context(), n, parameters, fileOrder(t))
		if err != nil {
			return err
		}
		if got.Images != 1000 || got.BatchSize != 128 {
			t.Errorf("%d images in batches of %d", got.Images, got.BatchSize)
		}
		checkStatistics(t, n, got.Statistics, st, "bn.")
		// The network with these weights and statistics gives PyTorch's logits.
		model, err := n.Model(parameters, weights.Slice(got.Statistics))
		if err != nil {
			return err
		}
		checkLogits(t, e, model, data(t, "test.npz"), golden(t, st, "logits.swa"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	last, err := open(t, filepath.Join(fixture, "checkpoints", "epoch-30.onnx")).Runtime()
	if err != nil {
		t.Fatal(err)
	}
	checkLogits(t, e, last, data(t, "test.npz"), golden(t, st, "logits.epoch-30"))
}

// checkStatistics compares statistics with golden tensors, whose names begin with
// prefix, within 1e-5 relative; means relative to the channel's standard deviation
// where they are smaller, since a mean near 0 is a difference of larger numbers.
func checkStatistics(t *testing.T, n *Network, got []float32, st *weights.Safetensors, prefix string) {
	t.Helper()
	tensors := n.Posterior.Layout.Role(weights.Statistic)
	for i, tensor := range tensors {
		want := golden(t, st, prefix+tensor.Name)
		floor := make([]float64, len(want))
		if i%2 == 0 { // a mean; the next tensor is its variance
			for c, v := range golden(t, st, prefix+tensors[i+1].Name) {
				floor[c] = math.Sqrt(v)
			}
		}
		for c := range want {
			if g := float64(got[tensor.Offset+int64(c)]); far(g, want[c], 1e-5, floor[c]) {
				t.Errorf("%s%s[%d] = %v, want %v", prefix, tensor.Name, c, g, want[c])
			}
		}
	}
}

// checkLogits compares the first test images' logits, which are around 10 in
// size, within 1e-4.
func checkLogits(t *testing.T, e *Engine, model onnxio.Filled, test dataset.Dataset, want []float64) {
	t.Helper()
	s, err := e.open(t.Context(), model, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	idx := make([]int, len(want)/10)
	for i := range idx {
		idx[i] = i
	}
	out, err := s.run(t.Context(), test, idx)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range out[0].F32 {
		if math.Abs(float64(v)-want[i]) > 1e-4 {
			t.Errorf("logit %d: %v, want %v", i, v, want[i])
		}
	}
}

// Every method's scores against PyTorch's. Methods without random numbers
// differ by float32 arithmetic alone: NLL within 1e-4, and at most one of 5,000
// images may change sides. The others must lie within three standard
// deviations of PyTorch's ten repeats.
func TestGoldenMethods(t *testing.T) {
	want := goldenScores(t)
	c := &Comparison{
		Lineup: Lineup{
			Runs: []Run{{network(t, fit(t, false)), checkpoints(t)}}, BatchNorm: fileOrder(t),
			Methods: []string{SGD, SGDs, StaleSWA, SWA, SWATemp, SWAGDiag, SWAG},
			Members: 30, Seed: 1, Scale: swag.LowRankPlusDiagonal.DefaultScale(),
		},
		Validation: data(t, "val.npz"), Test: data(t, "test.npz"),
	}
	methods, err := c.Run(t.Context(), &Engine{Runtime: openRuntime(t)})
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"sgd", "sgd_ensemble", "swa_stale", "swa", "swa_temp", "swag_diag", "swag"}
	if len(methods) != len(keys) {
		t.Fatalf("%d methods, want %d", len(methods), len(keys))
	}
	for i, m := range methods {
		w, tol := want[keys[i]], scores{Accuracy: 1.0 / 5000, NLL: 1e-4, Brier: 1e-4, ECE: 2e-4}
		if w.Mean != nil {
			tol = scores{Accuracy: 3 * w.Std.Accuracy, NLL: 3 * w.Std.NLL, Brier: 3 * w.Std.Brier, ECE: 3 * w.Std.ECE}
			w = *w.Mean
		}
		for _, s := range []struct {
			name           string
			got, want, tol float64
		}{
			{"accuracy", m.Metrics.Accuracy, w.Accuracy, tol.Accuracy},
			{"NLL", m.Metrics.NLL, w.NLL, tol.NLL},
			{"Brier", m.Metrics.Brier, w.Brier, tol.Brier},
			{"ECE", m.Metrics.ECE, w.ECE, tol.ECE},
		} {
			t.Logf("%-22s %-9s %.5f, PyTorch %.5f, tolerance %.5f", m.Name, s.name, s.got, s.want, s.tol)
			if math.Abs(s.got-s.want) > s.tol {
				t.Errorf("%s: %s %v, want %v ± %v", m.Name, s.name, s.got, s.want, s.tol)
			}
		}
		if m.Key == SWATemp && far(m.Scaling.Temperatures[0], w.Temperature, 1e-4, 0) {
			t.Errorf("temperature %v, want %v", m.Scaling.Temperatures, w.Temperature)
		}
	}
}
