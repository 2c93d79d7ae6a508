// Package studytest opens fixtures for the tests of studies: the run on MNIST, and
// small networks of 1×4×4 images and 3 classes. What cannot be opened ends the test.
package studytest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Where fixtures are, as seen from the packages of studies.
const (
	Mnist = "../../../fixtures/mnist"
	small = "../../../cmd/swagwrap/testdata"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Engine runs networks on so many threads; 0 means one per core.
func Engine(t *testing.T, workers int) *infer.Engine {
	t.Helper()
	path, err := ort.Locate("")
	if err != nil {
		t.Fatalf("%v (run make setup)", err)
	}
	rt, err := ort.Open(path)
	check(t, err)
	return &infer.Engine{Runtime: rt, Workers: workers}
}

// Epochs are checkpoints of the run on MNIST, of which there are 30.
func Epochs(t *testing.T, first, last int) []*onnxio.Model {
	t.Helper()
	var paths []string
	for k := first; k <= last; k++ {
		paths = append(paths, filepath.Join(Mnist, "checkpoints", fmt.Sprintf("epoch-%02d.onnx", k)))
	}
	return models(t, paths...)
}

// Small are the two checkpoints of a small network, by its name.
func Small(t *testing.T, name string) []*onnxio.Model {
	t.Helper()
	return models(t, filepath.Join(small, name+"-1.onnx"), filepath.Join(small, name+"-2.onnx"))
}

func models(t *testing.T, paths ...string) (out []*onnxio.Model) {
	t.Helper()
	for _, path := range paths {
		m, err := onnxio.Open(path)
		check(t, err)
		t.Cleanup(func() { m.Close() })
		out = append(out, m)
	}
	return out
}

// Fit fits a posterior to checkpoints.
func Fit(t *testing.T, models []*onnxio.Model) *infer.Network {
	t.Helper()
	set, err := checkpoints.New(models)
	check(t, err)
	it := swag.Input{Layout: set.Layout}
	for _, m := range set.Models {
		c := swag.Checkpoint{Path: m.Path}
		c.Theta, err = m.Vector(set.Layout, weights.Parameter)
		check(t, err)
		c.Statistics, err = m.Vector(set.Layout, weights.Statistic)
		check(t, err)
		it.Checkpoints = append(it.Checkpoints, c)
	}
	graph, err := onnxio.NewTemplate(set.Models[set.Reference], set.Layout)
	check(t, err)
	it.Graph, err = graph.MarshalBinary()
	check(t, err)
	f, err := os.Create(filepath.Join(t.TempDir(), "posterior.safetensors"))
	check(t, err)
	defer f.Close()
	check(t, swag.Fit(t.Context(), f, it, swag.FitOptions{}))
	p, err := swag.Open(f.Name())
	check(t, err)
	t.Cleanup(func() { p.Close() })
	n, err := infer.NewNetwork(p, infer.RecomputeTrained, "")
	check(t, err)
	return n
}

// Digits is a file of the MNIST fixture, normalised as in training.
func Digits(t *testing.T, name string) dataset.Dataset {
	t.Helper()
	return Open(t, name, preprocess.Settings{Mean: []float64{0.1307}, Std: []float64{0.3081}})
}

// Open is a file of the MNIST fixture.
func Open(t *testing.T, name string, pre preprocess.Settings) dataset.Dataset {
	t.Helper()
	d, err := dataset.Open([]string{filepath.Join(Mnist, name)}, dataset.Options{Preprocess: pre})
	check(t, err)
	return d
}

// SmallImages are ten labelled images for small networks.
func SmallImages(t *testing.T) dataset.Dataset {
	t.Helper()
	d, err := dataset.Open([]string{filepath.Join(small, "images.npz")}, dataset.Options{Shape: []int64{1, 4, 4}})
	check(t, err)
	return d
}

// Images is data of which only the number is known.
type Images int

func (n Images) Len() int                { return int(n) }
func (Images) Shape() []int64            { return nil }
func (Images) Labels() []int             { return nil }
func (Images) ClassNames() []string      { return nil }
func (Images) Name(int) string           { return "" }
func (Images) Read([]float32, int) error { return nil }
func (Images) Sources() []dataset.Source { return nil }
