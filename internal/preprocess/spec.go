package preprocess

import (
	"fmt"
	"math"
	"slices"
	"strconv"
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
	return "a file, or a name (" + strings.Join(Presets(), ", ") + `), or numbers such as "mean=0.485,0.456,0.406 std=0.229,0.224,0.225 input-size=224"`
}

// setters read the values of a specification, by their keys. The keys are timm's, with hyphens.
var setters = map[string]func(s *Settings, value string) error{
	"mean": func(s *Settings, v string) (err error) { s.Mean, err = numbers(v); return err },
	"std": func(s *Settings, v string) (err error) {
		if s.Std, err = numbers(v); err == nil && slices.ContainsFunc(s.Std, func(x float64) bool { return x <= 0 }) {
			err = fmt.Errorf("%q, want numbers above 0", v)
		}
		return err
	},
	"input-size": func(s *Settings, v string) (err error) { s.Image.InputSize, err = size(v); return err },
	"resize-size": func(s *Settings, v string) (err error) {
		s.Image.CropPct = 0
		s.Image.ResizeSize, err = size(v)
		return err
	},
	"crop-pct": func(s *Settings, v string) (err error) {
		s.Image.ResizeSize = [2]int{}
		if s.Image.CropPct, err = strconv.ParseFloat(v, 64); err != nil || !(s.Image.CropPct > 0) || math.IsInf(s.Image.CropPct, 0) {
			err = fmt.Errorf("%q, want a positive number", v)
		}
		return err
	},
	"crop-mode": func(s *Settings, v string) (err error) { s.Image.CropMode, err = ParseCropMode(v); return err },
	"interpolation": func(s *Settings, v string) (err error) {
		s.Image.Interpolation, err = picture.ParseFilter(v)
		return err
	},
	"channels": func(s *Settings, v string) error { s.Channels = strings.ToLower(v); return s.checkWords() },
	"layout":   func(s *Settings, v string) error { s.Layout = strings.ToLower(v); return s.checkWords() },
}

// keys are the keys of setters, in the order of messages.
var keys = []string{"mean", "std", "input-size", "resize-size", "crop-pct", "crop-mode", "interpolation", "channels", "layout"}

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
	mode, chosen := s.Image.CropMode, false
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		set := setters[key]
		if set == nil {
			return s, &SpecError{&word.Unknown{Word: key, Want: keys}}
		}
		if err := set(&s, value); err != nil {
			return s, &SpecError{fmt.Errorf("%s: %w", key, err)}
		}
		chosen = chosen || key == "crop-mode"
		resizes := key == "input-size" || key == "resize-size" || key == "crop-pct" || key == "interpolation"
		if resizes && mode == CropNone && !chosen {
			s.Image.CropMode = Center
		}
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
		if out[i], err = strconv.Atoi(part); err != nil || out[i] < 1 {
			return out, fmt.Errorf("%q, want a number, or HEIGHTxWIDTH", s)
		}
	}
	return out, nil
}

// numbers parses a comma-separated list of finite numbers.
func numbers(s string) ([]float64, error) {
	out, ok := word.Numbers(s)
	if !ok {
		return nil, fmt.Errorf("%q, want a number, or one for each channel with commas between", s)
	}
	return out, nil
}
