package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// The outputs of a detector are those of PyTorch: means and standard deviations over the checkpoints, and SWA with batch norm
// recomputed. testdata/boxes/make.py computes both with PyTorch in float64, SWA by AveragedModel and update_bn.
func TestBoxes(t *testing.T) {
	t.Parallel()
	in := func(name string) string { return filepath.Join("testdata", "boxes", name) }
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mustRun(t, "fit", "-q", "--task", "none", "--template", in("model.onnx"), "-o", at("p"), in(""))
	read := func(path, key string) []float64 {
		f, err := numpy.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		a, err := f.Read(key, numpy.Values)
		if err != nil {
			t.Fatal(err)
		}
		return a.Float64s()
	}
	for _, tt := range []struct {
		sample []string
		arrays map[string]string // of the golden file
	}{
		{[]string{"--method", "iterates"}, map[string]string{"boxes_mean": "boxes_mean", "boxes_std": "boxes_std", "scores_mean": "scores_mean", "scores_std": "scores_std"}},
		{[]string{"--method", "swa", "--arrays", "seen", "--bn-data", in("x.npy"), "--bn-samples", "ordered"}, map[string]string{"boxes_mean": "boxes_swa", "scores_mean": "scores_swa"}},
	} {
		mustRun(t, append(append([]string{"sample", "-q", "--force", "-o", at("e")}, tt.sample...), at("p"))...)
		mustRun(t, "score", "-q", "--force", "--arrays", "seen", "-o", at("out.npz"), at("e"), in("x.npy"))
		for array, golden := range tt.arrays {
			got, want := read(at("out.npz"), array), read(in("golden.npz"), golden)
			if len(got) != len(want) {
				t.Fatalf("%s: %d numbers, want %d", array, len(got), len(want))
			}
			most := 0.0
			for i, w := range want {
				most = math.Max(most, math.Abs(got[i]-w))
			}
			if most > 1e-5 {
				t.Errorf("%s %s is %.2g from that of PyTorch", tt.sample[1], array, most)
			}
		}
	}
}

// One pass serves all outputs of a network without a task, whatever their number.
func TestOutputPasses(t *testing.T) {
	t.Parallel()
	in := func(name string) string { return filepath.Join("testdata", "boxes", name) }
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mustRun(t, "fit", "-q", "--task", "none", "--template", in("model.onnx"), "-o", at("p"), in(""))
	program := executable(t, dir)
	const checks = ", 16 checks (form of scores 16)"
	for _, tt := range []struct{ args, want string }{
		{"sample -n 3 --bn-data X --arrays seen --bn-samples 24 -o DIR/e DIR/p", "72 wanted" + checks},
		{"score --arrays seen -o DIR/all.npz DIR/e X", "72 wanted" + checks},
		{"score --arrays seen -o DIR/one.npz --output-name scores DIR/e X", "72 wanted" + checks},
	} {
		line := strings.NewReplacer("DIR", dir, "X", in("x.npy")).Replace(tt.args)
		if got := passesOf(t, program, strings.Fields(line), "none"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.args, got, tt.want)
		}
	}
}
