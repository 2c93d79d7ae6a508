package dataset

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// TestUnlabelled: labels that nobody wants may be of any kind; where they are wanted,
// the same are refused.
func TestUnlabelled(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	npz := func(name string, labels []byte) string {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for name, array := range map[string][]byte{
			"images.npy": append(numpy.Header("|u1", 2, 1, 2, 2), make([]byte, 8)...),
			"labels.npy": labels,
		} {
			f, err := z.Create(name)
			if err == nil {
				_, err = f.Write(array)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		z.Close()
		return write(name+".npz", b.Bytes())
	}
	idx := func(kind byte, dims ...byte) []byte {
		b, n := []byte{0, 0, kind, byte(len(dims))}, 1
		for _, d := range dims {
			b, n = append(b, 0, 0, 0, d), n*int(d)
		}
		return append(b, make([]byte, n)...)
	}
	images := write("train-images-idx3-ubyte", idx(8, 2, 2, 2))
	write("train-labels-idx1-ubyte", idx(8, 3))
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range [][2]string{{"0.png", "any"}, {"0.json", `{"label": [1, 0]}`}, {"1.png", "any"}, {"1.cls", ""}} {
		w.WriteHeader(&tar.Header{Name: e[0], Size: int64(len(e[1])), Mode: 0o666})
		w.Write([]byte(e[1]))
	}
	w.Close()
	for name, path := range map[string]string{
		"floats":       npz("float", append(numpy.Header("<f4", 2), 0, 0, 0, 63, 0, 0, 0, 63)),
		"one-hot":      npz("onehot", append(numpy.Header("|u1", 2, 3), make([]byte, 6)...)),
		"negative":     npz("negative", append(numpy.Header("|i1", 2), 0xfe, 0xfe)),
		"texts":        npz("texts", append(numpy.Header("<U1", 2), make([]byte, 8)...)),
		"too few":      npz("few", append(numpy.Header("|u1", 1), 0)),
		"broken":       npz("broken", []byte("no array")),
		"MNIST's":      images,
		"WebDataset's": write("shard.tar", b.Bytes()),
	} {
		opts := Options{Shape: []int64{1, 2, 2}}
		if d, err := Open([]string{path}, opts); err == nil {
			t.Errorf("%s: labels %v, want an error", name, d.Labels())
		}
		opts.Unlabelled = true
		d, err := Open([]string{path}, opts)
		if err != nil || d.Len() != 2 || !d.Labels().None() || len(d.Sources()) != 1 {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}
