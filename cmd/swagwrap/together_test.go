//go:build unix

package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/kind"
)

// TestTogether runs commands with several outputs under a limit on the size of files, as on a full disk. At the smallest limit no
// output can be written, at the largest all but the largest output. The exit code is 75 each time, and no output is there. With
// --force the files that were there before are unchanged.
func TestTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	exe := executable(t, dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	images := infertest.Path("cmd/swagwrap/testdata", "images.npz")
	writePictures(t, at("pictures"), 12)
	out := at("out")
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	e := pictureEnsemble(t, out, 2)
	if err := os.Rename(out, at("picture")); err != nil {
		t.Fatal(err)
	}
	e = filepath.Join(at("picture"), filepath.Base(e))
	to := func(name string) string { return filepath.Join(out, name) }
	for _, args := range [][]string{
		{"fit", "-q", "--task", "classes", "-o", at("p.safetensors"), infertest.Path("cmd/swagwrap/testdata", "ckpt-1.onnx"), infertest.Path("cmd/swagwrap/testdata", "ckpt-2.onnx")},
		{"sample", "-q", "-n", "2", "--bn-data", images, "-o", at("e.safetensors"), at("p.safetensors")},
		{"fit", "-q", "--task", "classes", "-o", at("external.safetensors"), infertest.Path("fixtures/exporters/torch-dynamo", "ckpt-1.onnx"), infertest.Path("fixtures/exporters/torch-dynamo", "ckpt-2.onnx")},
		{"score", "-q", "--probs", "-o", at("val.csv"), at("e.safetensors"), images},
		{"score", "-q", "--part", "0/1", "-o", at("parts.csv"), at("e.safetensors"), images},
	} {
		if code, printed := program(t, args...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, printed)
		}
	}
	val, err := os.ReadFile(at("val.csv"))
	if err != nil {
		t.Fatal(err)
	}
	right, err := plausibly(string(val))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("val.csv"), []byte(right), 0o666); err != nil {
		t.Fatal(err)
	}
	study := []string{"-q", "--bn-data", images, "--report", to("r.html"), "--plots", to("plots")}
	for _, args := range [][]string{
		slices.Concat([]string{"compare", "--methods", "sgd,swa,swag", "--members", "2", "--val", images, "--tune", to("t.json"), "--save", to("s.npz")}, study, []string{at("p.safetensors"), images}),
		slices.Concat([]string{"ood", "--methods", "sgd,swa"}, study, []string{at("p.safetensors"), images, images}),
		slices.Concat([]string{"sweep", "--members", "2", "--scale", "1", "--rank", "2"}, study, []string{at("p.safetensors"), images}),
		slices.Concat([]string{"geometry", "--points", "3"}, study, []string{at("p.safetensors"), images}),
		{"score", "-q", "--montage", to("m.html"), "--save-batch", to("b.npy"), "-o", to("rows.csv"), e, at("pictures")},
		{"calibrate", "-q", "-o", to("c.json"), "--save", to("c.csv"), at("val.csv")},
		{"merge", "-q", "-o", to("merged.csv"), at("parts.csv.part-0000-of-0001")},
		{"export", "-q", "--bn", "keep", "-o", to("m.onnx"), at("external.safetensors")},
	} {
		if err := errors.Join(os.RemoveAll(out), os.Mkdir(out, 0o777)); err != nil {
			t.Fatal(err)
		}
		if printed, err := exec.Command(exe, args...).CombinedOutput(); err != nil { // as below: its pages have the command in them
			t.Fatalf("%q: %v: %s", args, err, printed)
		}
		whole := files(t, out)
		if len(whole) < 2 {
			t.Fatalf("%s: outputs %q, want several", args[0], slices.Sorted(maps.Keys(whole)))
		}
		const blockSize, margin = 512, 64 // a page has the time in it
		largest := 0
		for _, b := range whole {
			largest = max(largest, len(b))
		}
		limits := reliability.Figure(2, 40)
		for i := range limits {
			blocks := (largest - margin) / blockSize * i / max(1, limits-1)
			for k, before := range []map[string][]byte{nil, old(whole)} {
				if limits == 2 && k != i { // by day one of the two in turn
					continue
				}
				limited := args
				if err := errors.Join(os.RemoveAll(out), os.Mkdir(out, 0o777)); err != nil {
					t.Fatal(err)
				}
				for name, b := range before {
					limited = slices.Insert(slices.Clone(args), 1, "--force")
					if err := errors.Join(os.MkdirAll(filepath.Dir(to(name)), 0o777), os.WriteFile(to(name), b, 0o666)); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.Command("sh", slices.Concat([]string{"-c", `ulimit -f "$0" && exec "$@"`, strconv.Itoa(blocks), exe}, limited)...)
				printed, _ := cmd.CombinedOutput()
				if code := cmd.ProcessState.ExitCode(); code != 75 || strings.Count(string(printed), "error: ") != 1 {
					t.Errorf("%s, %d blocks: exit code %d: %s", args[0], blocks, code, printed)
				}
				if left := files(t, out); !maps.EqualFunc(left, before, bytes.Equal) {
					t.Errorf("%s, %d blocks: files %q, want %q as they were", args[0], blocks, slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(before)))
				}
			}
		}
	}
}

// files are all files in a folder and below it. Work files of unfinished runs are not among them.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"*", "*/*", ".*"} {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range paths {
			info, err := os.Lstat(path)
			if err != nil || info.IsDir() || strings.HasSuffix(path, ".partial") {
				continue
			}
			name, err := filepath.Rel(dir, path)
			if err == nil {
				all[name], err = os.ReadFile(path)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// old are files of the same names with other content.
func old(of map[string][]byte) map[string][]byte {
	before := map[string][]byte{kind.Marker: nil} // so that they may be replaced
	for name := range of {
		before[name] = []byte("before: " + name)
	}
	return before
}
