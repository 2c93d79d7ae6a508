//go:build large

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// peak runs the program, and returns the most memory it had.
func peak(t *testing.T, program string, args ...string) int64 {
	t.Helper()
	c := exec.Command(program, args...)
	printed, n := measured(t, c)
	if !c.ProcessState.Success() {
		t.Fatal(printed)
	}
	return n
}

// Memory does not grow with the number of images, but for their names: by less than
// 1 MB for 10,000 pictures, and for rows of an array by what these take themselves.
func TestScoreMemoryFlat(t *testing.T) {
	dir := t.TempDir()
	e, program := pictureEnsemble(t, dir, 2), executable(t, dir)
	grown := func(name string, fewer, more int, input func(n int) string, most int64) {
		t.Helper()
		score := func(n int) int64 {
			return peak(t, program, "score", "-q", "--force", "-o", filepath.Join(dir, "o.csv"), e, input(n))
		}
		few, many := score(fewer), score(more)
		t.Logf("%s: %d: %.1f MB; %d: %.1f MB", name, fewer, float64(few)/(1<<20), more, float64(many)/(1<<20))
		if each := (many - few) * 10000 / int64(more-fewer); each > most {
			t.Errorf("%s: %d bytes for 10,000 more", name, each)
		}
	}
	grown("pictures", 10000, 60000, func(n int) string {
		pictures := filepath.Join(dir, fmt.Sprint(n))
		writePictures(t, pictures, 1)
		for i := 1; i < n; i++ {
			if err := os.Link(photograph(pictures, 0), photograph(pictures, i)); err != nil { // at most some 65,000
				t.Fatal(err)
			}
		}
		return pictures
	}, 1<<20)
	for _, rows := range []int{100_000, 1_000_000} {
		grown("rows", 10_000, rows, func(n int) string {
			head := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 1, 4, 4), }", n)
			npy := fmt.Appendf(nil, "\x93NUMPY\x01\x00\x76\x00%-117s\n", head)
			path := filepath.Join(dir, fmt.Sprint(n, ".npy"))
			if err := os.WriteFile(path, append(npy, bytes.Repeat([]byte{1, 9}, 8*n)...), 0o666); err != nil {
				t.Fatal(err)
			}
			return path
		}, 1<<19)
	}
}

// Nor does it grow with members: by less than 10 MB from 10 to 1,000.
func TestSampleMemoryFlat(t *testing.T) {
	dir := t.TempDir()
	v, program := newVictim(t), executable(t, dir)
	sample := func(members int) int64 {
		return peak(t, program, "sample", "-q", "--force", "-n", fmt.Sprint(members), "--bn-data", filepath.Join("..", "..", "fixtures", "mnist", "train.npz"), "--bn-samples", "128",
			"-o", filepath.Join(dir, "e"), v.at("p.safetensors"))
	}
	few, many := sample(10), sample(1000)
	t.Logf("10 members: %.1f MB; 1,000: %.1f MB", float64(few)/(1<<20), float64(many)/(1<<20))
	if many-few > 10<<20 {
		t.Errorf("%d bytes more for 990 more members", many-few)
	}
}

// Nor that of export: what 290 more members of a ResNet-20 take is their graph, and not their 313 MB of weights.
func TestExportMemoryFlat(t *testing.T) {
	dir := t.TempDir()
	program, p, e := executable(t, dir), filepath.Join(dir, "p"), filepath.Join(dir, "e")
	cifar := filepath.Join("..", "..", "fixtures", "cifar", "checkpoints")
	peak(t, program, "fit", "-q", "--task", "classes", "-o", p, "--template", filepath.Join(cifar, "model.onnx"), filepath.Join(cifar, "epoch-021.pt"), filepath.Join(cifar, "epoch-022.pt"))
	for _, storage := range []string{"f32", "int8"} {
		export := func(members int) int64 {
			peak(t, program, "sample", "-q", "--force", "--bn", "keep", "-n", fmt.Sprint(members), "-o", e, p)
			return peak(t, program, "export", "-q", "--force", "--storage", storage, "-o", filepath.Join(dir, "m.onnx"), e)
		}
		few, many := export(10), export(300)
		t.Logf("%s: 10 members: %.1f MB; 300: %.1f MB", storage, float64(few)/(1<<20), float64(many)/(1<<20))
		if many-few > 40<<20 {
			t.Errorf("%s: %d bytes more for 290 more members", storage, many-few)
		}
	}
}
