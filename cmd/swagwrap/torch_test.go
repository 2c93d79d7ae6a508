package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

// The posterior from a folder of state_dicts is that from ONNX exports of the same
// states, byte for byte but for the names of files and their digests.
func TestStatesAreExports(t *testing.T) {
	t.Parallel()
	mnist, dir := filepath.Join("..", "..", "fixtures", "mnist"), t.TempDir()
	states, exports := filepath.Join(dir, "states"), filepath.Join(dir, "exports")
	paths, err := filepath.Glob(filepath.Join(mnist, "checkpoints", "epoch-*.onnx"))
	if err != nil || len(paths) != 30 {
		t.Fatal(paths, err)
	}
	for _, args := range [][]string{
		{"-o", states, "--template", filepath.Join(mnist, "model.onnx"), filepath.Join(mnist, "states")}, append([]string{"-o", exports}, paths...),
	} {
		if code, out := program(t, append([]string{"fit", "--task", "classes"}, args...)...); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	}
	a, b := sections(t, states), sections(t, exports)
	a["graph"] = bytes.Replace(a["graph"][8:], []byte("model.onnx"), []byte("epoch-30.onnx"), 1) // behind the length of the names
	b["graph"] = b["graph"][8:]
	for name, want := range b {
		if !bytes.Equal(a[name], want) {
			t.Errorf("section %q differs", name)
		}
	}
	if len(a) != len(b) || len(b) < 7 {
		t.Errorf("%d sections and %d", len(a), len(b))
	}
}

func sections(t *testing.T, path string) map[string][]byte {
	t.Helper()
	st, err := weights.OpenSafetensors(path)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	out := make(map[string][]byte)
	for _, s := range st.Sections {
		v, _ := st.View(s.Name)
		out[s.Name] = bytes.Clone(v.Data)
	}
	return out
}
