package preprocess

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/word"
)

// These slices are never returned, because a caller may change its copy.
var (
	imagenetMean = []float64{0.485, 0.456, 0.406}
	imagenetStd  = []float64{0.229, 0.224, 0.225}
	halves       = []float64{0.5, 0.5, 0.5}
	clipMean     = []float64{0.48145466, 0.4578275, 0.40821073}
	clipStd      = []float64{0.26862954, 0.26130258, 0.27577711}
)

// presets have the numbers of timm/data/constants.py. Sizes depend on the network: at 224 pixels imagenet resizes to
// 256, as torchvision's first ImageNet weights require.
var presets = []struct {
	name string
	set  Settings
}{
	{"imagenet", Settings{
		Image: Transform{CropMode: Center, CropPct: 0.875, Interpolation: picture.Bilinear},
		Mean:  imagenetMean,
		Std:   imagenetStd,
	}},
	{"inception", Settings{Image: Transform{CropMode: Center, CropPct: 0.875, Interpolation: picture.Bicubic}, Mean: halves, Std: halves}},
	{"clip", Settings{Image: Transform{CropMode: Center, CropPct: 1, Interpolation: picture.Bicubic}, Mean: clipMean, Std: clipStd}},
	{None, Settings{}},
}

// Presets returns the names that [Preset] knows.
func Presets() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// Preset returns the preprocessing that a family of models was trained with. The names are "imagenet" (torchvision,
// most of timm), "inception" (mean and std 0.5, many vision transformers), "clip" (OpenAI), and "none".
func Preset(name string) (Settings, error) {
	for _, p := range presets {
		if p.name == name {
			p.set.Mean, p.set.Std = slices.Clone(p.set.Mean), slices.Clone(p.set.Std)
			return p.set, nil
		}
	}
	return Settings{}, fmt.Errorf("preset %w", &word.Unknown{Word: name, Want: Presets()})
}
