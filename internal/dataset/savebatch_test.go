package dataset

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// What WriteBatch writes is what Read yields, as any reader of arrays sees it.
func TestWriteBatch(t *testing.T) {
	pictures := []string{"../../fixtures/images/files/hopper.jpg", "../../fixtures/images/files/camera.png"}
	resized := preprocess.Settings{Image: preprocess.Transform{InputSize: [2]int{8, 6}, CropMode: preprocess.Center}, Mean: []float64{0.5}, Std: []float64{0.25}}
	for name, test := range map[string]struct {
		paths   []string
		opts    Options
		n, want int
	}{
		"pictures":         {pictures, Options{Preprocess: resized, Shape: []int64{3, -1, -1}}, 128, 2},
		"the first":        {pictures, Options{Preprocess: resized, Shape: []int64{-1, -1, 3}}, 1, 1},
		"an array":         {[]string{"testdata/plain.npz"}, Options{Preprocess: preprocess.Settings{Mean: []float64{0.1}}}, 3, 3},
		"bytes, unchanged": {[]string{"testdata/plain.npz"}, Options{Uint8: true}, 3, 3},
	} {
		d, err := Open(test.paths, test.opts)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "batch.npy")
		var b bytes.Buffer
		if err := WriteBatch(&b, d, test.n, test.opts.Uint8, false); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := Open([]string{path}, Options{Uint8: test.opts.Uint8})
		if err != nil {
			t.Fatal(err)
		}
		if got.Len() != test.want || !slices.Equal(got.Shape(), d.Shape()) {
			t.Errorf("%s: %d examples of shape %d, want %d of %d", name, got.Len(), got.Shape(), test.want, d.Shape())
			continue
		}
		size := 1
		for _, s := range d.Shape() {
			size *= int(s)
		}
		x, y := make([]float32, size), make([]float32, size)
		for i := range got.Len() {
			if err := d.Read(Floats(x), i); err != nil {
				t.Fatal(err)
			}
			if err := got.Read(Floats(y), i); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(x, y) {
				t.Errorf("%s: example %d differs", name, i)
			}
		}
	}
}

// What cannot be read is a black picture where rows with errors are wanted, as it is in
// the batch that the network sees, and else an error.
func TestWriteBatchSkips(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.png")
	if err := os.WriteFile(broken, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	d, err := Open([]string{broken, "../../fixtures/images/transforms-24x24.png"}, Options{Shape: []int64{3, 24, 24}, Preprocess: preprocess.Settings{Mean: []float64{0.5}, Std: []float64{0.25}}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteBatch(&b, d, 2, false, false); err == nil {
		t.Error("no error")
	}
	b.Reset()
	if err := WriteBatch(&b, d, 2, false, true); err != nil {
		t.Fatal(err)
	}
	const size = 3 * 24 * 24
	values := b.Bytes()[b.Len()-4*2*size:]
	want := make([]float32, 2*size)
	for i := range size {
		want[i] = -2 // (0 − 0.5) / 0.25
	}
	if err := d.Read(Floats(want[size:]), 1); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(values[4*i:])); got != want[i] {
			t.Fatalf("element %d is %v, want %v", i, got, want[i])
		}
	}
}
