package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

const imageFixtures = "../../fixtures/images"

// Means and standard deviations of known presets.
var (
	imagenetMean = []float64{0.485, 0.456, 0.406}
	imagenetStd  = []float64{0.229, 0.224, 0.225}
	halves       = []float64{0.5, 0.5, 0.5}
	clipMean     = []float64{0.48145466, 0.4578275, 0.40821073}
	clipStd      = []float64{0.26862954, 0.26130258, 0.27577711}
)

// transformsGolden is what fixtures/images/transforms.py writes.
type transformsGolden struct {
	Cases []struct {
		Name, Path string
		Shape      []int64
		Preprocess json.RawMessage // a preset's name, Settings, or null
		Config     json.RawMessage
		Uint8      bool
		SHA256     string
		At         []int
		Values     []float64
	}
	Tree    []string
	Classes []string
	Samples [][2]any
	Shard   [][3]any
}

func readTransforms(t *testing.T) transformsGolden {
	t.Helper()
	var g transformsGolden
	testfile.JSON(t, filepath.Join(imageFixtures, "transforms.json"), &g)
	return g
}

// TestTransforms compares whole tensors with torchvision's, timm's and
// transformers' (with Pillow), bit for bit: PNG has no loss, resizing is in
// integers, and the rest is one rounding a step.
func TestTransforms(t *testing.T) {
	for i, c := range readTransforms(t).Cases {
		if testing.Short() && i%8 > 0 {
			continue // one of each eight is enough for the race detector
		}
		t.Run(c.Name, func(t *testing.T) {
			opts := Options{Shape: c.Shape, Uint8: c.Uint8}
			var err error
			var preset string
			switch {
			case string(c.Config) != "null":
				path := filepath.Join(t.TempDir(), "config.json")
				write(t, path, c.Config)
				opts.Preprocess, err = preprocess.ReadFile(path)
			case json.Unmarshal(c.Preprocess, &preset) == nil:
				opts.Preprocess, err = preprocess.Preset(preset)
			default:
				err = json.Unmarshal(c.Preprocess, &opts.Preprocess)
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := Open([]string{filepath.Join(imageFixtures, c.Path)}, opts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.Shape, d.Shape()); diff != "" {
				t.Fatal(diff)
			}
			x := make([]float32, product(c.Shape))
			if err := d.Read(Floats(x), 0); err != nil {
				t.Fatal(err)
			}
			for k, i := range c.At {
				if float64(x[i]) != c.Values[k] {
					t.Errorf("value %d is %v, want %v", i, x[i], c.Values[k])
				}
			}
			bytes, ours := make([]byte, len(x)), make([]float32, len(x))
			if err := d.(Bytes).Pixels(bytes, 0); err != nil {
				t.Fatal(err)
			}
			sum := sha256.New()
			if c.Uint8 {
				sum.Write(bytes)
			} else {
				binary.Write(sum, binary.LittleEndian, x)
			}
			if got := hex.EncodeToString(sum.Sum(nil)); got != c.SHA256 {
				t.Errorf("SHA-256 of all values %s, want %s", got, c.SHA256)
			}
			if d.(Bytes).Normalize(ours, bytes); !slices.Equal(ours, x) {
				t.Error("Pixels, then Normalize is not Read")
			}
		})
	}
}

// The golden comparison can fail: another filter, a crop one pixel off and a
// swapped mean change the values it looks at.
func TestTransformsDiffer(t *testing.T) {
	base := preprocess.Settings{Image: preprocess.Transform{CropMode: preprocess.Center, ResizeSize: [2]int{60, 60}, InputSize: [2]int{57, 57}}, Mean: imagenetMean, Std: imagenetStd}
	read := func(change func(p *preprocess.Settings)) []float32 {
		p := base
		change(&p)
		d, err := Open([]string{filepath.Join(imageFixtures, "transforms-151x101.png")}, Options{Preprocess: p})
		if err != nil {
			t.Fatal(err)
		}
		x := make([]float32, product(d.Shape()))
		if err := d.Read(Floats(x), 0); err != nil {
			t.Fatal(err)
		}
		return x
	}
	want := read(func(*preprocess.Settings) {})
	for name, change := range map[string]func(p *preprocess.Settings){
		"filter": func(p *preprocess.Settings) { p.Image.Interpolation = picture.Bicubic },
		"crop":   func(p *preprocess.Settings) { p.Image.CropRoundsDown = true }, // 1.5 to 1, not to 2
		"bgr":    func(p *preprocess.Settings) { p.Channels = "bgr" },
		"layout": func(p *preprocess.Settings) { p.Layout = "nhwc" },
		"mean":   func(p *preprocess.Settings) { p.Mean = halves },
	} {
		if cmp.Equal(read(change), want) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

// TestArrayChannels: an array in the network's layout takes one mean a channel,
// whichever dimension that is, in the colours' order.
func TestArrayChannels(t *testing.T) {
	mean, std := []float64{0, 0.25, 0.5}, []float64{1, 0.5, 0.25}
	for _, tt := range []struct {
		p    preprocess.Settings
		want [6]float32 // of two pixels with values 255
	}{
		{preprocess.Settings{}, [6]float32{1, 1.5, 2, 1, 1.5, 2}}, // shape [1 2 3]: told to be last
		{preprocess.Settings{Channels: "bgr"}, [6]float32{2, 1.5, 1, 2, 1.5, 1}},
	} {
		tt.p.Mean, tt.p.Std, tt.p.Layout = mean, std, "nhwc"
		for _, dt := range []numpy.Type{{Name: "uint8", Kind: 'u', Size: 1}, {Name: "float32", Kind: 'f', Size: 4}} {
			x := numpy.Array{Type: dt, Shape: []int{1, 1, 2, 3}, Data: []byte{255, 255, 255, 255, 255, 255}}
			if dt.Kind == 'f' {
				x.Data = nil
				for range 6 {
					x.Data = binary.LittleEndian.AppendUint32(x.Data, math.Float32bits(1))
				}
			}
			d, err := newArray("x", x, Options{Preprocess: tt.p})
			if err != nil {
				t.Fatal(err)
			}
			var got [6]float32
			if err := d.Read(Floats(got[:]), 0); err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("%s %s: %v, want %v", dt.Name, tt.p.Channels, got, tt.want)
			}
		}
	}
}
