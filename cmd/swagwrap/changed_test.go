package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/weights"
)

// A heckler does something when the program says a certain word.
type heckler struct {
	printed strings.Builder
	word    string
	act     func() error
	err     error
}

func (h *heckler) Write(p []byte) (int, error) {
	h.printed.Write(p)
	if h.act != nil && strings.Contains(h.printed.String(), h.word) {
		h.err, h.act = h.act(), nil
	}
	return len(p), nil
}

func (h *heckler) String() string { return h.printed.String() }

// What other programs do to a file.
var (
	cutShort = func(path string) error { return os.Truncate(path, 0) }
	writeIn  = func(path string) error { // the same bytes: time alone tells
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		b := make([]byte, 1)
		_, err = f.ReadAt(b, 0)
		if err == nil {
			_, err = f.WriteAt(b, 0)
		}
		return errors.Join(err, f.Close())
	}
	replace = func(path string) error {
		return errors.Join(os.WriteFile(path+".new", []byte("another"), 0o666), os.Rename(path+".new", path))
	}
)

// A checkpoint or posterior that another program cuts short, or writes to, while
// a command reads it: the command fails for now, names it, and leaves nothing
// behind. One that is replaced by another, as it should be, is read to its end.
// No other test may run beside this one: which files have changed is a matter of
// the process.
func TestChangedWhileRead(t *testing.T) {
	testdata := func(name string) string { return filepath.Join("testdata", name) }
	images := testdata("images.npz")
	// Every command with its arguments, what it says once it has opened the file to
	// be changed, and that file.
	commands := []struct{ name, args, word, victim string }{
		{"fit", "fit --task classes -o out.csv ckpt-1.onnx renamed.onnx", "matched by their place", "ckpt-1.onnx"},
		{"sample", "sample -v -n 2 --bn-data IMAGES -o out.csv p.safetensors", "batch norm: all", "p.safetensors"},
		{"sample, a checkpoint", "sample -v -n 2 --bn-data IMAGES -o out.csv refers.safetensors", "batch norm: all", "ckpt-1.onnx"},
		{"score", "score --batch-size 4 --memory 1M -o out.csv e.safetensors IMAGES", "a logit for each", "p.safetensors"},
		{"score to standard output", "score -o - e.safetensors IMAGES", "a logit for each", "p.safetensors"},
		{"export", "export -v --bn-data IMAGES -o out.csv p.safetensors", "batch norm: all", "p.safetensors"},
		{"compare", "compare -v --members 2 --bn-data IMAGES --report out.html p.safetensors IMAGES", "batch norm: all", "p.safetensors"},
	}
	made := t.TempDir()
	for _, name := range []string{"ckpt-1.onnx", "renamed.onnx"} {
		b, err := os.ReadFile(testdata(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(made, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	in := func(dir, args string) (list []string) {
		for _, arg := range strings.Fields("swagwrap " + args) {
			switch {
			case arg == "IMAGES":
				arg = images
			case strings.Contains(arg, ".onnx"), strings.Contains(arg, ".safetensors"), strings.HasPrefix(arg, "out."):
				arg = filepath.Join(dir, arg)
			}
			list = append(list, arg)
		}
		return list
	}
	for _, args := range []string{"fit -q --task classes -o p.safetensors ckpt-1.onnx renamed.onnx", "sample -q -n 2 --bn-data IMAGES -o e.safetensors p.safetensors",
		"fit -q --task classes --reference-checkpoints -o refers.safetensors ckpt-1.onnx renamed.onnx"} {
		if code, printed := program(t, in(made, args)[1:]...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", args, code, printed)
		}
	}
	for _, c := range commands {
		for what, harm := range map[string]func(string) error{"cut short": cutShort, "written to": writeIn, "replaced": replace} {
			if what == "replaced" && c.name != "sample" {
				continue
			}
			t.Run(c.name+", "+what, func(t *testing.T) {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
					t.Fatal(err)
				}
				before, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				victim := filepath.Join(dir, c.victim)
				// File systems count time in ticks of milliseconds or seconds. A write changes this time in any case.
				longAgo := time.Unix(1e9, 0)
				if err := os.Chtimes(victim, longAgo, longAgo); err != nil {
					t.Fatal(err)
				}
				var stdout strings.Builder
				stderr := &heckler{word: c.word, act: func() error { return harm(victim) }}
				code := run(t.Context(), in(dir, c.args), &stdout, stderr)
				weights.Changed() // told of, and of no concern to the next test
				if stderr.act != nil || stderr.err != nil {
					t.Fatalf("did not say %q (%v): %s", c.word, stderr.err, stderr)
				}
				if what == "replaced" {
					if code != 0 {
						t.Errorf("exit code %d: %s", code, stderr)
					}
					return
				}
				if code != 75 || !strings.Contains(stderr.String(), victim+": changed while it was read: ") || !strings.Contains(stderr.String(), "hint: run the command again") {
					t.Errorf("exit code %d: %s", code, stderr)
				}
				if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) || stdout.Len() > 0 {
					t.Errorf("%v left behind (%v), where %v was, and on standard output %q", after, err, before, &stdout)
				}
			})
		}
	}
}
