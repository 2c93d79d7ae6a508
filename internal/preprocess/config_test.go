package preprocess

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// What the files of known models give; values of the tensors are compared by
// TestTransforms.
func TestReadFile(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"google/vit-base-patch16-224", `{"do_normalize": true, "do_resize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "size": 224, "feature_extractor_type": "ViTFeatureExtractor"}`,
			`{"image":{"crop_mode":"squash","input_size":[224,224],"resize_size":[224,224],"interpolation":"bilinear","floor_crop":true},"channels":"rgb","scale":0.00392156862745098,"mean":[0.5,0.5,0.5],"std":[0.5,0.5,0.5]}`},
		{"facebook/convnext-tiny-224", `{"crop_pct": 0.875, "do_normalize": true, "do_resize": true, "feature_extractor_type": "ConvNextFeatureExtractor", "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3, "size": 224}`,
			`{"image":{"crop_mode":"center","input_size":[224,224],"resize_size":[256,256],"interpolation":"bicubic","floor_crop":true},"channels":"rgb","scale":0.00392156862745098,"mean":[0.485,0.456,0.406],"std":[0.229,0.224,0.225]}`},
		{"fast processor, nothing on", `{"image_processor_type": "CLIPImageProcessorFast", "do_resize": false, "do_center_crop": false, "do_rescale": false, "do_normalize": false, "do_pad": false, "pad_size": null, "_valid_processor_keys": ["images"], "device": null}`,
			`{"channels":"rgb","scale":1,"mean":null,"std":null}`},
		{"processor_config.json", `{"processor_class": "CLIPProcessor", "image_processor": {"image_processor_type": "SiglipImageProcessor", "size": {"height": 384, "width": 384}}, "tokenizer": 1}`,
			`{"image":{"crop_mode":"squash","input_size":[384,384],"resize_size":[384,384],"interpolation":"bicubic","floor_crop":true},"channels":"rgb","scale":0.00392156862745098,"mean":[0.5,0.5,0.5],"std":[0.5,0.5,0.5]}`},
		{"timm, grey", `{"architecture": "x", "pretrained_cfg": {"input_size": [1, 28, 28], "crop_pct": 1.0, "mean": [0.1307], "std": [0.3081], "interpolation": "bilinear", "fixed_input_size": true}}`,
			`{"image":{"crop_mode":"center","input_size":[28,28],"crop_pct":1,"interpolation":"bilinear"},"channels":"grey","mean":[0.1307],"std":[0.3081]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.json")
			if err := os.WriteFile(path, []byte(tt.file), 0o666); err != nil {
				t.Fatal(err)
			}
			p, err := ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(p)
			if err != nil || string(b) != tt.want {
				t.Errorf("got  %s, %v\nwant %s", b, err, tt.want)
			}
		})
	}
}

func TestReadFileErrors(t *testing.T) {
	hf := func(kind, more string) string {
		return fmt.Sprintf(`{"image_processor_type": "%sImageProcessor", %s}`, kind, more)
	}
	tests := []struct{ name, file, want string }{
		{"no json", `size: 224`, "invalid character 's'"},
		{"list", `[1]`, "cannot unmarshal array"},
		{"other json", `{"architectures": ["ViT"]}`, "neither a Hugging Face preprocessor_config.json (do_resize, image_mean ...) nor a timm config (input_size, interpolation ...)"},
		{"no type", `{"do_resize": true, "size": 224}`, "no image_processor_type"},
		{"unknown type", hf("Donut", `"size": 224`), `image_processor_type "DonutImageProcessor" is not supported, want that of Beit, Bit, CLIP,`},
		{"padding", hf("ViT", `"do_pad": true`), "not supported: do_pad (true)"},
		{"unknown keys", hf("ViT", `"size_divisor": 32, "do_thumbnail": true, "do_pad": false`), "not supported: do_thumbnail (true), size_divisor (32)"},
		{"crop_pct of another", hf("ViT", `"crop_pct": 0.9`), "not supported: crop_pct (0.9)"},
		{"resample", hf("ViT", `"resample": 6`), "resample 6, want Pillow's 0 to 5"},
		{"resample word", hf("ViT", `"resample": "bicubic"`), `resample is "bicubic": `},
		{"longest edge", hf("ViT", `"size": {"longest_edge": 224}`), `size is {"longest_edge": 224}: longest_edge is not supported, want shortest_edge, or height and width`},
		{"shortest and longest", hf("CLIP", `"size": {"shortest_edge": 224, "longest_edge": 300}`), "longest_edge is not supported"},
		{"short and height", hf("CLIP", `"size": {"shortest_edge": 224, "height": 300}`), "want either shortest_edge, or height and width"},
		{"height alone", hf("ViT", `"size": {"height": 224}`), "want numbers from 1 to"},
		{"size zero", hf("ViT", `"size": 0`), "want numbers from 1 to"},
		{"size word", hf("ViT", `"size": "224"`), "want a number, or an object"},
		{"short side alone", hf("CLIP", `"size": 224, "do_center_crop": false`), "size has shortest_edge without do_center_crop, so that sizes differ from image to image"},
		{"crop alone", hf("CLIP", `"do_resize": false`), "do_center_crop without do_resize is not supported"},
		{"crop_size shortest", hf("CLIP", `"crop_size": {"shortest_edge": 224}`), "crop_size has shortest_edge, want height and width"},
		{"ConvNext crop_pct", hf("ConvNext", `"crop_pct": 0`), "crop_pct 0, want a number above 0"},
		{"ConvNext size", hf("ConvNext", `"size": {"height": 224, "width": 224}`), "size has height and width, want shortest_edge"},
		{"ConvNext crop", hf("ConvNext", `"do_center_crop": true, "crop_size": 224`), "do_center_crop together with crop_pct is not supported"},
		{"mean", hf("ViT", `"image_mean": "x"`), `image_mean is "x": `},

		{"timm border", `{"input_size": [3, 224, 224], "crop_mode": "border"}`, "crop mode border pads images with the mean colour, which is not supported"},
		{"timm none", `{"input_size": [3, 224, 224], "crop_mode": "none"}`, `crop_mode "none", want center or squash`},
		{"timm channels", `{"input_size": [4, 224, 224]}`, "input_size has 4 channels, want 1 or 3"},
		{"timm random", `{"input_size": [3, 224, 224], "interpolation": "random"}`, `interpolation "random": want one of bilinear`},
		{"timm pretrained", `{"pretrained_cfg": 3}`, "pretrained_cfg is 3: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.json")
			if err := os.WriteFile(path, []byte(tt.file), 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := ReadFile(path)
			if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
	if _, err := ReadFile("nothing.json"); err == nil || err.Error() != "nothing.json: no such file or directory" {
		t.Error(err)
	}
}

// A preset or a configuration is the caller's: changing it changes no other.
func TestSettingsOwned(t *testing.T) {
	for name, read := range map[string]func() (Settings, error){
		"preset": func() (Settings, error) { return Preset("imagenet") },
		"timm":   func() (Settings, error) { return parse([]byte(`{"input_size": [3, 9, 9]}`)) },
		"hf": func() (Settings, error) {
			return parse([]byte(`{"image_processor_type": "LevitImageProcessor"}`))
		},
	} {
		first, err := read()
		if err != nil {
			t.Fatal(err)
		}
		first.Mean[0], first.Std[0] = 7, 7
		again, _ := read()
		if !cmp.Equal(again.Mean, imagenetMean) || !cmp.Equal(again.Std, imagenetStd) || imagenetMean[0] != 0.485 {
			t.Errorf("%s: %v %v", name, again.Mean, again.Std)
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte(`{"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 224}, "crop_pct": 0.9}`))
	f.Add([]byte(`{"pretrained_cfg": {"input_size": [3, 224, 224], "crop_pct": 0.9}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		reliability.Heap(t, len(b), func() {
			if p, err := parse(b); err == nil {
				p.Resolve([]int64{3, -1, -1})
			}
		})
	})
}
