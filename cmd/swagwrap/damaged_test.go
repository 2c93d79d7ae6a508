package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// A reading is a command that reads a file.
type reading struct {
	what, file string
	args       []string // FILE stands for the file, OUT for the output
}

// readings are commands for each format: models, posteriors and ensembles, which are safetensors files, arrays and
// predictions. Their files lie in a folder of the test's own.
func readings(t *testing.T) (dir string, all []reading) {
	t.Helper()
	dir = t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for from, to := range map[string]string{
		"cmd/swagwrap/testdata/ckpt-1.onnx": "1.onnx", "cmd/swagwrap/testdata/ckpt-2.onnx": "2.onnx", "cmd/swagwrap/testdata/images.npz": "images.npz",
		"cmd/swagwrap/testdata/unlabelled.npy": "images.npy", "fixtures/exporters/torch-dynamo/ckpt-1.onnx": "ckpt-1.onnx",
		"fixtures/exporters/torch-dynamo/ckpt-1.onnx.data": "ckpt-1.onnx.data", "fixtures/exporters/torch-dynamo/ckpt-2.onnx": "ckpt-2.onnx",
		"fixtures/exporters/torch-dynamo/ckpt-2.onnx.data": "ckpt-2.onnx.data",
	} {
		b, err := os.ReadFile(infertest.Path(from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(to), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p, e := at("p.safetensors"), at("e.safetensors")
	for _, args := range [][]string{
		{"fit", "-q", "--task", "classes", "-o", p, at("1.onnx"), at("2.onnx")},
		{"sample", "-q", "-n", "2", "--bn-data", at("images.npz"), "-o", e, p},
		{"score", "-q", "-o", at("rows.parquet"), "--probs", e, at("images.npz")},
		{"score", "-q", "-o", at("rows.npz"), e, at("images.npz")},
	} {
		if code, out := program(t, args...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, out)
		}
	}
	for _, r := range []reading{
		{"model", "2.onnx", []string{"fit", "--task", "classes", "-o", "OUT", at("1.onnx"), "FILE"}},
		{"external data", "ckpt-2.onnx.data", []string{"fit", "--task", "classes", "-o", "OUT", at("ckpt-1.onnx"), at("ckpt-2.onnx")}},
		{"posterior", "p.safetensors", []string{"export", "-o", "OUT", "--bn", "keep", "FILE"}},
		{"ensemble", "e.safetensors", []string{"export", "-o", "OUT", "--member", "1", "FILE"}},
		{"npz", "images.npz", []string{"score", "-o", "OUT.csv", e, "FILE"}},
		{"npy", "images.npy", []string{"score", "-o", "OUT.csv", e, "FILE"}},
		{"predictions in Parquet", "rows.parquet", []string{"calibrate", "-o", "OUT", "FILE"}},
		{"predictions in npz", "rows.npz", []string{"calibrate", "-o", "OUT", "FILE"}},
	} {
		r.file = at(r.file)
		out := filepath.Join(dir, "out")
		for i, arg := range r.args {
			r.args[i] = strings.NewReplacer("FILE", r.file, "OUT", out).Replace(arg)
		}
		if code, printed := program(t, r.args...); code != 0 {
			t.Fatalf("%s: %q: exit code %d: %s", r.what, r.args, code, printed)
		}
		made, err := filepath.Glob(out + "*")
		if err != nil || len(made) == 0 {
			t.Fatalf("%s: no output: %v", r.what, err)
		}
		for _, path := range made {
			os.Remove(path)
		}
		all = append(all, r)
	}
	return dir, all
}

// damage has commands read damaged files, as often as make says for each. It wants exit code 65, an error that names the file, and
// no file that was not there before.
func damage(t *testing.T, dir string, r reading, times int, make func(whole []byte, i int) []byte) {
	t.Helper()
	whole, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	before := list(t, dir)
	for i := range times {
		if err := os.WriteFile(r.file, make(bytes.Clone(whole), i), 0o666); err != nil {
			t.Fatal(err)
		}
		code, printed := program(t, r.args...)
		if code != 65 || !strings.Contains(printed, "error: ") || !strings.Contains(printed, filepath.Base(r.file)) {
			t.Errorf("%s, damage %d: exit code %d: %s", r.what, i, code, printed)
		}
		if after := list(t, dir); !slices.Equal(before, after) {
			t.Fatalf("%s, damage %d: files %q, want %q", r.what, i, after, before)
		}
	}
	if err := os.WriteFile(r.file, whole, 0o666); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestCutFiles: a file that ends too early is refused, wherever it ends, and nothing is computed from what is left of it.
func TestCutFiles(t *testing.T) {
	t.Parallel()
	dir, all := readings(t)
	cuts := reliability.Figure(12, 1024)
	for _, r := range all {
		damage(t, dir, r, cuts, func(whole []byte, i int) []byte { return whole[:len(whole)*i/cuts] })
	}
}

// TestFlippedBits: a flipped bit in a posterior or an ensemble is caught by a checksum.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	dir, all := readings(t)
	r := rand.New(rand.NewPCG(1, 6))
	for _, read := range all {
		if read.what == "posterior" || read.what == "ensemble" {
			damage(t, dir, read, reliability.Figure(40, 5000), func(whole []byte, _ int) []byte {
				whole[r.IntN(len(whole))] ^= 1 << r.IntN(8)
				return whole
			})
		}
	}
}

// TestFlippedWorkFile: a flipped bit in the work file of score costs rows, which are made anew, or the file is refused. No
// result has another byte than it would have.
func TestFlippedWorkFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	score := func(resume ...string) []string {
		return slices.Concat([]string{"score", "-q", "-b", "2", "--memory", "1", "-o", at("out.csv")}, resume, []string{at("e.safetensors"), filepath.Join("testdata", "black.npz")})
	}
	for _, c := range []struct {
		code int
		args []string
	}{
		{0, []string{"fit", "--task", "classes", "-q", "-o", at("p.safetensors"), filepath.Join("testdata", "brightest-1.onnx"), filepath.Join("testdata", "brightest-2.onnx")}},
		{0, []string{"sample", "-q", "-n", "2", "--bn-data", filepath.Join("testdata", "images.npz"), "-o", at("e.safetensors"), at("p.safetensors")}},
		{3, score("--on-error", "skip")},
	} {
		if code, printed := program(t, c.args...); code != c.code {
			t.Fatalf("%q: exit code %d: %s", c.args, code, printed)
		}
	}
	want, err := os.ReadFile(at("out.csv"))
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(at("out.csv"))
	os.Remove(at("out.csv.meta.json"))
	var whole []byte
	for whole == nil { // the run may end before its first rows are kept: then there is no work file
		if code, printed := program(t, score()...); code != 65 { // an image in the middle has no finite output
			t.Fatalf("exit code %d: %s", code, printed)
		}
		if whole, err = os.ReadFile(at("out.csv.partial")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(2, 6))
	resumed := 0
	for i := range reliability.Figure(30, 5000) {
		b := bytes.Clone(whole)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		if err := os.WriteFile(at("out.csv.partial"), b, 0o666); err != nil {
			t.Fatal(err)
		}
		code, printed := program(t, score("--resume", "--on-error", "skip")...)
		got, err := os.ReadFile(at("out.csv"))
		switch {
		case code == 3 && bytes.Equal(got, want):
			resumed++
		case code != 65 && code != 75 || err == nil:
			t.Errorf("flip %d: exit code %d: %s\n%s", i, code, printed, got)
		}
		os.Remove(at("out.csv"))
		os.Remove(at("out.csv.meta.json"))
	}
	if resumed < 5 {
		t.Errorf("%d files are gone on with: the test shows little", resumed)
	}
}
