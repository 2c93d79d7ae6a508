package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

func pipeline(t testing.TB, spec string) augment.Pipeline {
	t.Helper()
	p, err := augment.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// places says where a network takes a picture's values.
type places struct {
	name            string
	channels        string
	last, bgr, grey bool
}

var allPlaces = []places{
	{"nchw", "rgb", false, false, false}, {"nhwc", "rgb", true, false, false}, {"nchw", "bgr", false, true, false},
	{"nhwc", "bgr", true, true, false}, {"nchw", "grey", false, false, true}, {"nhwc", "grey", true, false, true},
}

func (l places) shape(h, w int64) []int64 {
	c := int64(3)
	if l.grey {
		c = 1
	}
	if l.last {
		return []int64{h, w, c}
	}
	return []int64{c, h, w}
}

// lay puts the values of a picture, red first, where the network takes them.
func (l places) lay(p picture.Picture) []byte {
	out := make([]byte, len(p.Pix))
	for i := range p.W * p.H {
		for c := range p.C {
			to := c
			if l.bgr {
				to = 2 - c
			}
			if l.last {
				out[i*p.C+to] = p.Pix[i*p.C+c]
			} else {
				out[to*p.W*p.H+i] = p.Pix[i*p.C+c]
			}
		}
	}
	return out
}

// TestAugment compares with the pipeline applied by hand, for files and arrays,
// every order of values, with a cache and without, and from several goroutines.
func TestAugment(t *testing.T) {
	files := []string{"transforms-151x101.png", "transforms-24x24.png"}
	const h, w = 20, 26
	for _, l := range allPlaces {
		mean, std, value := []float64{0.1, 0.2, 0.3}, []float64{0.5, 0.25, 0.75}, "(1, 2, 3)"
		if l.grey {
			mean, std, value = mean[:1], std[:1], "7"
		}
		spec := "RandomResizedCrop, RandomHorizontalFlip(p=0.3), ColorJitter(0.4, 0.4, 0.4, 0.1), RandomErasing(p=0.9, value=" + value + ")"
		whole, err := pipeline(t, spec).Resolve(h, w)
		if err != nil {
			t.Fatal(err)
		}
		var decoded []picture.Picture
		var paths []string
		for _, f := range files {
			paths = append(paths, filepath.Join(imageFixtures, f))
			data, err := os.ReadFile(paths[len(paths)-1])
			if err != nil {
				t.Fatal(err)
			}
			f, err := picture.Open(data)
			if err != nil {
				t.Fatal(err)
			}
			p, err := f.Decode(l.grey)
			if err != nil {
				t.Fatal(err)
			}
			decoded = append(decoded, p)
		}
		// The array has pictures of one size, other than the network's.
		var stored []picture.Picture
		c := decoded[0].C
		npy := numpy.Header("|u1", append([]int{6}, ints(l.shape(9, 31))...)...)
		for k := range 6 {
			p := picture.New(31, 9, c)
			for j := range p.Pix {
				p.Pix[j] = byte(j*j*k + 13*j + k)
			}
			stored, npy = append(stored, p), append(npy, l.lay(p)...)
		}
		array := filepath.Join(t.TempDir(), "x.npy")
		write(t, array, npy)

		for _, src := range []struct {
			paths    []string
			pictures []picture.Picture
		}{{paths, decoded}, {[]string{array}, stored}} {
			want := make([][]float32, len(src.pictures))
			for i, p := range src.pictures {
				q, err := whole.Picture(p, uint64(i))
				if err != nil {
					t.Fatal(err)
				}
				want[i] = make([]float32, len(q.Pix))
				for j, v := range l.lay(q) {
					k := j / (h * w)
					if l.last {
						k = j % c
					}
					if l.bgr {
						k = 2 - k
					}
					want[i][j] = (float32(float64(v)/255) - float32(mean[k])) / float32(std[k])
				}
				whole.Erase(want[i], c, h, w, l.last, uint64(i))
			}
			for _, budget := range []int64{0, h * w * 4, 1 << 20} {
				var cache *memory.Pool
				if budget > 0 {
					cache = memory.NewPool(budget)
				}
				d, err := Open(src.paths, Options{
					Shape: l.shape(h, w), Augment: pipeline(t, spec+""), Cache: cache,
					// What would be done in evaluation must not matter.
					Preprocess: preprocess.Settings{Channels: l.channels, Layout: l.name, Mean: mean, Std: std, Image: preprocess.Transform{CropMode: preprocess.Center, CropPct: 0.5}},
				})
				if err != nil {
					t.Fatal(err)
				}
				if room, ok := Room(d); ok != (budget > 0) || room != int(budget)/(h*w*c) || !examplesIn(d).augmented || AsSeen(d) {
					t.Errorf("%d bytes: room for %d, %v; augmented %v, as seen %v", budget, room, ok, examplesIn(d).augmented, AsSeen(d))
				}
				if _, ok := d.(Bytes); ok {
					t.Error("erased pictures have Pixels")
				}
				if !slices.Equal(d.Shape(), l.shape(h, w)) {
					t.Fatalf("shape %v", d.Shape())
				}
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						x := make([]float32, h*w*c)
						for range 2 {
							for i := range want {
								if err := d.Read(Floats(x), i); err != nil {
									t.Error(err)
								} else if !slices.Equal(x, want[i]) {
									t.Errorf("%s %s %s, cache of %d bytes: picture %d differs", src.paths[0], l.name, l.channels, budget, i)
								}
							}
						}
					})
				}
				wg.Wait()
			}
		}
	}
}

func ints(x []int64) []int {
	var out []int
	for _, v := range x {
		out = append(out, int(v))
	}
	return out
}

// TestAugmentPixels: without erasing, Pixels and Normalize make Read.
func TestAugmentPixels(t *testing.T) {
	for _, path := range []string{imageFixtures + "/transforms-24x24.png", "testdata/u8.npy"} {
		d, err := Open([]string{path}, Options{Shape: []int64{3, 4, 2}, Augment: pipeline(t, "RandomResizedCrop, RandomVerticalFlip")})
		if err != nil {
			t.Fatal(err)
		}
		x, y, b := make([]float32, 24), make([]float32, 24), make([]byte, 24)
		if err := d.(Bytes).Pixels(b, 0); err != nil {
			t.Fatal(err)
		}
		d.(Bytes).Normalize(y, b)
		if err := d.Read(Floats(x), 0); err != nil || !slices.Equal(x, y) {
			t.Errorf("%s: %v, %v and %v", path, err, x, y)
		}
		if bytes.Equal(b, make([]byte, 24)) {
			t.Error("all black")
		}
	}
}

// TestAugmentSize: what the network leaves open the augmentation says, or the
// pictures do.
func TestAugmentSize(t *testing.T) {
	tests := []struct {
		path, spec string
		shape      []int64
		want       []int64
	}{
		{imageFixtures + "/transforms-24x24.png", "RandomCrop(16)", []int64{3, -1, -1}, []int64{3, 16, 16}},
		{imageFixtures + "/transforms-24x24.png", "RandomCrop((16, 8))", []int64{-1, -1, 3}, []int64{16, 8, 3}},
		{"testdata/u8.npy", "RandomCrop(4, padding=1)", nil, []int64{3, 4, 4}},
		{"testdata/u8.npy", "RandomCrop(padding=1)", nil, []int64{3, 4, 2}},
		{"testdata/u8.npy", "RandomHorizontalFlip", []int64{3, -1, -1}, []int64{3, 4, 2}},
		{"testdata/u8.npy", "RandomHorizontalFlip", []int64{-1, -1, -1}, []int64{3, 4, 2}},
		{"testdata/nhwc.npy", "RandomHorizontalFlip", nil, []int64{4, 2, 3}},
		{"testdata/nhwc.npy", "imagenet", []int64{8, 8, 3}, []int64{8, 8, 3}},
		{"testdata/grey.npy", "RandomHorizontalFlip", nil, []int64{1, 4, 2}},
		{"testdata/grey.npy", "cifar", []int64{4, 2, 1}, []int64{4, 2, 1}},
		{"testdata/grey.npy", "cifar", []int64{1, 4, 2}, []int64{1, 4, 2}},
		{"testdata/grey.npy", "cifar", []int64{3, 4, 2}, []int64{3, 4, 2}},
		{"testdata/nhwc.npy", "cifar", []int64{3, 4, 2}, []int64{3, 4, 2}},
		{"testdata/nhwc.npy", "RandomCrop(4, padding=1)", []int64{3, -1, -1}, []int64{3, 4, 4}},
	}
	for _, tt := range tests {
		d, err := Open([]string{tt.path}, Options{Shape: tt.shape, Augment: pipeline(t, tt.spec)})
		if err != nil {
			t.Errorf("%s %s: %v", tt.path, tt.spec, err)
			continue
		}
		if !slices.Equal(d.Shape(), tt.want) {
			t.Errorf("%s %s: shape %v, want %v", tt.path, tt.spec, d.Shape(), tt.want)
		}
		n := 1
		for _, s := range tt.want {
			n *= int(s)
		}
		if err := d.Read(Floats(make([]float32, n)), 0); err != nil {
			t.Error(err)
		}
	}
}

func TestAugmentRefuses(t *testing.T) {
	png := imageFixtures + "/transforms-24x24.png"
	three := []int64{3, 4, 2}
	tests := []struct {
		name, path, spec string
		opts             Options
		want             string
	}{
		{"floats", "testdata/f32.npy", "cifar", Options{}, "augmentation of float32 values: want uint8 pictures or image files, or what the network saw"},
		{"table", "testdata/u8.npy", "cifar", Options{Shape: []int64{24}}, "examples of shape [3 4 2], want [24]: as many elements; if they lie in that order, save it again as a.reshape(-1, 24)"},
		{"grey network", "testdata/u8.npy", "cifar", Options{Shape: []int64{1, 4, 2}}, "examples of shape [3 4 2], want [1 4 2]: 3 channels, and the network takes 1"},
		{"size", png, "RandomCrop(8)", Options{Shape: []int64{3, 24, 24}}, "augmentation: RandomCrop(8) makes pictures of 8×8 pixels, and the network takes 24×24"},
		{"size of an array", "testdata/u8.npy", "RandomCrop(8)", Options{Shape: three}, "augmentation: RandomCrop(8) makes pictures of 8×8 pixels, and the network takes 2×4"},
		{"chain", png, "Resize((4, 4)), RandomCrop(8)", Options{Shape: []int64{3, -1, -1}}, "augmentation: RandomCrop(8): a picture of 4×4 pixels is too small"},
		{"open", png, "RandomHorizontalFlip", Options{Shape: []int64{3, -1, -1}}, "want an input size"},
		{"fill", "testdata/grey.npy", "RandomCrop(padding=1, fill=(1, 2, 3))", Options{}, "fill has 3 values, and pictures have 1 channels"},
		{"uint8", png, "cifar, RandomErasing", Options{Shape: []int64{3, 24, 24}, Uint8: true}, "RandomErasing changes normalised values, and the network takes uint8"},
		{"mean", png, "cifar, Normalize((0.5, 0.5, 0.4), 0.5)", Options{Shape: []int64{3, 24, 24}, Preprocess: preprocess.Settings{Mean: halves, Std: halves}},
			"augmentation: Normalize has mean [0.5 0.5 0.4], std [0.5], and the preprocessing mean [0.5 0.5 0.5], std [0.5 0.5 0.5]: want the same"},
		{"std", "testdata/u8.npy", "cifar, Normalize(0, 0.5)", Options{}, "Normalize has mean [0], std [0.5], and the preprocessing mean [], std []: want the same"},
		{"mean of bytes", "testdata/u8.npy", "cifar", Options{Uint8: true, Preprocess: preprocess.Settings{Mean: halves}}, "but the network takes uint8 values: want none of them"},
		{"normalise alone", "testdata/u8.npy", "Normalize(0, 0.5)", Options{}, "Normalize has mean [0], std [0.5]"},
	}
	for _, tt := range tests {
		tt.opts.Augment = pipeline(t, tt.spec)
		_, err := Open([]string{tt.path}, tt.opts)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), tt.path+": ") {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}

	// What does not come to the size is an error of that picture.
	d, err := Open([]string{png}, Options{Shape: []int64{3, 8, 8}, Augment: pipeline(t, "RandomHorizontalFlip")})
	if err != nil {
		t.Fatal(err)
	}
	const want = ": 24×24 pixels after augmentation (RandomHorizontalFlip), want 8×8: say how pictures come to that size (RandomResizedCrop, Resize, CenterCrop)"
	if err := d.Read(Floats(make([]float32, 3*64)), 0); err == nil || err.Error() != png+want {
		t.Error(err)
	}
	d, err = Open([]string{"testdata/u8.npy"}, Options{Shape: []int64{3, 8, 8}, Augment: pipeline(t, "RandomHorizontalFlip")})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Read(Floats(make([]float32, 3*64)), 2); err == nil || !strings.HasPrefix(err.Error(), "u8.npy[2]: 2×4 pixels after augmentation") {
		t.Error(err)
	}
}

// TestNormalizeAlike: numbers may be given once or for each channel, or printed
// with four digits.
func TestNormalizeAlike(t *testing.T) {
	for _, tt := range []struct {
		spec string
		pre  preprocess.Settings
	}{
		{"Normalize(0.5, (0.5, 0.5, 0.5))", preprocess.Settings{Mean: halves, Std: []float64{0.5}}},
		{"Normalize(0, 1)", preprocess.Settings{}},
		{"Normalize(tensor([0.4815, 0.4578, 0.4082]), tensor([0.2686, 0.2613, 0.2758]))", preprocess.Settings{Mean: clipMean, Std: clipStd}},
	} {
		if _, err := Open([]string{"testdata/u8.npy"}, Options{Preprocess: tt.pre, Augment: pipeline(t, "cifar, "+tt.spec)}); err != nil {
			t.Errorf("%s: %v", tt.spec, err)
		}
	}
}

// TestAsSeen: floats are what the network saw, whatever else is asked for. uint8 arrays
// are pictures.
func TestAsSeen(t *testing.T) {
	opts := Options{Arrays: Seen, Cache: memory.NewPool(1 << 20), Augment: pipeline(t, "cifar, Normalize(0.5, 0.5), RandomErasing(p=1)"),
		Preprocess: preprocess.Settings{Mean: []float64{0.5}, Std: []float64{0.5}, Scale: 1.0 / 255}}
	for path, size := range map[string]int{"testdata/f32.npy": 4, "testdata/f64.npy": 8, "testdata/f32be.npy": -4} {
		d, err := Open([]string{path}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if !AsSeen(d) || examplesIn(d).augmented {
			t.Errorf("%s: as seen %v, augmented %v", path, AsSeen(d), examplesIn(d).augmented)
		}
		if _, ok := Room(d); ok {
			t.Errorf("%s: a cache of what is in memory", path)
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		const elems = 24
		x := make([]float32, elems)
		for i := range d.Len() {
			if err := d.Read(Floats(x), i); err != nil {
				t.Fatal(err)
			}
			for j, got := range x {
				from := file[len(file)-(d.Len()*elems-i*elems-j)*max(size, -size):]
				want := float32(0)
				switch size {
				case 4:
					want = math.Float32frombits(binary.LittleEndian.Uint32(from))
				case -4:
					want = math.Float32frombits(binary.BigEndian.Uint32(from))
				case 8:
					want = float32(math.Float64frombits(binary.LittleEndian.Uint64(from)))
				}
				if got != want {
					t.Fatalf("%s[%d]: element %d is %v, want %v", path, i, j, got, want)
				}
			}
		}
	}
	// A NaN is one all the same.
	d, err := Open([]string{"testdata/nan.npy"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Read(Floats(make([]float32, 24)), 3); err == nil {
		t.Error("no error for NaN")
	}
	if d, err = Open([]string{"testdata/nan.npy"}, Options{}); err != nil || AsSeen(d) {
		t.Errorf("%v, as seen %v without being asked", err, AsSeen(d))
	}

	// Bytes and files are as they were without it.
	opts.Preprocess.Scale = 0
	for path, shape := range map[string][]int64{"testdata/u8.npy": {3, 4, 2}, imageFixtures + "/transforms-24x24.png": {3, 24, 24}} {
		opts.Shape = shape
		with, err := Open([]string{path}, opts)
		if err != nil {
			t.Fatal(err)
		}
		without := opts
		without.Arrays = Pixels
		plain, err := Open([]string{path}, without)
		if err != nil {
			t.Fatal(err)
		}
		n := int(shape[0] * shape[1] * shape[2])
		x, y := make([]float32, n), make([]float32, n)
		if err := with.Read(Floats(x), 0); err != nil {
			t.Fatal(err)
		}
		if err := plain.Read(Floats(y), 0); err != nil || !slices.Equal(x, y) || AsSeen(with) || !examplesIn(with).augmented {
			t.Errorf("%s: %v; as seen %v, augmented %v", path, err, AsSeen(with), examplesIn(with).augmented)
		}
	}
}

// TestCacheOption: files are cached, arrays only if that spares work.
func TestCacheOption(t *testing.T) {
	for _, tt := range []struct {
		path, spec string
		want       bool
	}{
		{imageFixtures + "/transforms-24x24.png", "none", true},
		{imageFixtures + "/transforms-24x24.png", "cifar", true},
		{"testdata/u8.npy", "none", false},
		{"testdata/u8.npy", "cifar", true},
		{"testdata/f32.npy", "none", false},
	} {
		shape := []int64{3, 24, 24}
		if !strings.HasSuffix(tt.path, ".png") {
			shape = nil
		}
		d, err := Open([]string{tt.path}, Options{Shape: shape, Augment: pipeline(t, tt.spec), Cache: memory.NewPool(2 * 3 * 24 * 24)})
		if err != nil {
			t.Fatal(err)
		}
		if room, ok := Room(d); ok != tt.want || ok && room < 2 {
			t.Errorf("%s, %s: room for %d, %v, want %v", tt.path, tt.spec, room, ok, tt.want)
		}
		if examplesIn(d).augmented != (tt.spec != "none") {
			t.Errorf("%s, %s: augmented %v", tt.path, tt.spec, examplesIn(d).augmented)
		}
	}
}

func BenchmarkAugment(b *testing.B) {
	for _, spec := range []string{"none", "cifar"} {
		n := 1000
		path := filepath.Join(b.TempDir(), "x.npy")
		write(b, path, append(numpy.Header("|u1", n, 3, 32, 32), make([]byte, n*3*32*32)...))
		d, err := Open([]string{path}, Options{Shape: []int64{3, 32, 32}, Augment: pipeline(b, spec)})
		if err != nil {
			b.Fatal(err)
		}
		x := make([]float32, 3*32*32)
		b.Run(fmt.Sprintf("Read/%s", spec), func(b *testing.B) {
			i := 0
			for b.Loop() {
				if err := d.Read(Floats(x), i%n); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
