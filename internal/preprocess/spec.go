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
	"reduce-labels": func(s *Settings, v string) error {
		s.ReduceLabels = v == "true"
		return word.Check(v, "true", "false")
	},
}

// keys are the keys of setters, in the order of messages.
var keys = []string{"mean", "std", "input-size", "resize-size", "crop-pct", "crop-mode", "interpolation", "channels", "layout",
	"orientation", "reduce-labels"}

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
	mode, chosen, units := s.Image.CropMode, false, false
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		set := setters[key]
		if set == nil {
			return s, &SpecError{&word.Unknown{Word: key, Want: keys}}
		}
		if err := set(&s, value); err != nil {
			return s, &SpecError{fmt.Errorf("%s: %w", key, err)}
		}
		chosen, units = chosen || key == "crop-mode", units || key == "mean" || key == "std"
		resizes := key == "input-size" || key == "resize-size" || key == "crop-pct" || key == "interpolation"
		if resizes && mode == CropNone && !chosen {
			s.Image.CropMode = Center
		}
	}
	if units && s.Scale == 1 {
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
