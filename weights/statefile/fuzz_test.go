package statefile

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Pickles, in a file that is otherwise as PyTorch writes it.
func FuzzPickle(f *testing.F) {
	for _, root := range []string{items(str("w"), weight), module(items(str("w"), weight), items(str("m"), module("}", "}"))), "(K\x01l(i\n\x8c\x01adq\x00h\x000\x8f(NN\x90\x95"} {
		f.Add([]byte(root))
	}
	for _, name := range []string{"lightning.ckpt", "module.pt", "parameters.pt", "protocol5.pt"} {
		z, err := zip.OpenReader(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		pickle, err := z.Open(z.File[0].Name)
		if err != nil {
			f.Fatal(err)
		}
		p, err := io.ReadAll(pickle)
		if err != nil || z.Close() != nil {
			f.Fatal(err)
		}
		f.Add(p[2 : len(p)-1]) // without its protocol and its end
	}
	f.Fuzz(func(t *testing.T, root []byte) { use(zipped(string(root))) })
}

// Whole files of any kind.
func FuzzOpen(f *testing.F) {
	for name := range readGoldens(f) {
		if data, err := os.ReadFile(filepath.Join("testdata", name)); err == nil { // the others are folders
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { use(data) })
}
