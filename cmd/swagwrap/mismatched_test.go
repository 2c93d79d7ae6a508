package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
)

// TestMismatched: checkpoints that are not of one network are refused with what distinguishes them, at most five differences
// of it, before anything is written. Those that only look different give the posterior that they would.
func TestMismatched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	small := func(name string) string { return infertest.Path(infertest.Small, name) }
	first, err1 := os.ReadFile(small("ckpt-1.onnx"))
	second, err2 := os.ReadFile(small("ckpt-2.onnx"))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	// Where the files lie side by side, their order is that of their names.
	variant := func(name string, change func(graph *field)) string {
		model := decodeModel(first)
		for _, f := range model.fields {
			if f.kind == "graph" {
				change(f)
			}
		}
		if err := errors.Join(os.Mkdir(at(name), 0o777), os.WriteFile(filepath.Join(at(name), "ckpt-1.onnx"), appendFields(nil, model.fields), 0o666),
			os.WriteFile(filepath.Join(at(name), "ckpt-2.onnx"), second, 0o666)); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	same := variant("same", func(*field) {})
	reversed := variant("reversed", func(graph *field) {
		slices.SortStableFunc(graph.fields, func(a, b *field) int { return int(b.num) - int(a.num) }) // tensors before nodes
		tensors := slices.IndexFunc(graph.fields, func(f *field) bool { return f.kind == "tensor" })
		n := 0
		for n < len(graph.fields)-tensors && graph.fields[tensors+n].kind == "tensor" {
			n++
		}
		slices.Reverse(graph.fields[tensors : tensors+n])
	})
	renamed := variant("renamed", func(graph *field) {
		names := map[string]bool{}
		for _, p := range places(graph) {
			if p.in.kind == "tensor" && p.num == 8 {
				names[string(p.bytes)] = true
				p.bytes = append([]byte("model."), p.bytes...)
			}
		}
		for _, p := range places(graph) {
			if p.in.kind == "node" && p.num == 1 && names[string(p.bytes)] {
				p.bytes = append([]byte("model."), p.bytes...)
			}
		}
	})
	swa := func(folder string) string {
		for _, args := range [][]string{
			{"fit", "-q", "--task", "classes", "--force", "-o", at("p"), folder},
			{"export", "-q", "--force", "--bn", "keep", "-o", at("swa.onnx"), at("p")},
		} {
			if code, printed := program(t, args...); code != 0 {
				t.Errorf("%q: exit code %d: %s", args, code, printed)
			}
		}
		b, _ := os.ReadFile(at("swa.onnx"))
		return plainModel(string(b))
	}
	for kind, folder := range map[string]string{"order": reversed, "name": renamed} {
		if want := swa(same); len(want) == 0 || swa(folder) != want {
			t.Errorf("%s: another mean", kind)
		}
	}
	before := list(t, dir)
	for kind, c := range map[string]struct{ other, want string }{
		"shape":         {small("wider.onnx"), `tensor "conv.weight": shape [4 1 3 3], want [2 1 3 3] as in `},
		"dtype":         {small("double.onnx"), `tensor "conv.weight": type double, want float`},
		"count":         {small("training-1.onnx"), `tensor "ratio": not in `},
		"operators":     {small("softmax-1.onnx"), "7 nodes, want 6 as in "},
		"other network": {infertest.Path(infertest.MNIST, "checkpoints", "epoch-01.onnx"), " more differences"},
		"given twice":   {small("ckpt-1.onnx"), "is given twice"},
		"folded":        {small("folded-1.onnx"), "batch norm is folded into the weights"},
	} {
		code, printed := program(t, "fit", "--task", "classes", "-o", at("out"), small("ckpt-1.onnx"), c.other)
		if told := strings.Count(printed, "error: ") + strings.Count(printed, "hint: also "); code != 65 || !strings.Contains(printed, c.want) || told > 5 {
			t.Errorf("%s: exit code %d, %d differences: %s", kind, code, told, printed)
		}
		if after := list(t, dir); !slices.Equal(before, after) {
			t.Errorf("%s: files %q, want %q", kind, after, before)
		}
	}
}
