package probe

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// normalise returns the change by mean and standard deviation of a preprocessing. With undo it returns the inverse.
func (p part) normalise(s preprocess.Settings, undo bool) (c moments.Change) {
	mean, std := s.Unit()
	for g := range p.sample.Groups() {
		k := g
		if s.Channels == "bgr" {
			k = p.sample.Groups() - 1 - g
		}
		m, d := 0.0, 1.0
		if len(mean) > 0 {
			m = groupValue(mean, k)
		}
		if len(std) > 0 {
			d = groupValue(std, k)
		}
		if undo {
			c.Scale, c.Shift = append(c.Scale, d), append(c.Shift, m)
		} else {
			c.Scale, c.Shift = append(c.Scale, 1/d), append(c.Shift, -m/d)
		}
	}
	return c
}

// multiplied returns the change x → factor·x + shift.
func multiplied(factor, shift float64) moments.Change {
	return moments.Change{Scale: []float64{factor}, Shift: []float64{shift}}
}

// changes lists the ways in which an input may be prepared wrongly, likely causes first. If two explain a difference equally well, the
// first one is named. Inputs of another domain silence those that only the content of pictures shows, and not the range of the values.
func (p part) changes(s preprocess.Settings) (all []Fault) {
	groups := max(1, p.sample.Groups()) // tokens have none
	then := func(name, fix string, changes ...moments.Change) *Fault {
		c := moments.Change{}
		for _, next := range changes {
			c = c.Then(next, groups)
		}
		c.Name = name
		all = append(all, Fault{Name: name, Cause: name, Hint: fix, Undo: &c})
		return &all[len(all)-1]
	}
	if p.sample.Kind == moments.Tokens {
		for _, by := range []float64{1, -1} {
			then(fmt.Sprintf("every token id is off by %+.0f, as with another numbering of special tokens", by), tokenizer,
				multiplied(1, -by)).Unless = Foreign
		}
		return all
	}
	apply, undo := p.normalise(s, false), p.normalise(s, true)
	card := p.picture && (s.Mean != nil || s.Std != nil)
	if card {
		then("the values were normalised twice", p.fixTwice(), undo)
		then("the values were not normalised", p.fixRaw(s), apply)
		then("pixels from 0 to 255 were normalised as if they were from 0 to 1", fix255, undo,
			multiplied(1./255, 0), apply)
		then("the values were normalised three times", "save the array before it is normalised", undo, undo)
		then("pixels were divided by 255 twice", fixTwice255, undo, multiplied(255, 0), apply)
		then("pixels from 0 to 255 that were not normalised", fix255, multiplied(1./255, 0), apply)
		then("pixels were scaled to [-1, 1], and training had the mean and standard deviation of the model card",
			p.fixRaw(s), multiplied(0.5, 0.5), apply)
	}
	for _, name := range preprocess.Presets() {
		preset, err := preprocess.Preset(name)
		if err != nil || !p.picture || preset.Mean == nil || len(preset.Mean) != 1 && len(preset.Mean) != groups {
			continue
		}
		other, numbers := p.normalise(preset, true), "the mean and standard deviation of "+name
		if card {
			then("the values were normalised with "+numbers, p.fixRaw(s), other, apply)
			continue
		}
		then("training normalised with "+numbers+", and these values are not normalised",
			setting.Fit.With(setting.Preprocess.With(name)), p.normalise(preset, false))
		then("the values were normalised with "+numbers+", and training did not normalise",
			"save them before they are normalised", other)
	}
	then("the values are 255 times those of training", p.fixScale(true), multiplied(1./255, 0))
	then("the values were divided by 255, and training did not divide", p.fixScale(false), multiplied(255, 0))
	if p.picture {
		then("black and white are inverted", "invert the pictures: 255 - x for uint8, 1 - x for floats", undo,
			multiplied(-1, 1), apply).Unless = Foreign
	}
	if p.picture && groups == 3 {
		swap, order := moments.Change{From: []int{2, 1, 0}}, "bgr"
		if s.Channels == "bgr" {
			order = "rgb"
		}
		fix := "reverse the channels, of an array a of N×C×H×W by a[:, ::-1]; if training had this order: " +
			setting.Fit.With(setting.Preprocess.With("channels="+order))
		then("the order of the channels is reversed (BGR in place of RGB)", fix, undo, swap, apply).Unless = Foreign
		if card {
			then("the order of the channels is reversed after they were normalised (BGR in place of RGB)", fix,
				swap).Unless = Foreign
		}
	}
	for i := range all {
		if all[i].Unless == 0 { // arrays of pixels may have another order of channels than the pictures that prove the preprocessing
			all[i].Unless = p.proof()
		}
	}
	return all
}

const (
	fix255      = "divide the array by 255, or save it as uint8"
	fixTwice255 = "multiply the array by 255 and save it as uint8"
)

// fixTwice returns the advice for data that was normalised twice.
func (p part) fixTwice() string {
	switch p.prepared {
	case normalised:
		return setting.Arrays.With("seen") + ", which feeds the array to the network unchanged"
	case decoded:
		return "if the network normalises its input itself, fit again with " +
			setting.Preprocess.With("none") + "; else training did not normalise"
	}
	return "save the array after it was normalised once"
}

// fixRaw returns the advice for data that was not normalised.
func (p part) fixRaw(s preprocess.Settings) string {
	if p.prepared == unchanged {
		return setting.Arrays.With("pixels") + ", which normalises the array as the model card says"
	}
	return fmt.Sprintf("save pixels from 0 to 1, or uint8: mean %v and standard deviation %v are then applied", s.Mean, s.Std)
}

// fixScale returns the advice for data that is 255 times too large, or too small.
func (p part) fixScale(large bool) string {
	switch {
	case large && !p.picture:
		return setting.Arrays.With("pixels") + " divides arrays of uint8 by 255; divide others before they are saved"
	case large:
		return fix255
	case !p.picture && p.prepared != unchanged:
		return setting.Arrays.With("seen") + ", which feeds arrays of uint8 to the network unchanged"
	}
	return "multiply the array by 255"
}
