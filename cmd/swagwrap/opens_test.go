package main

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/swagwrap/swagwrap/internal/file"
)

// opens counts by path how often a command opens files. Tests that run at the same time would be counted, too.
func opens(t *testing.T, args ...string) map[string]int {
	t.Helper()
	var mu sync.Mutex
	count := map[string]int{}
	file.OnOpen = func(path string) {
		mu.Lock()
		defer mu.Unlock()
		count[path]++
	}
	defer func() { file.OnOpen = nil }()
	mustRun(t, args...)
	return count
}

// A command opens a file once. Where it opens one again, the table says why. Each open of a file on a shared file system
// takes time, and the file may be another by then.
func TestOpens(t *testing.T) {
	dir, mnist := t.TempDir(), filepath.Join("..", "..", "fixtures", "mnist")
	at := func(name string) string { return filepath.Join(dir, name) }
	given := func(name string) string { return filepath.Join("testdata", name) }
	states := []string{filepath.Join(mnist, "states", "epoch-28.pt"), filepath.Join(mnist, "states", "epoch-29.pt"), filepath.Join(mnist, "states", "epoch-30.pt")}
	for _, tt := range []struct {
		args string
		most map[string]int
	}{
		{"fit --task classes -o " + at("p") + " " + given("ckpt-1.onnx") + " " + given("ckpt-2.onnx"),
			map[string]int{given("ckpt-1.onnx"): 1, given("ckpt-2.onnx"): 1}},
		{"fit --task classes --template " + filepath.Join(mnist, "model.onnx") + " -o " + at("of-states") + " " + strings.Join(states, " "),
			map[string]int{states[0]: 1, states[1]: 1, states[2]: 1, filepath.Join(mnist, "model.onnx"): 1}},
		{"fit --task classes --template " + filepath.Join(mnist, "model.onnx") + " -o " + at("of-two") + " " + strings.Join(states[:2], " "), map[string]int{states[0]: 1, states[1]: 1}},
		// The first bytes of the files in a folder say which are checkpoints.
		{"fit --task classes --template " + filepath.Join(mnist, "model.onnx") + " -o " + at("of-folder") + " " + filepath.Join(mnist, "states"),
			map[string]int{states[0]: 2, states[1]: 2, states[2]: 2}},
		{"fit --extend " + at("of-two") + " -o " + at("of-three") + " " + states[2], map[string]int{states[2]: 1, at("of-two"): 1}},
		{"sample -n 2 --bn-data " + given("images.npz") + " -o " + at("e") + " " + at("p"),
			map[string]int{at("p"): 1, given("images.npz"): 1}},
		{"score -o " + at("rows.csv") + " " + at("e") + " " + given("images.npz"),
			map[string]int{at("e"): 1, at("p"): 1, given("images.npz"): 1}},
		// The first bytes say what a file is, and who opens it.
		{"inspect " + at("e"), map[string]int{at("e"): 2, at("p"): 1}},
		{"inspect " + at("p"), map[string]int{at("p"): 2}},
	} {
		args := strings.Fields(tt.args)
		count := opens(t, append([]string{args[0], "-q"}, args[1:]...)...)
		for path, most := range tt.most {
			if n := count[path]; n < 1 || n > most {
				t.Errorf("%s opens %s %d times, want at most %d", tt.args, path, n, most)
			}
		}
	}
}
