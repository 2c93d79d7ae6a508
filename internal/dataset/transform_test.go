package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/internal/picture"
)

const imageFixtures = "../../fixtures/images"

// transformsGolden is what fixtures/images/transforms.py writes.
type transformsGolden struct {
	Cases []struct {
		Name, Path string
		Shape      []int64
		Preprocess json.RawMessage // a preset's name, a Preprocess, or null
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
	b, err := os.ReadFile(filepath.Join(imageFixtures, "transforms.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g transformsGolden
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestTransforms compares whole tensors with torchvision's, timm's and
// transformers' (with Pillow), bit for bit: PNG has no loss, resizing is in
// integers, and the rest is one rounding a step.
func TestTransforms(t *testing.T) {
	for _, c := range readTransforms(t).Cases {
		t.Run(c.Name, func(t *testing.T) {
			opts := Options{Shape: c.Shape, Uint8: c.Uint8}
			var err error
			var preset string
			switch {
			case string(c.Config) != "null":
				opts.Preprocess, err = parsePreprocess(c.Config)
			case json.Unmarshal(c.Preprocess, &preset) == nil:
				opts.Preprocess, err = Preset(preset)
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
			if err := d.Read(x, 0); err != nil {
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
			if d.(Bytes).Normalize(ours, bytes); !cmp.Equal(ours, x) {
				t.Error("Pixels, then Normalize is not Read")
			}
		})
	}
}

func product(shape []int64) int {
	n := 1
	for _, s := range shape {
		n *= int(s)
	}
	return n
}

// The golden comparison can fail: another filter, a crop one pixel off and a
// swapped mean change the values it looks at.
func TestTransformsDiffer(t *testing.T) {
	base := Preprocess{Image: Transform{CropMode: Center, ResizeSize: [2]int{60, 60}, InputSize: [2]int{57, 57}}, Mean: imagenetMean, Std: imagenetStd}
	read := func(change func(p *Preprocess)) []float32 {
		p := base
		change(&p)
		d, err := Open([]string{filepath.Join(imageFixtures, "transforms-151x101.png")}, Options{Preprocess: p})
		if err != nil {
			t.Fatal(err)
		}
		x := make([]float32, product(d.Shape()))
		if err := d.Read(x, 0); err != nil {
			t.Fatal(err)
		}
		return x
	}
	want := read(func(*Preprocess) {})
	for name, change := range map[string]func(p *Preprocess){
		"filter": func(p *Preprocess) { p.Image.Interpolation = picture.Bicubic },
		"crop":   func(p *Preprocess) { p.Image.FloorCrop = true }, // 1.5 to 1, not to 2
		"bgr":    func(p *Preprocess) { p.Channels = "bgr" },
		"layout": func(p *Preprocess) { p.Layout = "nhwc" },
		"mean":   func(p *Preprocess) { p.Mean = halves },
	} {
		if cmp.Equal(read(change), want) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestResolve(t *testing.T) {
	center := func(t Transform) Preprocess { t.CropMode = Center; return Preprocess{Image: t} }
	tests := []struct {
		name  string
		p     Preprocess
		shape []int64
		want  string // an error, or channels, layout, resize and input size
	}{
		{"square", center(Transform{CropPct: 0.875}), []int64{3, 224, 224}, "rgb nchw 256×256 224×224"},
		{"rounded down", center(Transform{CropPct: 0.9}), []int64{3, 224, 224}, "rgb nchw 248×248 224×224"},
		{"small", center(Transform{CropPct: 0.875}), []int64{3, 32, 32}, "rgb nchw 36×36 32×32"},
		{"upright, last", center(Transform{CropPct: 0.5}), []int64{20, 10, 3}, "rgb nhwc 20×40 10×20"},
		{"grey", center(Transform{}), []int64{1, 28, 28}, "grey nchw 28×28 28×28"},
		{"grey last", center(Transform{}), []int64{28, 28, 1}, "grey nhwc 28×28 28×28"},
		{"either", center(Transform{}), []int64{3, 5, 3}, "rgb nchw 3×5 3×5"},
		{"either, last", Preprocess{Layout: "nhwc", Channels: "bgr"}, []int64{3, 5, 3}, "bgr nhwc 0×0 5×3"},
		{"open", center(Transform{InputSize: [2]int{10, 20}}), []int64{3, -1, -1}, "rgb nchw 20×10 20×10"},
		{"half open", center(Transform{InputSize: [2]int{0, 20}}), []int64{3, 10, -1}, "rgb nchw 20×10 20×10"},
		{"all open", Preprocess{Channels: "grey", Image: Transform{InputSize: [2]int{10, 20}}}, []int64{0, 0, 0}, "grey nchw 0×0 20×10"},
		{"resize size", center(Transform{ResizeSize: [2]int{256, 256}}), []int64{3, 224, 224}, "rgb nchw 256×256 224×224"},

		{"size unknown", center(Transform{}), []int64{3, -1, 224}, "the network takes images of any size, want an input size"},
		{"size differs", center(Transform{InputSize: [2]int{224, 256}}), []int64{3, 224, 224}, "input size 256×224, and the network takes 224×224"},
		{"channels differ", Preprocess{Channels: "rgb"}, []int64{1, 28, 28}, "images have 3 channels (rgb), and the network takes 1 in layout nchw of shape [1 28 28]"},
		{"layout differs", Preprocess{Layout: "nhwc"}, []int64{3, 224, 224}, "images have 3 channels (rgb), and the network takes 224 in layout nhwc of shape [3 224 224]"},
		{"four channels", Preprocess{}, []int64{4, 28, 28}, "images have 3 channels (rgb), and the network takes 4"},
		{"vector", Preprocess{}, []int64{784}, "the network takes examples of shape [784], want 3 dimensions for images"},
		{"huge", Preprocess{}, []int64{3, 1 << 40, 5}, "want at most 1048576 along a side"},
		{"huge area", Preprocess{}, []int64{3, 1 << 20, 1 << 20}, "input size: 1048576×1048576 pixels, want at most 178956970 in all"},
		{"word", Preprocess{Channels: "rbg"}, []int64{3, 5, 5}, `channels "rbg", want rgb, bgr or grey`},
		{"word 2", Preprocess{Layout: "chw"}, []int64{3, 5, 5}, `layout "chw", want nchw or nhwc`},
		{"mode", Preprocess{Image: Transform{CropMode: "border"}}, []int64{3, 5, 5}, "crop mode border pads images with the mean colour, which is not supported"},
		{"mode 2", Preprocess{Image: Transform{CropMode: "middle"}}, []int64{3, 5, 5}, `crop mode "middle", want center, squash or none`},
		{"no mode", Preprocess{Image: Transform{CropPct: 0.9}}, []int64{3, 5, 5}, "crop_pct 0.9, resize size 0×0, but images are not resized: want crop mode center or squash"},
		{"both", center(Transform{CropPct: 0.9, ResizeSize: [2]int{9, 9}}), []int64{3, 5, 5}, "resize size 9×9 and crop_pct 0.9, want one of them"},
		{"crop too large", center(Transform{ResizeSize: [2]int{9, 9}}), []int64{3, 10, 5}, "input size 5×10 is larger than resize size 9×9"},
		{"percent", center(Transform{CropPct: -1}), []int64{3, 5, 5}, "crop_pct -1, want a positive number"},
		{"percent tiny", center(Transform{CropPct: 1e-300}), []int64{3, 5, 5}, "1048577×1048577 pixels, want at most 1048576 along a side"},
		{"negative", center(Transform{InputSize: [2]int{-5, 5}}), []int64{3, 0, 0}, "input size 5×-5, resize size 0×0, want positive numbers"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := tt.p.Resolve(tt.shape)
			got := strings.Join([]string{p.Channels, p.Layout, size2(p.Image.ResizeSize).String(), size2(p.Image.InputSize).String()}, " ")
			if err != nil {
				got = err.Error()
			}
			if err == nil && got != tt.want || !strings.Contains(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if err == nil {
				again, err := p.Resolve(tt.shape)
				if diff := cmp.Diff(p, again); diff != "" || err != nil {
					t.Errorf("resolved again: %v %s", err, diff)
				}
			}
		})
	}
}

// TestPreprocessJSON: old files are read as before, new fields come back, and
// what is not used is not written.
func TestPreprocessJSON(t *testing.T) {
	old := `{"mean":[0.1307],"std":[0.3081]}`
	var p Preprocess
	if err := json.Unmarshal([]byte(old), &p); err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(p); err != nil || string(b) != old {
		t.Errorf("%s, %v, want %s", b, err, old)
	}
	p, err := Preset("inception")
	if err != nil {
		t.Fatal(err)
	}
	p.Channels, p.Layout, p.Scale, p.Image.FloorCrop = "bgr", "nhwc", 0.5, true
	if p, err = p.Resolve([]int64{299, 299, 3}); err != nil {
		t.Fatal(err)
	}
	want := `{"image":{"crop_mode":"center","input_size":[299,299],"resize_size":[341,341],"interpolation":"bicubic","floor_crop":true},` +
		`"channels":"bgr","layout":"nhwc","scale":0.5,"mean":[0.5,0.5,0.5],"std":[0.5,0.5,0.5]}`
	b, err := json.Marshal(p)
	if err != nil || string(b) != want {
		t.Errorf("%s, %v\nwant %s", b, err, want)
	}
	var back Preprocess
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, back); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"image":{"interpolation":"cubic"}}`), &back); err == nil {
		t.Error("an unknown filter is no error")
	}
}

func TestPresets(t *testing.T) {
	for _, name := range Presets() {
		p, err := Preset(name)
		if err != nil {
			t.Error(err)
		}
		if _, err := p.Resolve([]int64{3, 224, 224}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Preset("resnet"); err == nil || err.Error() != `preset "resnet", want one of imagenet, inception, clip, none` {
		t.Error(err)
	}
}

// TestArrayChannels: an array in the network's layout takes one mean a channel,
// whichever dimension that is, in the colours' order.
func TestArrayChannels(t *testing.T) {
	mean, std := []float64{0, 0.25, 0.5}, []float64{1, 0.5, 0.25}
	for _, tt := range []struct {
		p    Preprocess
		want [6]float32 // of two pixels with values 255
	}{
		{Preprocess{}, [6]float32{1, 1.5, 2, 1, 1.5, 2}}, // shape [1 2 3]: told to be last
		{Preprocess{Channels: "bgr"}, [6]float32{2, 1.5, 1, 2, 1.5, 1}},
	} {
		tt.p.Mean, tt.p.Std, tt.p.Layout = mean, std, "nhwc"
		for _, dt := range []dtype{{"uint8", 'u', 1, false}, {"float32", 'f', 4, false}} {
			x := array{dtype: dt, shape: []int{1, 1, 2, 3}, data: []byte{255, 255, 255, 255, 255, 255}}
			if dt.kind == 'f' {
				x.data = nil
				for range 6 {
					x.data = binary.LittleEndian.AppendUint32(x.data, math.Float32bits(1))
				}
			}
			d, err := newArrays("x", x, Options{Preprocess: tt.p})
			if err != nil {
				t.Fatal(err)
			}
			var got [6]float32
			if err := d.Read(got[:], 0); err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("%s %s: %v, want %v", dt.name, tt.p.Channels, got, tt.want)
			}
		}
	}
}
