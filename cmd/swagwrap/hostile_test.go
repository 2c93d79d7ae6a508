package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// hostile is text as long as the producer's name in testdata, "make.py": it
// begins a line of its own and clears the terminal.
const hostile = "\n\x1b[2J:)"

// What a file holds, and what it is called, cannot be taken for the program's
// own lines, and does not move the terminal's cursor.
func TestHostileText(t *testing.T) {
	dir := t.TempDir()
	model, err := os.ReadFile(filepath.Join("testdata", "ckpt-1.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	forge := func(name, what string) string {
		if len(what) != len(hostile) || bytes.Count(model, []byte(what)) == 0 {
			t.Fatalf("no %q to replace", what)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, bytes.ReplaceAll(model, []byte(what), []byte(hostile)), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	producer := forge("producer.onnx", "make.py")
	tensor := forge("tensor.onnx", "bn.bias")
	called := forge("verdict\nusable\x9b\u202e.onnx", "make.py")
	card := filepath.Join(dir, "names.txt")
	if err := os.WriteFile(card, []byte("a\x1b]0;b\u202e\nb\nc\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	posterior := filepath.Join(dir, "posterior.safetensors")
	for _, args := range [][]string{
		{"inspect", producer},
		{"inspect", tensor},
		{"inspect", called},
		{"inspect", producer, called},
		{"inspect", filepath.Join(dir, "absent\nverdict: usable")},
		{"fit", "-o", filepath.Join(dir, "no"), producer, filepath.Join("testdata", "external.onnx"), called},
		{"fit", "--class-names", card, "-o", posterior, producer, filepath.Join("testdata", "ckpt-2.onnx")},
		{"fit", "--force", "-o", posterior, tensor, called},
		{"fit", "--force", "--class-names", card, "-o", posterior, called, filepath.Join("testdata", "ckpt-2.onnx")},
		{"inspect", posterior},
		{"sample", "-n", "2", "--bn-data", filepath.Join(dir, "absent\x1b.npz"), "-o", filepath.Join(dir, "no"), posterior},
		{"no\x1bcommand"},
		{"fit", "--no\x1bflag"},
	} {
		_, out := program(t, args...)
		if out == "" {
			t.Errorf("%q says nothing", args)
		}
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
				t.Errorf("%q prints %q", args, line)
			}
			if strings.HasPrefix(line, "\x1b") || strings.HasPrefix(line, "usable") || strings.HasPrefix(line, "verdict: usable") && strings.Contains(args[len(args)-1], "absent") {
				t.Errorf("%q prints a line of the file's own: %q", args, line)
			}
		}
	}
}
