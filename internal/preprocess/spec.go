package preprocess

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/word"
)

// SpecError is the error for a word of a specification that [Settings.With] does not understand.
type SpecError struct{ Err error }

func (e *SpecError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SpecError) Unwrap() error { return e.Err }

// Hint shows the form of a specification.
func (e *SpecError) Hint() string {
	return "a file, or a name (" + strings.Join(Presets(),
		", ") + `), or numbers such as "mean=0.485,0.456,0.406 std=0.229,0.224,0.225 input-size=224"`
}

// Limits of numbers: far beyond any use, and far from overflow in float32. Pixels are from 0 to 255 at most.
const (
	least, most         = 1e-6, 1e6
	leastCrop, mostCrop = 1e-3, 1e3
)

// setters read the values of a specification, by their keys. The keys are timm's, with hyphens.
var setters = map[string]func(s *Settings, value string) error{
	"mean":       func(s *Settings, v string) (err error) { s.Mean, err = word.Reals(v, -most, most); return err },
	"std":        func(s *Settings, v string) (err error) { s.Std, err = word.Reals(v, least, most); return err },
	"input-size": func(s *Settings, v string) (err error) { s.Image.InputSize, err = size(v); return err },
	"resize-size": func(s *Settings, v string) (err error) {
		s.Image.CropPct = 0
		s.Image.ResizeSize, err = size(v)
		return err
	},
	"crop-pct": func(s *Settings, v string) (err error) {
		s.Image.ResizeSize = [2]int{}
		s.Image.CropPct, err = word.Real(v, leastCrop, mostCrop)
		return err
	},
	"crop-mode": func(s *Settings, v string) (err error) { s.Image.CropMode, err = ParseCropMode(v); return err },
	"interpolation": func(s *Settings, v string) (err error) {
		s.Image.Interpolation, err = picture.ParseFilter(v)
		return err
	},
	"channels": func(s *Settings, v string) error { s.Channels = strings.ToLower(v); return s.checkWords() },
	"layout":   func(s *Settings, v string) error { s.Layout = strings.ToLower(v); return s.checkWords() },
	"orientation": func(s *Settings, v string) (err error) {
		s.Orientation, err = picture.ParseOrientation(strings.ToLower(v))
		return err
	},
	"arrays":        func(s *Settings, v string) error { s.Arrays = v; return word.Check(v, Unchanged) },
	"reduce-labels": func(s *Settings, v string) (err error) { s.ReduceLabels, err = boolean(v); return err },
	"floor-crop":    func(s *Settings, v string) (err error) { s.Image.CropRoundsDown, err = boolean(v); return err },
	"tensor":        func(s *Settings, v string) (err error) { s.Image.Tensor, err = boolean(v); return err },
	"scale":         func(s *Settings, v string) (err error) { s.Scale, err = word.Real(v, least, most); return err },
}

// keys are the keys of setters, in the order of messages.
var keys = []string{"mean", "std", "input-size", "resize-size", "crop-pct", "crop-mode", "interpolation", "channels", "layout",
	"orientation", "reduce-labels", "arrays", "scale", "floor-crop", "tensor"}

func boolean(v string) (bool, error) { return v == "true", word.Check(v, "true", "false") }

// None is the name of the preset that changes nothing but the scale.
const None = "none"

// Unchanged is the word of [Settings].Arrays.
const Unchanged = "seen"

// Words returns the specification that [Settings.With] reads as these settings. Sizes of the network are left out.
func (s Settings) Words() string {
	var words []string
	add := func(key string, value any) { words = append(words, fmt.Sprint(key, "=", value)) }
	list := func(key string, values []float64) {
		if values != nil {
			add(key, strings.Trim(strings.ReplaceAll(fmt.Sprint(values), " ", ","), "[]"))
		}
	}
	list("mean", s.Mean)
	list("std", s.Std)
	if s.Scale != 0 {
		add("scale", s.Scale)
	}
	if im := s.Image; im.CropMode != CropNone {
		add("crop-mode", im.CropMode)
		if im.ResizeSize != [2]int{} && im.ResizeSize != im.InputSize {
			add("resize-size", fmt.Sprintf("%dx%d", im.ResizeSize[0], im.ResizeSize[1]))
		}
		if im.CropPct != 0 {
			add("crop-pct", im.CropPct)
		}
		add("interpolation", im.Interpolation)
		if im.CropRoundsDown {
			add("floor-crop", true)
		}
		if im.Tensor {
			add("tensor", true)
		}
	}
	if s.Channels == "bgr" {
		add("channels", s.Channels)
	}
	if s.Orientation != "" {
		add("orientation", s.Orientation)
	}
	if s.Arrays != "" {
		add("arrays", s.Arrays)
	}
	if s.ReduceLabels {
		add("reduce-labels", true)
	}
	if words == nil {
		return None
	}
	return strings.Join(words, " ")
}

// With returns the settings that a specification describes: a file for [ReadFile], or the name of a [Preset], or words
// KEY=VALUE with spaces or semicolons between. The words change s, or the file or preset before them. Without a file or preset, all
// other settings are those of s. An error about the words is a *SpecError.
func (s Settings) With(spec string) (Settings, error) {
	spec = strings.ReplaceAll(spec, ";", " ")
	words := strings.Fields(spec)
	if len(words) == 0 {
		return s, &SpecError{fmt.Errorf("%q: nothing is in it", spec)}
	}
	if key, _, assigns := strings.Cut(words[0], "="); !assigns || setters[key] == nil && strings.ContainsAny(key, "./\\") {
		var err error
		rest := words[1:]
		// A path may contain spaces.
		for len(rest) > 0 && !strings.Contains(rest[0], "=") {
			rest = rest[1:]
		}
		first := strings.TrimSpace(spec)
		if len(rest) > 0 {
			first = strings.TrimSpace(spec[:strings.Index(spec, rest[0])])
		}
		if s, err = named(first); err != nil {
			return s, err
		}
		words = rest
	}
	mode, chosen, units, scaled := s.Image.CropMode, false, false, false
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		set := setters[key]
		if set == nil {
			return s, &SpecError{&word.Unknown{Word: key, Want: keys}}
		}
		if err := set(&s, value); err != nil {
			return s, &SpecError{fmt.Errorf("%s: %w", key, err)}
		}
		chosen, units, scaled = chosen || key == "crop-mode", units || key == "mean" || key == "std", scaled || key == "scale"
		resizes := key == "input-size" || key == "resize-size" || key == "crop-pct" || key == "interpolation"
		if resizes && mode == CropNone && !chosen {
			s.Image.CropMode = Center
		}
	}
	if units && !strings.Contains(spec, "arrays=") {
		s.Arrays = ""
	}
	if units && !scaled && s.Scale == 1 {
		s.Scale = 0 // the earlier mean was for pixels from 0 to 255; InUnits decides on the new one
	}
	return s, nil
}

// named returns the settings of a preset or of a file.
func named(name string) (Settings, error) {
	if slices.Contains(Presets(), name) {
		return Preset(name)
	}
	if !strings.ContainsAny(name, "./\\") {
		if _, err := Preset(name); err != nil && word.Nearest(name, Presets()) != "" {
			return Settings{}, &SpecError{err}
		}
	}
	return ReadFile(name)
}

// size parses 224, or 240x320 with the height first.
func size(s string) (out [2]int, err error) {
	h, w, two := strings.Cut(strings.ToLower(s), "x")
	if !two {
		w = h
	}
	for i, part := range []string{h, w} {
		if out[i], err = word.Integer(part, 1, picture.MaxSide); err != nil {
			return out, fmt.Errorf("%w, or HEIGHTxWIDTH", err)
		}
	}
	return out, nil
}

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
