package augment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// advice is what to do about training that this package cannot repeat.
const advice = "save what the training loader yields as an array instead (--bn-data)"

// maxText is far above what a pipeline needs, in bytes.
const maxText = 1 << 16

// Parse reads a pipeline: transforms between commas or line ends, with arguments
// as in Python,
//
//	RandomCrop(32, padding=4), RandomHorizontalFlip
//
// the source or the printed form of a Compose of torchvision, v1 or v2, or of
// timm, and presets: none, cifar (RandomCrop(padding=4), RandomHorizontalFlip)
// and imagenet (RandomResizedCrop, RandomHorizontalFlip). A size that is left out
// is the network's. What changes pixels and is not known is an error, never
// passed over. A printed RandomCrop of v1 tells nothing of pad_if_needed, fill
// and padding_mode: they are taken for the defaults.
func Parse(spec string) (Pipeline, error) {
	if len(spec) > maxText {
		return Pipeline{}, fmt.Errorf("%d bytes of text, want at most %d", len(spec), maxText)
	}
	s := &scanner{text: spec}
	var b builder
	if err := b.items(s, 0, ""); err != nil {
		return Pipeline{}, err
	}
	if b.steps == 0 {
		return Pipeline{}, fmt.Errorf("empty, want %s, or transforms", strings.Join(presetNames(), ", "))
	}
	return b.Pipeline, nil
}

// presets are known by name.
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

// maxDepth bounds how deep brackets may lie in each other.
const maxDepth = 10

// builder collects the steps of a pipeline in their order.
type builder struct {
	Pipeline
	steps  int
	tensor bool // a conversion to a tensor has been seen
}

// items reads transforms up to the closing bracket, or to the end if that is "".
func (b *builder) items(s *scanner, depth int, closing string) error {
	printed := closing == ")" // a Compose that is printed has no list in it
	if depth > maxDepth {
		return errors.New("brackets too deep")
	}
	for {
		s.space()
		if s.end() {
			if closing != "" {
				return fmt.Errorf("%q is missing at the end", closing)
			}
			return nil
		}
		if closing != "" && s.take(closing) {
			return nil
		}
		name := s.word()
		mark := s.at
		if s.space(); depth == 0 && name != "" && s.take("=") { // train = Compose([...
			continue
		}
		s.at = mark
		if name == "" {
			return fmt.Errorf("at %.20q, want a transform", s.rest())
		}
		if err := b.item(s, name, depth, printed); err != nil {
			return err
		}
		line := s.space()
		if !s.take(",") && !line && !s.end() && !strings.HasPrefix(s.rest(), ")") && !strings.HasPrefix(s.rest(), "]") {
			return fmt.Errorf("at %.20q, want a comma or a new line after %s", s.rest(), name)
		}
	}
}

// item reads what follows a transform's name, and adds the transform.
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
	// Before its arguments are read, which may be anything.
	isConversion := slices.Contains(conversions, short)
	t, ok := transforms[short]
	if !ok && !isConversion {
		return fmt.Errorf("%.40s is not supported, want %s: %s", short, strings.Join(known(), ", "), advice)
	}
	a := &arguments{printed: printed, tensor: b.tensor}
	if s.take("(") {
		if err := a.read(s, depth); err != nil {
			return fmt.Errorf("%s: %w", short, err)
		}
	}
	b.steps++
	if isConversion {
		b.tensor = true
		return nil
	}
	if err := a.bind(t.names); err != nil {
		return fmt.Errorf("%s: %w", short, err)
	}
	err := t.add(b, a)
	if err == nil {
		err = a.err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", short, err)
	}
	return nil
}

func (b *builder) compose(s *scanner, depth int) error {
	if !s.take("(") {
		return errors.New("no brackets after Compose, want its transforms in them")
	}
	s.space()
	if !s.take("[") {
		return b.items(s, depth+1, ")")
	}
	if err := b.items(s, depth+1, "]"); err != nil {
		return err
	}
	s.space()
	s.take(",")
	s.space()
	if !s.take(")") {
		return fmt.Errorf("at %.20q, want the end of Compose", s.rest())
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

// conversions are transforms that change no level of a picture.
var conversions = []string{"ToTensor", "PILToTensor", "ToImage", "ToImageTensor", "ToDtype", "ConvertImageDtype", "ConvertDtype",
	"ToPureTensor", "ToPILImage", "MaybeToTensor", "MaybePILToTensor"}

// A value is an argument.
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

// arguments are those of one transform.
type arguments struct {
	printed bool // not source but what Python prints
	tensor  bool // stands behind a conversion
	places  []value
	named   map[string]value
	err     error // the first that a getter has met
}

// read reads arguments behind an opening bracket.
func (a *arguments) read(s *scanner, depth int) error {
	a.named = map[string]value{}
	for {
		s.space()
		if s.take(")") {
			return nil
		}
		mark := s.at
		name := s.word()
		s.space()
		if name != "" && s.take("=") {
			if _, twice := a.named[name]; twice {
				return fmt.Errorf("%s given twice", name)
			}
			v, err := s.value(depth + 1)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			a.named[name] = v
		} else {
			s.at = mark
			if len(a.named) > 0 {
				return fmt.Errorf("at %.20q, want a named argument after the first such", s.rest())
			}
			v, err := s.value(depth + 1)
			if err != nil {
				return err
			}
			a.places = append(a.places, v)
		}
		s.space()
		if !s.take(",") && !strings.HasPrefix(s.rest(), ")") {
			return fmt.Errorf("at %.20q, want a comma or a closing bracket", s.rest())
		}
	}
}

// bind gives the arguments without a name theirs, and refuses what is not among
// the names.
func (a *arguments) bind(names []string) error {
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
		if a.named == nil {
			a.named = map[string]value{}
		}
		a.named[names[i]] = v
	}
	return nil
}

// get returns an argument, unless it is left out or None.
func (a *arguments) get(name string) (value, bool) {
	v, ok := a.named[name]
	return v, ok && !(v.kind == 'w' && v.word == "None")
}

func (a *arguments) fail(name string, v value, want string) {
	if a.err == nil {
		a.err = fmt.Errorf("%s is %v, want %s", name, v, want)
	}
}

// number returns a number from lo to hi.
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

// span returns two numbers from lo to hi, the first not above the second.
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

// flag returns True or False.
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

// whole returns whole numbers from lo to hi, of which there must be as many as
// one of counts.
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

// scanner reads Python as far as transforms need it.
type scanner struct {
	text string
	at   int
}

func (s *scanner) rest() string { return s.text[s.at:] }
func (s *scanner) end() bool    { return s.at == len(s.text) }

func (s *scanner) take(token string) bool {
	if !strings.HasPrefix(s.rest(), token) {
		return false
	}
	s.at += len(token)
	return true
}

// space skips space and comments, and says whether a line has ended.
func (s *scanner) space() (line bool) {
	for !s.end() {
		switch c := s.text[s.at]; {
		case c == '#':
			if n := strings.IndexByte(s.rest(), '\n'); n >= 0 {
				s.at += n
			} else {
				s.at = len(s.text)
			}
		case c == '\n' || c == '\r':
			line = true
			s.at++
		case c == ' ' || c == '\t':
			s.at++
		default:
			return line
		}
	}
	return line
}

// word reads a name, with dots and hyphens in it.
func (s *scanner) word() string {
	start := s.at
	for !s.end() {
		c := s.text[s.at]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		inner := c == '.' || c == '-' || c >= '0' && c <= '9' // nearest-exact
		if !letter && (s.at == start || !inner) {
			break
		}
		s.at++
	}
	return s.text[start:s.at]
}

// value reads an argument.
func (s *scanner) value(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, errors.New("brackets too deep")
	}
	s.space()
	if s.end() {
		return value{}, errors.New("the text ends, want a value")
	}
	switch c := s.text[s.at]; c {
	case '(', '[':
		s.at++
		return s.list(c, depth)
	case '\'', '"':
		text, _, ok := strings.Cut(s.text[s.at+1:], string(c))
		if !ok || strings.ContainsAny(text, "\\\n") {
			return value{}, fmt.Errorf("at %.20q, want a string in quotes", s.rest())
		}
		s.at += len(text) + 2
		return value{kind: 's', word: text}, nil
	}
	if word := s.word(); word != "" {
		return s.named(word, depth)
	}
	x, err := s.number()
	if err != nil {
		return value{}, err
	}
	s.space()
	if s.take("/") { // 3/4
		s.space()
		y, err := s.number()
		if err != nil {
			return value{}, err
		}
		if x /= y; math.IsNaN(x) || math.IsInf(x, 0) {
			return value{}, errors.New("division by zero")
		}
	}
	return value{kind: 'n', number: x}, nil
}

// named reads on after a word: tensor([0.5]), or timm's "bilinear bicubic".
func (s *scanner) named(word string, depth int) (value, error) {
	s.space()
	if s.take("(") {
		if word != "tensor" && word != "torch.tensor" {
			return value{}, fmt.Errorf("%.40s(...), want a value", word)
		}
		v, err := s.value(depth + 1)
		if err != nil {
			return v, err
		}
		if s.space(); !s.take(")") {
			return v, fmt.Errorf("at %.20q, want the end of tensor", s.rest())
		}
		return v, nil
	}
	if second := s.word(); second != "" {
		word += " " + second
	}
	return value{kind: 'w', word: word}, nil
}

// list reads up to the bracket that closes. (5) is a number, and (5,) is not.
func (s *scanner) list(open byte, depth int) (value, error) {
	closing := ")"
	if open == '[' {
		closing = "]"
	}
	v := value{kind: 'l'}
	comma := false
	for {
		if s.space(); s.take(closing) {
			if len(v.list) == 1 && !comma && open == '(' {
				return v.list[0], nil
			}
			return v, nil
		}
		x, err := s.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.list = append(v.list, x)
		s.space()
		if comma = s.take(","); !comma && !strings.HasPrefix(s.rest(), closing) {
			return v, fmt.Errorf("at %.20q, want a comma or %q", s.rest(), closing)
		}
	}
}

func (s *scanner) number() (float64, error) {
	start := s.at
	for !s.end() {
		c := s.text[s.at]
		sign := (c == '-' || c == '+') && (s.at == start || s.text[s.at-1] == 'e' || s.text[s.at-1] == 'E')
		if !sign && c != '.' && c != 'e' && c != 'E' && (c < '0' || c > '9') {
			break
		}
		s.at++
	}
	x, err := strconv.ParseFloat(s.text[start:s.at], 64)
	if err != nil || math.IsInf(x, 0) {
		return 0, fmt.Errorf("at %.20q, want a number, a word or brackets", s.text[start:])
	}
	return x, nil
}
