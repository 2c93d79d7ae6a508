package augment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/word"
)

// A transform is a change that text can name.
type transform interface {
	// name returns torchvision's name.
	name() string
	// params lists the arguments in the order of torchvision.
	params() []param
}

// A param connects an argument of a transform with a field.
type param struct {
	name string
	// text is the field as text that Parse reads, or "" if the field has its default.
	text string
	// read sets the field. If v does not fit, read returns a description of the wanted values. It is not called for
	// None, unless none is true.
	read func(a *arguments, v value) (want string)
	none bool
}

// transforms has the defaults of the transforms that Parse knows.
var transforms = map[string]func() transform{
	"RandomCrop":           func() transform { return &randomCrop{mode: constant} },
	"RandomHorizontalFlip": func() transform { return &flip{p: 0.5} },
	"RandomVerticalFlip":   func() transform { return &flip{vertical: true, p: 0.5} },
	"RandomGrayscale":      func() transform { return &greyscale{p: 0.1} },
	"CenterCrop":           func() transform { return &centreCrop{} },
	"RandomResizedCrop":    func() transform { return &randomResizedCrop{scale: cropScale, ratio: cropRatio} },
	"Resize":               func() transform { return &resize{} },
	"ColorJitter":          func() transform { return &jitter{} },
	"RandomErasing": func() transform {
		return &erase{p: 0.5, scale: eraseScale, ratio: eraseRatio, value: []float64{0}}
	},
	"Normalize": func() transform { return &normalize{} },
}

// textOf returns a transform as text without default arguments.
func textOf(t transform) string {
	var words []string
	for _, p := range t.params() {
		switch {
		case p.text == "":
		case p.name == "size":
			words = append(words, p.text)
		default:
			words = append(words, p.name+"="+p.text)
		}
	}
	return call(t.name(), words...)
}

// call returns a transform with its arguments as text. Empty arguments are left out.
func call(name string, arguments ...string) string {
	arguments = slices.DeleteFunc(arguments, func(a string) bool { return a == "" })
	if len(arguments) == 0 {
		return name
	}
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// arguments holds the arguments of one transform.
type arguments struct {
	printed bool // read from Python's printed form, not from source
	tensor  bool // the transform comes after a conversion to a tensor
	places  []value
	named   map[string]value
}

// bind reads the arguments of t. It refuses unknown names.
func (a *arguments) bind(t transform) error {
	params := t.params()
	var names []string
	for _, p := range params {
		names = append(names, p.name)
	}
	if len(a.places) > len(names) {
		return fmt.Errorf("%d arguments, want at most %d: %s", len(a.places), len(names), strings.Join(names, ", "))
	}
	for name := range a.named {
		if !slices.Contains(names, name) && name != "inplace" {
			return fmt.Errorf("argument %.40s is not known, want %s", name, strings.Join(names, ", "))
		}
	}
	for i, v := range a.places {
		if _, twice := a.named[names[i]]; twice {
			return fmt.Errorf("%s given twice", names[i])
		}
		a.named[names[i]] = v
	}
	for _, p := range params {
		v, ok := a.named[p.name]
		if !ok || p.read == nil || v.kind == 'w' && v.word == "None" && !p.none {
			continue
		}
		if want := p.read(a, v); want != "" {
			return fmt.Errorf("%s is %v, want %s", p.name, v, want)
		}
	}
	return nil
}

// numbers returns the numbers of a list, or a single one. Their number must be one of counts.
func (v value) numbers(counts ...int) ([]float64, bool) {
	if v.kind == 'n' {
		return []float64{v.number}, slices.Contains(counts, 1)
	}
	var x []float64
	for _, e := range v.list {
		if e.kind != 'n' {
			return nil, false
		}
		x = append(x, e.number)
	}
	return x, slices.Contains(counts, len(x))
}

// whole returns integers between lo and hi. Their number must be one of counts.
func (v value) whole(lo, hi int, counts ...int) ([]int, bool) {
	x, ok := v.numbers(counts...)
	n := make([]int, len(x))
	for i, f := range x {
		if n[i] = int(f); f != math.Trunc(f) || f < float64(lo) || f > float64(hi) {
			ok = false
		}
	}
	return n, ok
}

// Limits of ratios, areas and factors: far beyond any use, and far from overflow.
const least, most = 1e-6, 1e6

func probabilityParam(p *float64, unset float64) param {
	return param{name: "p", text: unless(*p, unset, number(*p)), read: func(_ *arguments, v value) string {
		if *p = v.number; v.kind != 'n' || !(v.number >= 0 && v.number <= 1) {
			return "a number from 0 to 1"
		}
		return ""
	}}
}

// spanParam is a pair of numbers between lo and hi, in ascending order.
func spanParam(name string, to *[2]float64, unset [2]float64, lo, hi float64, want string) param {
	return param{name: name, text: unless(*to, unset, tuple(to[:])), read: func(a *arguments, v value) string {
		x, ok := v.numbers(2)
		if !ok || !(lo <= x[0] && x[0] <= x[1] && x[1] <= hi) {
			return want
		}
		*to = [2]float64(x)
		return ""
	}}
}

// ratioParam is a range of ratios of width and height.
func ratioParam(to *[2]float64, unset [2]float64) param {
	p := spanParam("ratio", to, unset, least, most, "two positive numbers, the smaller first")
	span := p.read
	p.read = func(a *arguments, v value) string {
		want := span(a, v)
		for i := range to {
			if a.printed && to[i] == 1.3333 { // version 1 prints four digits of its default
				to[i] = cropRatio[1]
			}
		}
		return want
	}
	return p
}

const sides = "whole numbers from 1 to 1048576: one, or height and width"

// sizeParam is a height and width. One number means both.
func sizeParam(to *[2]int) param {
	text := unless(*to, [2]int{}, fmt.Sprintf("(%d, %d)", to[0], to[1]))
	if to[0] == to[1] {
		text = unless(to[0], 0, strconv.Itoa(to[0]))
	}
	return param{name: "size", text: text, read: func(_ *arguments, v value) string {
		n, ok := v.whole(1, picture.MaxSide, 1, 2)
		if !ok {
			return sides
		}
		*to = [2]int{n[0], n[len(n)-1]}
		return ""
	}}
}

func filterParams(f *picture.Filter) []param {
	text := unless(*f, picture.Bilinear, fmt.Sprintf("'%s'", *f))
	return []param{{name: "interpolation", text: text, read: func(_ *arguments, v value) string {
		name := strings.ToLower(v.word[strings.LastIndexByte(v.word, '.')+1:])
		var err error
		switch {
		case v.kind == 'n' && v.number == math.Trunc(v.number) && v.number >= 0 && v.number < float64(len(picture.PillowFilters)):
			*f = picture.PillowFilters[int(v.number)]
		case name == "nearest-exact" || name == "nearest_exact":
			*f = picture.Nearest
		default:
			*f, err = picture.ParseFilter(name)
		}
		if err != nil || v.kind == 'l' {
			return "nearest, bilinear, bicubic, lanczos, box, hamming or Pillow's number for one"
		}
		return ""
	}}, {name: "antialias", none: true, read: func(a *arguments, v value) string {
		// Before a conversion to a tensor the argument has no effect, because pictures are always resized with
		// antialiasing.
		if a.tensor && *f != picture.Nearest && v.word != "True" {
			return "True: a tensor is resized with other pixels then. " + advice()
		}
		return ""
	}}}
}

// normalize holds the arguments of Normalize.
type normalize struct{ mean, std []float64 }

func (*normalize) name() string { return "Normalize" }

func (o *normalize) params() []param {
	channels := func(name string, to *[]float64, least float64) param {
		return param{name: name, text: tuple(*to), none: true, read: func(_ *arguments, v value) string {
			x, ok := v.numbers(1, 3)
			switch {
			case !ok:
				return "a number for each channel, one or three"
			case slices.Min(x) < least || slices.Max(x) > most:
				return word.Span(least, most)
			}
			*to = x
			return ""
		}}
	}
	return []param{channels("mean", &o.mean, -most), channels("std", &o.std, least), {name: "inplace"}}
}

// unless returns the text of a value, or "" if it has the default value unset.
func unless[T comparable](value, unset T, text string) string {
	if value == unset {
		return ""
	}
	return text
}

// number returns x as text that is read back exactly.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// numberList returns numbers separated by commas.
func numberList(x []float64) string {
	var words []string
	for _, v := range x {
		words = append(words, number(v))
	}
	return strings.Join(words, ", ")
}

func tuple(x []float64) string {
	if len(x) == 1 {
		return "(" + number(x[0]) + ",)"
	}
	return "(" + numberList(x) + ")"
}
