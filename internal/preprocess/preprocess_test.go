package preprocess

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/picture"
)

// TestTransforms compares whole tensors with torchvision's, timm's and
// transformers' (with Pillow), bit for bit: PNG has no loss, resizing is in
// integers, and the rest is one rounding a step. The way back gives the pixels.
func TestTransforms(t *testing.T) {
	const fixtures = "../../fixtures/images"
	var golden struct {
		Cases []struct {
			Name, Path         string
			Shape              []int64
			Preprocess, Config json.RawMessage
			Uint8              bool
			SHA256             string
		}
	}
	testfile.JSON(t, filepath.Join(fixtures, "transforms.json"), &golden)
	for _, c := range golden.Cases {
		t.Run(c.Name, func(t *testing.T) {
			var s Settings
			var preset string
			var err error
			switch {
			case string(c.Config) != "null":
				s, err = parse(c.Config)
			case json.Unmarshal(c.Preprocess, &preset) == nil:
				s, err = Preset(preset)
			default:
				err = json.Unmarshal(c.Preprocess, &s)
			}
			if err != nil {
				t.Fatal(err)
			}
			if s, err = s.Resolve(c.Shape); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(fixtures, c.Path))
			if err != nil {
				t.Fatal(err)
			}
			f, err := picture.Open(data)
			if err != nil {
				t.Fatal(err)
			}
			p, err := f.Decode(s.Channels == "grey")
			if err != nil {
				t.Fatal(err)
			}
			if p, err = s.Image.Apply(p); err != nil {
				t.Fatal(err)
			}
			n, err := s.Normalizer(c.Shape, true)
			if err != nil {
				t.Fatal(err)
			}
			pixels, x := make([]byte, len(p.Pix)), make([]float32, len(p.Pix))
			s.Lay(pixels, p)
			n.Bytes(x, pixels)
			sum := sha256.New()
			if c.Uint8 {
				sum.Write(pixels)
			} else {
				binary.Write(sum, binary.LittleEndian, x)
			}
			if got := hex.EncodeToString(sum.Sum(nil)); got != c.SHA256 {
				t.Errorf("SHA-256 of all values %s, want %s", got, c.SHA256)
			}

			if back := s.Picture(slices.Clone(pixels), p.H, p.W); !slices.Equal(back.Pix, p.Pix) {
				t.Error("Picture does not undo Lay")
			}
			v, err := s.View(c.Shape)
			if err != nil {
				t.Fatal(err)
			}
			if back := v.Bytes(slices.Clone(pixels)); !slices.Equal(back.Pix, p.Pix) {
				t.Error("the view of bytes is another picture")
			}
			if scaled := s.Scale == 0 || math.Abs(s.Scale-1.0/255) < 1e-9; scaled && !slices.Equal(v.Floats(x).Pix, p.Pix) {
				t.Error("the view of floats is another picture")
			}
		})
	}
}

func TestResolve(t *testing.T) {
	center := func(t Transform) Settings { t.CropMode = Center; return Settings{Image: t} }
	tests := []struct {
		name  string
		p     Settings
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
		{"either, last", Settings{Layout: "nhwc", Channels: "bgr"}, []int64{3, 5, 3}, "bgr nhwc 0×0 5×3"},
		{"open", center(Transform{InputSize: [2]int{10, 20}}), []int64{3, -1, -1}, "rgb nchw 20×10 20×10"},
		{"half open", center(Transform{InputSize: [2]int{0, 20}}), []int64{3, 10, -1}, "rgb nchw 20×10 20×10"},
		{"all open", Settings{Channels: "grey", Image: Transform{InputSize: [2]int{10, 20}}}, []int64{0, 0, 0}, "grey nchw 0×0 20×10"},
		{"resize size", center(Transform{ResizeSize: [2]int{256, 256}}), []int64{3, 224, 224}, "rgb nchw 256×256 224×224"},

		{"size unknown", center(Transform{}), []int64{3, -1, 224}, "the network takes images of any size, want an input size"},
		{"size differs", center(Transform{InputSize: [2]int{224, 256}}), []int64{3, 224, 224}, "input size 256×224, and the network takes 224×224"},
		{"channels differ", Settings{Channels: "rgb"}, []int64{1, 28, 28}, "images have 3 channels (rgb), and the network takes 1 in layout nchw of shape [1 28 28]"},
		{"layout differs", Settings{Layout: "nhwc"}, []int64{3, 224, 224}, "images have 3 channels (rgb), and the network takes 224 in layout nhwc of shape [3 224 224]"},
		{"four channels", Settings{}, []int64{4, 28, 28}, "images have 3 channels (rgb), and the network takes 4"},
		{"vector", Settings{}, []int64{784}, "the network takes examples of shape [784], want 3 dimensions for images"},
		{"huge", Settings{}, []int64{3, 1 << 40, 5}, "want at most 1048576 along a side"},
		{"huge area", Settings{}, []int64{3, 1 << 20, 1 << 20}, "input size: 1048576×1048576 pixels, want at most 178956970 in all"},
		{"word", Settings{Channels: "rbg"}, []int64{3, 5, 5}, `channels "rbg", want rgb, bgr or grey`},
		{"word 2", Settings{Layout: "chw"}, []int64{3, 5, 5}, `layout "chw", want nchw or nhwc`},
		{"mode", Settings{Image: Transform{CropMode: "border"}}, []int64{3, 5, 5}, "crop mode border pads images with the mean colour, which is not supported"},
		{"mode 2", Settings{Image: Transform{CropMode: "middle"}}, []int64{3, 5, 5}, `crop mode "middle": want one of center, squash or none`},
		{"no mode", Settings{Image: Transform{CropPct: 0.9}}, []int64{3, 5, 5}, "crop_pct 0.9, resize size 0×0, but images are not resized: want crop mode center or squash"},
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

// TestSettingsJSON: old files are read as before, new fields come back, and
// what is not used is not written.
func TestSettingsJSON(t *testing.T) {
	old := `{"mean":[0.1307],"std":[0.3081]}`
	var p Settings
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
	p.Channels, p.Layout, p.Scale, p.Image.CropRoundsDown = "bgr", "nhwc", 0.5, true
	if p, err = p.Resolve([]int64{299, 299, 3}); err != nil {
		t.Fatal(err)
	}
	want := `{"image":{"crop_mode":"center","input_size":[299,299],"resize_size":[341,341],"interpolation":"bicubic","floor_crop":true},` +
		`"channels":"bgr","layout":"nhwc","scale":0.5,"mean":[0.5,0.5,0.5],"std":[0.5,0.5,0.5]}`
	b, err := json.Marshal(p)
	if err != nil || string(b) != want {
		t.Errorf("%s, %v\nwant %s", b, err, want)
	}
	var back Settings
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
	if _, err := Preset("resnet"); err == nil || err.Error() != `preset "resnet": want one of imagenet, inception, clip or none` {
		t.Error(err)
	}
}
