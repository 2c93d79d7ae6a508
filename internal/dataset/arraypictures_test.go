package dataset

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// TestArrayPictures: arrays as most programs save pictures give what the same pixels
// give as a folder of PNG files.
func TestArrayPictures(t *testing.T) {
	const n, h, w = 3, 9, 7
	r := rand.New(rand.NewPCG(1, 2))
	resized := preprocess.Transform{CropMode: preprocess.Center, InputSize: [2]int{4, 4}, ResizeSize: [2]int{5, 5}, Interpolation: picture.Bicubic}
	for _, channels := range []int{0, 1, 3, 4} { // 0: N×H×W
		shape, dims := []int{n, h, w}, []byte{n, h, w}
		if channels > 0 {
			shape, dims = append(shape, channels), append(dims, byte(channels))
		}
		pixels := make([]byte, n*h*w*max(channels, 1))
		for i := range pixels {
			pixels[i] = byte(r.Uint32())
		}
		dir := t.TempDir()
		array, idx, folder := filepath.Join(dir, "a.npy"), filepath.Join(dir, "a-ubyte"), filepath.Join(dir, "pngs")
		write(t, array, append(numpy.Header("|u1", shape...), pixels...))
		header := []byte{0, 0, 8, byte(len(dims))}
		for _, d := range dims {
			header = append(header, 0, 0, 0, d)
		}
		write(t, idx, append(header, pixels...))
		for i := range n {
			writePNG(t, filepath.Join(folder, fmt.Sprint(i)+".png"), w, h, channels, pixels[i*len(pixels)/n:])
		}
		for _, tt := range []struct {
			name string
			opts Options
		}{
			{"as it is", Options{Shape: []int64{3, h, w}}},
			{"of any size", Options{Shape: []int64{3, -1, -1}, Preprocess: preprocess.Settings{Image: preprocess.Transform{InputSize: [2]int{h, w}}}}},
			{"resized", Options{Shape: []int64{3, 4, 4}, Preprocess: preprocess.Settings{Image: resized, Mean: []float64{0.1, 0.2, 0.3}, Std: []float64{0.5}}}},
			{"blue first", Options{Shape: []int64{3, 4, 4}, Preprocess: preprocess.Settings{Image: resized, Channels: "bgr"}}},
			{"grey", Options{Shape: []int64{1, 4, 4}, Preprocess: preprocess.Settings{Image: resized}}},
			{"for bytes", Options{Shape: []int64{4, 4, 3}, Uint8: true, Preprocess: preprocess.Settings{Image: resized}}},
			{"augmented", Options{Shape: []int64{3, 8, 8}, Augment: pipeline(t, "RandomCrop(8, padding=1), RandomHorizontalFlip")}},
		} {
			want := valuesOf(t, folder, tt.opts)
			for _, path := range []string{array, idx} {
				if got := valuesOf(t, path, tt.opts); !slices.Equal(got, want) {
					t.Errorf("%d channels, %s: %s gives other values than PNG files", channels, tt.name, filepath.Base(path))
				}
			}
		}
	}
}

func valuesOf(t *testing.T, path string, opts Options) []float32 {
	t.Helper()
	d, err := Open([]string{path}, opts)
	if err != nil {
		t.Fatal(err)
	}
	size := product(d.Shape())
	all := make([]float32, d.Len()*size)
	for i := range d.Len() {
		if err := d.Read(Floats(all[i*size:][:size]), i); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func writePNG(t *testing.T, path string, w, h, channels int, pixels []byte) {
	t.Helper()
	var img image.Image
	r := image.Rect(0, 0, w, h)
	switch channels {
	case 0, 1:
		img = &image.Gray{Pix: pixels[:w*h], Stride: w, Rect: r}
	case 4:
		img = &image.NRGBA{Pix: pixels[:4*w*h], Stride: 4 * w, Rect: r}
	default:
		rgb := image.NewRGBA(r)
		for i := range w * h {
			rgb.Set(i%w, i/w, color.RGBA{pixels[3*i], pixels[3*i+1], pixels[3*i+2], 255})
		}
		img = rgb
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, img); err != nil {
		t.Fatal(err)
	}
}

// TestArrayShapes: what lies as the network takes it is taken so; what is no picture, or
// may be two, is an error that names the cause.
func TestArrayShapes(t *testing.T) {
	bytes, floats := numpy.Type{Name: "uint8", Kind: 'u', Size: 1}, numpy.Type{Name: "float32", Kind: 'f', Size: 4}
	for _, tt := range []struct {
		kind  numpy.Type
		shape []int // of an example
		takes []int64
		want  string // the shape, or a part of the error
	}{
		{bytes, []int{3, 4, 2}, []int64{3, 4, 2}, "[3 4 2]"},
		{bytes, []int{3, 4, 2}, []int64{3, -1, -1}, "[3 4 2]"},
		{bytes, []int{4, 2}, []int64{1, -1, -1}, "[1 4 2]"},
		{bytes, []int{4, 2, 1}, []int64{1, -1, -1}, "[1 4 2]"},
		{bytes, []int{4, 2, 3}, []int64{3, -1, -1}, "[3 4 2]"},
		{bytes, []int{4, 2, 3}, []int64{-1, -1, -1}, "[4 2 3]"},
		{bytes, []int{4, 2, 3}, nil, "[4 2 3]"},
		{bytes, []int{24}, []int64{24}, "[24]"},
		{bytes, []int{1, 4, 4}, []int64{1, 4, 4}, "[1 4 4]"},
		{bytes, []int{3, 4, 3}, []int64{4, 3, 3}, "4×3 pixels, want 3×4: say how to resize images, or resize them"},
		{floats, []int{3, 3, 3}, []int64{3, 3, 3}, "[3 3 3]"},

		{bytes, []int{3, 3, 3}, []int64{3, 3, 3}, "examples of shape [3 3 3], of which the channels may come first or last, and the network takes [3 3 3]: save them as image files"},
		{bytes, []int{3, 8, 3}, []int64{3, -1, -1}, "of which the channels may come first or last"},
		{bytes, []int{8, 3}, []int64{3, 8, 8}, ": a dimension is missing; if this is a single example, save it again as a[None]"},
		{bytes, []int{8, 8, 2}, []int64{3, 8, 8}, "examples of shape [8 8 2], want [3 8 8]: pictures of another size"},
		{bytes, []int{8, 8, 7}, []int64{7, 8, 8}, ": channels come last; save it again as np.ascontiguousarray(a.transpose(0, 3, 1, 2))"},
		{bytes, []int{9, 9, 3}, []int64{3, 8, 8}, "9×9 pixels, want 8×8: say how to resize images, or resize them"},
		{floats, []int{8, 8, 3}, []int64{3, 8, 8}, ": channels come last; save it again as np.ascontiguousarray(a.transpose(0, 3, 1, 2))"},
		{floats, []int{8, 8, 3}, []int64{3, -1, -1}, ": channels come last; save it again as np.ascontiguousarray(a.transpose(0, 3, 1, 2))"},
		{floats, []int{3, 8, 8}, []int64{8, 8, 3}, ": channels come first; save it again as np.ascontiguousarray(a.transpose(0, 2, 3, 1))"},
		{floats, []int{3, 9, 9}, []int64{3, 8, 8}, ": pictures of another size; floats are taken as they are, uint8 pictures would be resized"},
		{floats, []int{1, 8, 8}, []int64{3, 8, 8}, ": 1 channels, and the network takes 3"},
		{floats, []int{192}, []int64{3, 8, 8}, ": as many elements; if they lie in that order, save it again as a.reshape(-1, 3, 8, 8)"},
		{floats, []int{8, 8}, []int64{3, 8, 8}, ": a dimension is missing"},
		{floats, []int{5}, []int64{7}, "examples of shape [5], want [7]"},
	} {
		size := tt.kind.Size
		for _, d := range tt.shape {
			size *= d
		}
		d, err := newArray("a.npy", numpy.Array{Type: tt.kind, Shape: append([]int{1}, tt.shape...), Data: make([]byte, size)}, Options{Shape: tt.takes, Augment: augment.Pipeline{}})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(d.Shape())
			if err := d.Read(Floats(make([]float32, product(d.Shape()))), 0); err != nil {
				t.Error(err)
			}
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%s %d for %d: %s, want %s", tt.kind.Name, tt.shape, tt.takes, got, tt.want)
		}
	}
}
