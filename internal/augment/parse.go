package augment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// advice tells the user what to do about training that this package cannot repeat.
const advice = "save what the training loader yields as an array instead (--bn-data)"

// maxText is far more than a pipeline needs, in bytes.
const maxText = 1 << 16

// Parse reads a pipeline. Transforms are separated by commas or line ends, with arguments as in Python:
//
//	RandomCrop(32, padding=4), RandomHorizontalFlip
//
// Parse also reads the source or the printed form of a Compose of torchvision, v1 or v2, or of timm. It knows the
// presets none, cifar (RandomCrop(padding=4), RandomHorizontalFlip) and imagenet (RandomResizedCrop,
// RandomHorizontalFlip). A missing size means the network's. An unknown transform is an error, and so is an unknown
// argument of a transform that changes pixels. A printed RandomCrop of v1 omits pad_if_needed, fill and padding_mode,
// so Parse assumes the defaults.
func Parse(spec string) (Pipeline, error) {
	if len(spec) > maxText {
		return Pipeline{}, fmt.Errorf("%d bytes of text, want at most %d", len(spec), maxText)
	}
	var b builder
	if err := b.items(newScanner(spec), 0, end); err != nil {
		return Pipeline{}, err
	}
	if b.steps == 0 {
		return Pipeline{}, fmt.Errorf("empty, want %s, or transforms", strings.Join(presetNames(), ", "))
	}
	return b.Pipeline, nil
}

// presets are the pipelines with names.
var presets = []struct {
	name string
	ops  []op
}{
	{"none", nil},
	{"cifar", []op{randomCrop{padding: [4]int{4, 4, 4, 4}, mode: constant}, flip{p: 0.5}}},
	{"imagenet", []op{randomResizedCrop{scale: cropScale, ratio: cropRatio}, flip{p: 0.5}}},
}

func presetNames() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// builder collects the steps of a pipeline in order.
type builder struct {
	Pipeline
	steps  int
	tensor bool // a conversion to a tensor has been seen
}

// items reads transforms up to the closing bracket or the end.
func (b *builder) items(s *scanner, depth int, closing token) error {
	if depth > maxDepth {
		return errDeep
	}
	for !s.take(closing) {
		switch s.token {
		case end:
			return fmt.Errorf("%q is missing at the end", string(closing))
		case word:
		default:
			return fmt.Errorf("at %.20q, want a transform", s.rest)
		}
		name := s.next()
		if depth == 0 && s.take('=') { // train = Compose([...
			continue
		}
		printed := closing == ')' // a printed Compose contains no list
		if err := b.item(s, name, depth, printed); err != nil {
			return err
		}
		if !s.take(',') && !s.line && s.token != end && s.token != ')' && s.token != ']' {
			return fmt.Errorf("at %.20q, want a comma or a new line after %s", s.rest, name)
		}
	}
	return nil
}

// item reads the rest of a transform after its name, and adds the transform.
func (b *builder) item(s *scanner, name string, depth int, printed bool) error {
	for _, p := range presets {
		if p.name == name {
			b.steps++
			b.ops = append(b.ops, p.ops...)
			return nil
		}
	}
	short := name[strings.LastIndexByte(name, '.')+1:] // transforms.v2.RandomCrop
	if short == "Compose" {
		return b.compose(s, depth)
	}
	// Check the name before the arguments, which may be anything.
	isConversion := slices.Contains(conversions, short)
	t, ok := transforms[short]
	if !ok && !isConversion {
		return fmt.Errorf("%.40s is not supported, want %s: %s", short, strings.Join(known(), ", "), advice)
	}
	a := &arguments{printed: printed, tensor: b.tensor}
	var err error
	if s.take('(') {
		a.places, a.named, _, err = s.list(')', depth+1)
	}
	b.steps++
	if isConversion {
		b.tensor = true
	} else if err == nil {
		err = t.bind(b, a)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", short, err)
	}
	return nil
}

func (b *builder) compose(s *scanner, depth int) error {
	if !s.take('(') {
		return errors.New("no brackets after Compose, want its transforms in them")
	}
	if !s.take('[') {
		return b.items(s, depth+1, ')')
	}
	if err := b.items(s, depth+1, ']'); err != nil {
		return err
	}
	s.take(',')
	if !s.take(')') {
		return fmt.Errorf("at %.20q, want the end of Compose", s.rest)
	}
	return nil
}

// picture adds a change of pixels.
func (b *builder) picture(o op) error {
	switch {
	case len(b.erases) > 0:
		return errors.New("after RandomErasing, want it before: erasing is done last, on normalised values")
	case b.Mean != nil:
		return errors.New("after Normalize, want it before: pictures are changed before they are normalised")
	}
	b.ops = append(b.ops, o)
	return nil
}

func (b *builder) normalize(mean, std []float64) error {
	switch {
	case len(b.erases) > 0:
		return errors.New("after RandomErasing, which is done on normalised values here: want Normalize before it. If training erased first, " + advice)
	case b.Mean != nil:
		return errors.New("a second time, want one")
	}
	b.Mean, b.Std = mean, std
	return nil
}

// conversions are transforms that change no pixel.
var conversions = []string{"ToTensor", "PILToTensor", "ToImage", "ToImageTensor", "ToDtype", "ConvertImageDtype", "ConvertDtype",
	"ToPureTensor", "ToPILImage", "MaybeToTensor", "MaybePILToTensor"}

// A value is the value of an argument.
type value struct {
	kind   byte // 'n'umber, 'w'ord, 's'tring or 'l'ist
	number float64
	word   string
	list   []value
}

func (v value) String() string {
	switch v.kind {
	case 'n':
		return number(v.number)
	case 'l':
		var in []string
		for _, x := range v.list {
			in = append(in, x.String())
		}
		return "(" + strings.Join(in, ", ") + ")"
	}
	return fmt.Sprintf("%.40s", v.word)
}

// arguments holds the arguments of one transform.
type arguments struct {
	printed bool // read from Python's printed form, not from source
	tensor  bool // the transform comes after a conversion to a tensor
	places  []value
	named   map[string]value
	err     error // the first error of a getter
}

// bind assigns names to the arguments without a name, refuses unknown names, and adds the transform.
func (t transform) bind(b *builder, a *arguments) error {
	if len(a.places) > len(t.names) {
		return fmt.Errorf("%d arguments, want at most %d: %s", len(a.places), len(t.names), strings.Join(t.names, ", "))
	}
	for name := range a.named {
		if !slices.Contains(t.names, name) && name != "inplace" {
			return fmt.Errorf("argument %.40s is not known, want %s", name, strings.Join(t.names, ", "))
		}
	}
	for i, v := range a.places {
		if _, twice := a.named[t.names[i]]; twice {
			return fmt.Errorf("%s given twice", t.names[i])
		}
		a.named[t.names[i]] = v
	}
	if err := t.add(b, a); err != nil {
		return err
	}
	return a.err
}

// get returns an argument and reports whether it was given and is not None.
func (a *arguments) get(name string) (value, bool) {
	v, ok := a.named[name]
	return v, ok && !(v.kind == 'w' && v.word == "None")
}

func (a *arguments) fail(name string, v value, want string) {
	if a.err == nil {
		a.err = fmt.Errorf("%s is %v, want %s", name, v, want)
	}
}

// number returns the number, which must lie between lo and hi.
func (a *arguments) number(name string, unset, lo, hi float64, want string) float64 {
	v, ok := a.get(name)
	if !ok {
		return unset
	}
	if v.kind != 'n' || !(v.number >= lo && v.number <= hi) {
		a.fail(name, v, want)
	}
	return v.number
}

func (a *arguments) probability(unset float64) float64 {
	return a.number("p", unset, 0, 1, "a number from 0 to 1")
}

// span returns two numbers between lo and hi, in ascending order.
func (a *arguments) span(name string, unset [2]float64, lo, hi float64, want string) [2]float64 {
	v, ok := a.get(name)
	if !ok {
		return unset
	}
	x, ok := v.numbers()
	if v.kind != 'l' || !ok || len(x) != 2 || !(lo <= x[0] && x[0] <= x[1] && x[1] <= hi) {
		a.fail(name, v, want)
		return unset
	}
	return [2]float64{x[0], x[1]}
}

// flag returns the value of a Boolean.
func (a *arguments) flag(name string) bool {
	v, ok := a.get(name)
	if ok && !(v.kind == 'w' && (v.word == "True" || v.word == "False")) {
		a.fail(name, v, "True or False")
	}
	return v.word == "True"
}

// numbers returns the numbers of a list, or a single one.
func (v value) numbers() ([]float64, bool) {
	if v.kind == 'n' {
		return []float64{v.number}, true
	}
	var x []float64
	for _, e := range v.list {
		if e.kind != 'n' {
			return nil, false
		}
		x = append(x, e.number)
	}
	return x, v.kind == 'l'
}

// whole returns integers between lo and hi. Their number must be one of counts.
func (a *arguments) whole(name string, lo, hi int, counts []int, want string) []int {
	v, ok := a.get(name)
	if !ok {
		return nil
	}
	x, ok := v.numbers()
	ok = ok && slices.Contains(counts, len(x))
	n := make([]int, len(x))
	for i, f := range x {
		if n[i] = int(f); f != math.Trunc(f) || f < float64(lo) || f > float64(hi) {
			ok = false
		}
	}
	if !ok {
		a.fail(name, v, want)
		return nil
	}
	return n
}
