// Package infertest opens what tests of networks need: ONNX Runtime, and the checkpoints and data of fixtures/.
// Everything that a function opens for a test is closed when the test ends. Posteriors that many tests need are
// fitted once in a process and shared. Tests must not change or close them.
//
// # Concurrency
//
// All functions may be called from tests that run in parallel.
package infertest

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/onnxio"
	ckpt "github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Folders of fixtures, for [Path]. The networks of Small take images of 1×4×4 and have 3 classes.
const (
	MNIST     = "fixtures/mnist"
	Augmented = "fixtures/augmented"
	Exporters = "fixtures/exporters"
	Small     = "cmd/swagwrap/testdata"
)

// Path returns a path below the root of the repository.
func Path(elements ...string) string { return filepath.Join(append([]string{root()}, elements...)...) }

var root = sync.OnceValue(func() string {
	dir := "."
	for range 10 {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Join(dir, "..")
	}
	return dir
})

// Runtime opens ONNX Runtime.
func Runtime(t testing.TB) *ort.Runtime {
	t.Helper()
	library, err := ort.Provider{}.Find("")
	if err != nil {
		t.Fatalf("%v (run make setup)", err)
	}
	rt, err := ort.Provider{}.Open(library.Path)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// Engine returns an engine with default settings.
func Engine(t testing.TB) *infer.Engine {
	t.Helper()
	return &infer.Engine{Runtime: Runtime(t)}
}

// SWA calls f with the weights of SWA.
func SWA(t testing.TB, p *swag.Posterior, f func(parameters weights.Vector) error) {
	t.Helper()
	err := infer.EachMember(t.Context(), p, swag.SampleOptions{}, 0, 1, func(_ int, parameters weights.Vector) error { return f(parameters) })
	if err != nil {
		t.Fatal(err)
	}
}

// Open opens a model.
func Open(t testing.TB, path string) *onnxio.Model {
	t.Helper()
	m, err := onnxio.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Epochs opens the checkpoints of a run in their order. There must be count of them.
func Epochs(t testing.TB, folder string, count int) []*onnxio.Model {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "epoch-*.onnx"))
	if err != nil || len(paths) != count {
		t.Fatalf("%s: %d checkpoints, %v", folder, len(paths), err)
	}
	var models []*onnxio.Model
	for _, p := range paths {
		models = append(models, Open(t, p))
	}
	return models
}

// Checkpoints opens the thirty checkpoints of MNIST.
func Checkpoints(t testing.TB) []*onnxio.Model {
	t.Helper()
	return Epochs(t, Path(MNIST, "checkpoints"), 30)
}

// Fit fits a posterior to models, in a temporary file of the test.
func Fit(t testing.TB, models ...*onnxio.Model) *swag.Posterior {
	t.Helper()
	return FitWith(t, swag.FitOptions{}, models...)
}

// FitWith is Fit with options.
func FitWith(t testing.TB, opts swag.FitOptions, models ...*onnxio.Model) *swag.Posterior {
	t.Helper()
	p, err := fit(filepath.Join(t.TempDir(), "posterior.safetensors"), opts, models, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// fit fits a posterior to models. If theta0 is set, the first one is the network that training started from.
func fit(path string, opts swag.FitOptions, models []*onnxio.Model, theta0 bool) (*swag.Posterior, error) {
	set, err := ckpt.New(models)
	if err != nil {
		return nil, err
	}
	it := swag.Input{Layout: set.Layout}
	for _, m := range set.Models {
		theta, err := m.Vector(set.Layout, weights.Parameter)
		if err != nil {
			return nil, err
		}
		statistics, err := m.Vector(set.Layout, weights.Statistic)
		if err != nil {
			return nil, err
		}
		absolute, err := filepath.Abs(m.Path)
		if err != nil {
			return nil, err
		}
		sum, err := ckpt.Sum(context.Background(), m, nil)
		if err != nil {
			return nil, err
		}
		it.Checkpoints = append(it.Checkpoints, swag.Checkpoint{Path: absolute, SHA256: sum, Theta: theta, Statistics: statistics})
	}
	if theta0 {
		it.Theta0, it.Checkpoints = &it.Checkpoints[0], it.Checkpoints[1:]
	}
	graph, err := onnxio.NewTemplate(set.Models[set.Reference], set.Layout)
	if err != nil {
		return nil, err
	}
	if it.Graph, err = graph.MarshalBinary(); err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := swag.Fit(context.Background(), f, it, opts); err != nil {
		return nil, err
	}
	return swag.Open(path)
}

// Main runs the tests of a package that shares posteriors, and removes their files.
func Main(m *testing.M) {
	var err error
	if shared.dir, err = os.MkdirTemp("", "infertest"); err != nil {
		panic(err)
	}
	m.Run()
	os.RemoveAll(shared.dir)
}

// shared are posteriors that all tests of a process use.
var shared struct {
	dir string // of their files
	sync.Mutex
	posteriors map[string]*swag.Posterior
}

// posterior returns the posterior of the MNIST epochs first … last. If first is 0, it includes the network that
// training started from.
func posterior(t testing.TB, first, last int) *swag.Posterior {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	name := fmt.Sprintf("epochs-%d-%d.safetensors", first, last)
	if p := shared.posteriors[name]; p != nil {
		return p
	}
	if shared.dir == "" {
		t.Fatal("TestMain does not call infertest.Main")
	}
	models := Checkpoints(t)[max(first, 1)-1 : last]
	if first == 0 {
		models = append([]*onnxio.Model{Open(t, Path(MNIST, "checkpoints", "theta0.onnx"))}, models...)
	}
	p, err := fit(filepath.Join(shared.dir, name), swag.FitOptions{}, models, first == 0)
	if err != nil {
		t.Fatal(err)
	}
	if shared.posteriors == nil {
		shared.posteriors = map[string]*swag.Posterior{}
	}
	shared.posteriors[name] = p
	return p
}

// Posterior returns the shared posterior of the thirty MNIST checkpoints.
func Posterior(t testing.TB) *swag.Posterior { t.Helper(); return posterior(t, 1, 30) }

// WithTheta0 returns the shared posterior that includes the network that training started from.
func WithTheta0(t testing.TB) *swag.Posterior { t.Helper(); return posterior(t, 0, 30) }

// Halves returns networks of the first and the last fifteen checkpoints, as if they were two runs.
func Halves(t testing.TB) []*infer.Network {
	t.Helper()
	n := []*infer.Network{Network(t, posterior(t, 1, 15)), Network(t, posterior(t, 16, 30))}
	if err := infer.Align(n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Network returns the network of a posterior.
func Network(t testing.TB, p *swag.Posterior) *infer.Network {
	t.Helper()
	n, err := infer.NewNetwork(p, infer.RecomputeTrained, "")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Two opens the small models called name-1 and name-2.
func Two(t testing.TB, name string) []*onnxio.Model {
	t.Helper()
	var models []*onnxio.Model
	for i := 1; i <= 2; i++ {
		models = append(models, Open(t, Path(Small, fmt.Sprintf("%s-%d.onnx", name, i))))
	}
	return models
}

// Data opens a data file.
func Data(t testing.TB, path string, opts dataset.Options) dataset.Dataset {
	t.Helper()
	d, err := dataset.Open([]string{path}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Digits opens images of MNIST, preprocessed as in training: train.npz, val.npz or test.npz.
func Digits(t testing.TB, name string) dataset.Dataset {
	t.Helper()
	return Data(t, Path(MNIST, name), dataset.Options{Preprocess: preprocess.Settings{Mean: []float64{0.1307}, Std: []float64{0.3081}}})
}

// Training returns the training images of MNIST in the order of the file. PyTorch used this order for the golden
// numbers.
func Training(t testing.TB) batchnorm.Training {
	t.Helper()
	return batchnorm.Training{Data: Digits(t, "train.npz")}
}

// Far reports whether got differs from want by more than tol, relative to the larger of want and floor.
func Far(got, want, tol, floor float64) bool {
	return !(math.Abs(got-want) <= tol*max(math.Abs(want), floor))
}

// WantError fails unless err contains text.
func WantError(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want %q", err, text)
	}
}
