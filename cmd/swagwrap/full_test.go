//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// A write is a command that writes a file of some size.
type write struct {
	output string
	args   []string
}

// writes are the commands that write most, in an order in which each finds what it reads. The last one can be
// resumed.
func writes(folder, pictures string) []write {
	at := func(name string) string { return filepath.Join(folder, name) }
	fixture := func(name string) string { return infertest.Path("cmd/swagwrap/testdata", name) }
	return []write{
		{at("p.safetensors"), []string{"fit", "--task", "classes", "--preprocess", "input-size=4", "-o", at("p.safetensors"), fixture("ckpt-1.onnx"), fixture("ckpt-2.onnx")}},
		{at("e.safetensors"), []string{"sample", "-n", "8", "--bn-data", fixture("images.npz"), "-o", at("e.safetensors"), at("p.safetensors")}},
		{at("m.onnx"), []string{"export", "--member", "1", "-o", at("m.onnx"), at("e.safetensors")}},
		{at("joint.onnx"), []string{"export", "--check", fixture("images.npz"), "-o", at("joint.onnx"), at("e.safetensors")}},
		{at("out.csv"), []string{"score", "--resume", "--probs", "--keep-members", "-b", "8", "--memory", "1", "-o", at("out.csv"), at("e.safetensors"), pictures}},
	}
}

// written runs the commands once, over so many pictures, and returns the program, the folder of all outputs, the
// commands, and the bytes that they write.
func written(t *testing.T, pictures int) (exe, out string, all []write, want [][]byte) {
	t.Helper()
	dir := t.TempDir()
	exe, out = executable(t, dir), filepath.Join(dir, "out")
	writePictures(t, filepath.Join(dir, "pictures"), pictures)
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	all = writes(out, filepath.Join(dir, "pictures"))
	for _, w := range all {
		if code, printed := program(t, w.args...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", w.args, code, printed)
		}
		b, err := os.ReadFile(w.output)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, b)
	}
	return exe, out, all, want
}

// TestFileLimit: where no more can be written at some byte, as at the end of a quota, the exit code is 75 and there is no output, and the
// same command makes it whole when there is room.
func TestFileLimit(t *testing.T) {
	t.Parallel()
	exe, out, all, want := written(t, 60)
	limits := reliability.Figure(2, 50)
	for k, w := range all {
		os.Remove(w.output)
		os.Remove(w.output + ".meta.json")
		before := list(t, out)
		for i := range limits {
			blocks := len(want[k]) / 512 * i / limits // 512 bytes each
			cmd := exec.Command("sh", slices.Concat([]string{"-c", `ulimit -f "$0" && exec "$@"`, strconv.Itoa(blocks), exe}, w.args)...)
			printed, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 75 || strings.Count(string(printed), "error: ") != 1 {
				t.Errorf("%s, %d blocks: exit code %d: %s", w.args[0], blocks, code, printed)
			}
			after := slices.DeleteFunc(list(t, out), func(name string) bool { return filepath.Join(out, name) == w.output+".partial" })
			if !slices.Equal(after, before) {
				t.Errorf("%s, %d blocks: files %q, want %q", w.args[0], blocks, after, before)
			}
		}
		if code, printed := program(t, w.args...); code != 0 {
			t.Errorf("%s, with room again: exit code %d: %s", w.args[0], code, printed)
		}
		if got, err := os.ReadFile(w.output); err != nil || !bytes.Equal(got, want[k]) {
			t.Errorf("%s, with room again: other bytes, %v", w.args[0], err)
		}
	}
}
