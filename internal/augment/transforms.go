package augment

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// A transform describes a name that Parse knows: its arguments in order, and the function that adds it to a pipeline.
type transform struct {
	names []string
	add   func(b *builder, a *arguments) error
}

// transforms is filled in init to avoid an initialisation cycle.
var transforms map[string]transform

func init() {
	crop := []string{"size", "scale", "ratio", "interpolation", "antialias"}
	transforms = map[string]transform{
		"RandomCrop":                        {[]string{"size", "padding", "pad_if_needed", "fill", "padding_mode"}, addRandomCrop},
		"RandomHorizontalFlip":              {[]string{"p"}, func(b *builder, a *arguments) error { return b.picture(flip{false, a.probability(0.5)}) }},
		"RandomVerticalFlip":                {[]string{"p"}, func(b *builder, a *arguments) error { return b.picture(flip{true, a.probability(0.5)}) }},
		"RandomGrayscale":                   {[]string{"p"}, func(b *builder, a *arguments) error { return b.picture(greyscale{a.probability(0.1)}) }},
		"CenterCrop":                        {[]string{"size"}, func(b *builder, a *arguments) error { return b.picture(centreCrop{a.size()}) }},
		"RandomResizedCrop":                 {crop, addRandomResizedCrop},
		"RandomResizedCropAndInterpolation": {crop[:4], addRandomResizedCrop},
		"Resize":                            {[]string{"size", "interpolation", "max_size", "antialias"}, addResize},
		"ColorJitter":                       {jitterNames[:], addJitter},
		"RandomErasing":                     {[]string{"p", "scale", "ratio", "value", "inplace", "mode", "count"}, addErase},
		"Normalize":                         {[]string{"mean", "std", "inplace"}, addNormalize},
	}
}

// known returns the names of the transforms that change a picture.
func known() []string { return slices.Sorted(maps.Keys(transforms)) }

const sides = "whole numbers from 1 to 1048576: one, or height and width"

// size returns the argument size as height and width, or zeros if it is missing.
func (a *arguments) size() [2]int {
	switch n := a.whole("size", 1, picture.MaxSide, []int{1, 2}, sides); len(n) {
	case 1:
		return [2]int{n[0], n[0]}
	case 2:
		return [2]int{n[0], n[1]}
	}
	return [2]int{}
}

func addRandomCrop(b *builder, a *arguments) error {
	o := randomCrop{to: a.size(), ifNeeded: a.flag("pad_if_needed"), mode: constant}
	if v, ok := a.get("padding_mode"); ok {
		if o.mode = padMode(v.word); !slices.Contains(padModes, o.mode) {
			a.fail("padding_mode", v, "constant, edge, reflect or symmetric")
		}
	}
	const want = "whole numbers from 0 to 1048576: one, two (left and right, top and bottom) or four (left, top, right, bottom)"
	switch n := a.whole("padding", 0, picture.MaxSide, []int{1, 2, 4}, want); len(n) {
	case 1:
		o.padding = [4]int{n[0], n[0], n[0], n[0]}
	case 2:
		o.padding = [4]int{n[0], n[1], n[0], n[1]}
	case 4:
		o.padding = [4]int(n)
		// Version 2 prints another order: left, right, top, bottom.
		if _, v2 := a.named["padding_mode"]; a.printed && v2 {
			o.padding = [4]int{n[0], n[2], n[1], n[3]}
		}
	}
	o.fill = a.fill()
	return b.picture(o)
}

// fill returns the levels for the area outside a picture, truncated to integers as torchvision does.
func (a *arguments) fill() []byte {
	v, ok := a.get("fill")
	if !ok {
		return nil
	}
	x, ok := v.numbers()
	ok = ok && (len(x) == 1 || len(x) == 3)
	var fill []byte
	for _, f := range x {
		ok = ok && f >= 0 && f <= 255
		fill = append(fill, byte(max(0, min(f, 255))))
	}
	if !ok {
		a.fail("fill", v, "levels from 0 to 255: one, or three")
		return nil
	}
	if slices.Max(fill) == slices.Min(fill) {
		fill = fill[:1]
	}
	if fill[0] == 0 && len(fill) == 1 {
		return nil
	}
	return fill
}

// Limits of ratios, areas and factors: far beyond any use, and far from overflow.
const least, most = 1e-6, 1e6

func (a *arguments) ratio(unset [2]float64) [2]float64 {
	r := a.span("ratio", unset, least, most, "two positive numbers, the smaller first")
	for i, v := range r {
		if a.printed && v == 1.3333 { // version 1 prints four digits of its default
			r[i] = cropRatio[1]
		}
	}
	return r
}

func addRandomResizedCrop(b *builder, a *arguments) error {
	o := randomResizedCrop{to: a.size(), ratio: a.ratio(cropRatio)}
	o.scale = a.span("scale", cropScale, 0, most, "two numbers from 0, the smaller first")
	if o.scale[1] == 0 {
		v, _ := a.get("scale")
		a.fail("scale", v, "a part of the area above 0")
	}
	if v, ok := a.get("interpolation"); ok && slices.Contains([]string{"random", "bilinear bicubic"}, v.word) {
		o.either = true
	} else {
		o.filter = a.filter()
	}
	return b.picture(o)
}

// filter returns the interpolation. It rejects antialias=False after a conversion to a tensor. Before one the
// argument has no effect, because pictures are always resized with antialiasing.
func (a *arguments) filter() picture.Filter {
	f := picture.Bilinear
	if v, ok := a.get("interpolation"); ok {
		name := strings.ToLower(v.word[strings.LastIndexByte(v.word, '.')+1:])
		var err error
		switch {
		case v.kind == 'n' && v.number == math.Trunc(v.number) && v.number >= 0 && int(v.number) < len(picture.PillowFilters):
			f = picture.PillowFilters[int(v.number)]
		case name == "nearest-exact" || name == "nearest_exact":
			f = picture.Nearest
		default:
			f, err = picture.ParseFilter(name)
		}
		if err != nil || v.kind == 'l' {
			a.fail("interpolation", v, "nearest, bilinear, bicubic, lanczos, box, hamming or Pillow's number for one")
		}
	}
	if v, given := a.named["antialias"]; given && a.tensor && f != picture.Nearest && v.word != "True" {
		a.fail("antialias", v, "True: a tensor is resized with other pixels then. "+advice)
	}
	return f
}

func addResize(b *builder, a *arguments) error {
	if v, ok := a.get("max_size"); ok {
		a.fail("max_size", v, "None: it is not supported")
	}
	o := resize{filter: a.filter()}
	switch n := a.whole("size", 1, picture.MaxSide, []int{1, 2}, sides); len(n) {
	case 1:
		o.short = n[0]
	case 2:
		o.to = [2]int(n)
	}
	return b.picture(o)
}

func addJitter(b *builder, a *arguments) error {
	var o jitter
	for i, name := range jitterNames {
		v, ok := a.get(name)
		if !ok {
			continue
		}
		lo, hi, middle, want := 0.0, most, 1.0, "a number from 0, or two, the smaller first"
		if name == "hue" {
			lo, hi, middle, want = -0.5, 0.5, 0, "a number from 0 to 0.5, or two from -0.5, the smaller first"
		}
		f := [2]float64{middle, middle}
		if v.kind == 'n' {
			if !(v.number >= 0 && middle+v.number <= hi) {
				a.fail(name, v, want)
			}
			f = [2]float64{max(lo, middle-v.number), middle + v.number}
		} else {
			f = a.span(name, f, lo, hi, want)
		}
		if f != [2]float64{middle, middle} {
			o[i] = &f
		}
	}
	return b.picture(o)
}

func addErase(b *builder, a *arguments) error {
	e := erase{p: a.probability(0.5), value: []float64{0}, count: [2]int{1, 1}}
	mode, isTimm := a.get("mode")
	if _, ok := a.get("count"); ok {
		isTimm = true
	}
	scale, ratio := eraseScale, eraseRatio
	if isTimm {
		scale, ratio = timmEraseScale, timmEraseRatio
	}
	e.scale = a.span("scale", scale, 0, 1, "two numbers from 0 to 1, the smaller first")
	e.ratio = a.ratio(ratio)
	switch n := a.whole("count", 1, 1000, []int{1, 2}, "a whole number from 1 to 1000, or the least and the most"); {
	case len(n) == 1:
		e.count[1] = n[0]
	case len(n) == 2 && n[0] <= n[1]:
		e.count = [2]int(n)
	case len(n) == 2:
		v, _ := a.get("count")
		a.fail("count", v, "the least first")
	}
	v, hasValue := a.get("value")
	x, isNumbers := v.numbers()
	_, all := a.named["inplace"]
	switch {
	case hasValue && isTimm:
		return errors.New("value and timm's mode or count, want one of them")
	case hasValue && v.kind != 'l' && v.word == "random":
		e.value = nil
	case hasValue && (!isNumbers || len(x) != 1 && len(x) != 3):
		a.fail("value", v, "a number, three, or 'random'")
	case hasValue:
		if slices.Max(x) > math.MaxFloat32 || slices.Min(x) < -math.MaxFloat32 {
			a.fail("value", v, "numbers in the range of float32")
		}
		if slices.Max(x) == slices.Min(x) {
			x = x[:1]
		}
		e.value = x
	case a.printed && all && !isTimm:
		e.value = nil // version 2 prints no value if it is random
	case isTimm && mode.word == "rand":
		e.value, e.colour = nil, true
	case isTimm && mode.word == "pixel":
		e.value = nil
	case isTimm && mode.word != "const" && mode.word != "":
		a.fail("mode", mode, "const, rand or pixel")
	}
	b.erases = append(b.erases, e)
	return nil
}

func addNormalize(b *builder, a *arguments) error {
	var both [2][]float64
	for i, name := range []string{"mean", "std"} {
		v, ok := a.get(name)
		if !ok {
			return fmt.Errorf("%s is missing", name)
		}
		if both[i], ok = v.numbers(); !ok || len(both[i]) != 1 && len(both[i]) != 3 {
			a.fail(name, v, "a number for each channel, one or three")
		} else if name == "std" && slices.Min(both[i]) <= 0 {
			a.fail(name, v, "positive numbers")
		}
	}
	return b.normalize(both[0], both[1])
}
