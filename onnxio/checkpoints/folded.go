package checkpoints

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// An exporter computes what depends on weights alone, such as exp(gain[0]), and keeps the number as a constant of the
// graph. The tensor is gone then, and the number stays the same in every average and member. This file finds such numbers.

// A constant is a number of the graph that no tensor of a state_dict has.
type constant struct {
	in    string // "tensor "exp"", or "alpha of LeakyRelu "act""
	value float64
	unit  float64 // the rounding unit of its type
}

func (c constant) String() string { return fmt.Sprintf("%s = %.7g", c.in, c.value) }

// Limits of the search. A larger tensor is used as a whole, and a constant with more elements too.
const (
	mostConstants = 1 << 10 // in all
	mostOfOne     = 64      // of one tensor of the graph
	mostElements  = 1 << 14 // of a tensor whose elements are looked for
	mostOfOthers  = 1 << 10 // the same, in the checkpoints that the graph does not have the weights of
)

// constants returns the numbers that no checkpoint explains. left are the tensors of the graph that no state_dict has.
// Numbers that every formula has are left out, and those that the exporter has computed from numbers of the graph.
func (t *Template) constants(left []*onnxio.Tensor) (found []constant) {
	declared := t.model.Declared()
	for _, into := range left {
		if from := declared[into.Name].Folded; len(from) > 0 && !slices.ContainsFunc(from, func(name string) bool {
			return !numberedName.MatchString(name)
		}) {
			continue
		}
		unit := unitOf(into.ElemType.DType())
		values := make([]float32, min(into.Len(), 1<<12))
		into.ElemType.DType().Float32s(values, t.model.Stretch(into, 0, int64(len(values))))
		slices.Sort(values)
		for k, v := range slices.Compact(values) {
			if k < mostOfOne && !usual(float64(v), unit) {
				found = append(found, constant{fmt.Sprintf("tensor %q", into.Name), float64(v), unit})
			}
		}
	}
	for _, n := range onnxio.Numbers(t.model) {
		if unit := unitOf(weights.F32); !usual(float64(n.Value), unit) {
			found = append(found, constant{n.Attribute + " of " + n.Node, float64(n.Value), unit})
		}
	}
	return found[:min(len(found), mostConstants)]
}

// unitOf returns the largest relative error of rounding to a type. Numbers of 64 bits are often computed in 32 bits.
func unitOf(d weights.DType) float64 {
	switch d {
	case weights.F16:
		return 0x1p-11
	case weights.BF16:
		return 0x1p-8
	}
	return 0x1p-24
}

// usual reports whether a number is one of formulas, which says nothing about weights: one with few digits, a whole number,
// its root, or the inverse of these, or a bound.
func usual(v, unit float64) bool {
	if v != v || math.Abs(v) > 1e30 || v == 0 {
		return true
	}
	v = math.Abs(v)
	near := func(a, b float64) bool { return math.Abs(a-b) <= 2*unit*b }
	digits, largest := 3, 0x1p12
	if unit > 0x1p-24 { // of 16 bits: many numbers are near one with three digits
		digits, largest = 1, 1/(64*unit)
	}
	if short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits, 64), 64); near(v, short) && len(fmt.Sprintf("%g", short)) <= 5 {
		return true
	}
	for _, x := range []float64{v, 1 / v, v * v, 1 / (v * v)} {
		if whole := math.Round(x); whole <= largest && whole > 0 && near(x, whole) {
			return true
		}
	}
	return slices.ContainsFunc(ofFormulas, func(known float64) bool { return near(v, known) || near(v, 1/known) })
}

// ofFormulas are numbers of activations and of changes of the base.
var ofFormulas = []float64{math.Pi, 2 * math.Pi, math.E, math.Ln2, math.Ln10, 0.044715, math.Sqrt(2 / math.Pi), math.Sqrt(2 * math.Pi),
	1.0507009873554805, 1.6732632423543772, 1.0507009873554805 * 1.6732632423543772, 1e-12, 1e-10}

// A use is a number of the graph that was computed from a tensor.
type use struct {
	of       *statefile.Tensor
	constant string // where it is, and its value
	how      string // the function of the tensor, or ""
	path     string // of the checkpoint with that value, or ""
}

// use returns the proof that the graph was computed from one of the tensors, or nil. The exporter may say it, or a constant
// has the value of a function of the tensor in a checkpoint.
func (t *Template) use(m *matching, lacking []*statefile.Tensor, left []*onnxio.Tensor, states []*state) *use {
	declared := t.model.Declared()
	s := &search{constants: t.constants(left)}
	slices.SortFunc(s.constants, func(a, b constant) int { return cmp.Compare(a.value, b.value) })
	s.matched = make([]*use, len(s.constants))
	if len(s.constants) > 0 {
		states = append([]*state{m.state}, slices.DeleteFunc(slices.Clone(states), m.same)...) // those of the graph's weights first
		for _, of := range states {
			for _, x := range lacking {
				if most := int64(mostOfOthers); x.Len() <= mostElements && (of == m.state || x.Len() <= most) {
					s.tensor(of, x)
				}
			}
			if u := s.proof(); u != nil {
				return u
			}
		}
	}
	for _, into := range t.model.Tensors() {
		for _, x := range lacking {
			if slices.Contains(declared[into.Name].Folded, m.names.graph(x.Short)) {
				return &use{of: x, constant: fmt.Sprintf("tensor %q %v", into.Name, into.Shape)}
			}
		}
	}
	return nil
}

// A search compares the values of functions of tensors with the constants of a graph, which are in order.
type search struct {
	constants []constant
	matched   []*use // for each constant, the first function that has its value
	expected  float64
}

// chance is the largest probability that as many constants are found by chance, for which those that were found are a proof.
const chance = 0.01

// window is the relative distance from a constant within which values count for the density of values there.
const window = 1.0 / 16

// proof returns a constant that was found, unless it may be a chance hit. The number of chance hits has a Poisson
// distribution. Its mean is the sum over all values that were tried of the probability that a number in the window is as
// near to the value as rounding allows. A vector of ten elements in ten checkpoints has a mean of about 1e-3.
func (s *search) proof() *use {
	var first *use
	tail, found := 1.0, 0
	for _, u := range s.matched {
		if u == nil {
			continue
		}
		if found++; first == nil || len(u.how) < len(first.how) {
			first = u
		}
		tail *= s.expected / float64(found)
	}
	if first == nil || tail > chance {
		return nil
	}
	return first
}

// tensor tries all functions of a tensor in one of the checkpoints.
func (s *search) tensor(of *state, like *statefile.Tensor) {
	x := of.byName[like.Short]
	if x == nil || x.Len() == 0 || x.Len() > mostElements {
		return
	}
	raw := make([]float32, x.Len())
	x.DType.Float32s(raw, x.Stretch(0, x.Len()))
	values := make([]float64, len(raw))
	for i, v := range raw {
		values[i] = float64(v)
	}
	at := func(value, tolerance float64, how func() string) { s.value(value, tolerance, of, like, how) }
	for i, v := range values {
		for _, f := range ofElement {
			value := f.of(v)
			if from, to := s.near(value); from == to {
				continue
			}
			// The argument has an error of one unit, where the checkpoint has another type, and the function one of a few.
			slope := math.Max(math.Abs(f.of(v*(1+0x1p-24))-value), math.Abs(f.of(v*(1-0x1p-24))-value))
			at(value, slope+4*0x1p-24*math.Abs(value), func() string { return fmt.Sprintf(f.name, element(x, i)) })
		}
	}
	if len(values) < 2 {
		return
	}
	for _, f := range ofWhole {
		value, size := f.of(values)
		at(value, rounding(len(values))*0x1p-24*size, func() string { return fmt.Sprintf(f.name, x.Short) })
	}
	s.lines(x, values, at)
}

// lines tries the functions of vectors on a whole tensor, and on its rows along each axis.
func (s *search) lines(x *statefile.Tensor, values []float64, at func(value, tolerance float64, how func() string)) {
	along := func(length, step int, axis string) {
		line, out := make([]float64, length), make([]float64, length)
		for start := range values {
			if start/step%length != 0 {
				continue
			}
			for k := range line {
				line[k] = values[start+k*step]
			}
			for _, f := range ofVector {
				units := f.of(out, line)
				for k, value := range out {
					if from, to := s.near(value); from == to {
						continue
					}
					at(value, units*0x1p-24*math.Max(math.Abs(value), sizeOfLog(f.name)), func() string {
						return fmt.Sprintf(f.name, x.Short+axis) + strings.TrimPrefix(element(x, start+k*step), x.Short)
					})
				}
			}
		}
	}
	along(len(values), 1, "")
	step := 1
	for axis := len(x.Shape) - 1; axis >= 0 && len(x.Shape) > 1; axis-- {
		if length := int(x.Shape[axis]); length > 1 && length < len(values) {
			along(length, step, fmt.Sprintf(", dim=%d", axis))
		}
		step *= int(x.Shape[axis])
	}
}

// sizeOfLog is 1 for logarithms, whose errors are those of the numbers that they are of.
func sizeOfLog(name string) float64 {
	if strings.HasPrefix(name, "log_") {
		return 1
	}
	return 0
}

func element(x *statefile.Tensor, i int) string {
	if len(x.Shape) == 0 {
		return x.Short
	}
	at := make([]string, len(x.Shape))
	for axis := len(x.Shape) - 1; axis >= 0; axis-- {
		at[axis] = fmt.Sprint(i % int(x.Shape[axis]))
		i /= int(x.Shape[axis])
	}
	return x.Short + "[" + strings.Join(at, ",") + "]"
}

// near returns the range of the constants that may be near a value. Most values have none.
func (s *search) near(value float64) (from, to int) {
	if value != value || math.IsInf(value, 0) {
		return 0, 0
	}
	reach := math.Abs(value) * 2 * window
	from, _ = slices.BinarySearchFunc(s.constants, value-reach, func(c constant, v float64) int { return cmp.Compare(c.value, v) })
	for to = from; to < len(s.constants) && s.constants[to].value <= value+reach; to++ {
	}
	return from, to
}

// value compares a value with all constants near it.
func (s *search) value(value, tolerance float64, of *state, x *statefile.Tensor, how func() string) {
	from, to := s.near(value)
	for k := from; k < to; k++ {
		c := s.constants[k]
		size := math.Abs(c.value)
		distance, within := math.Abs(value-c.value), tolerance+(c.unit-0x1p-24)*size
		if distance > window*size {
			continue
		}
		s.expected += within / (window * size)
		if distance <= within && s.matched[k] == nil {
			s.matched[k] = &use{of: x, constant: c.String(), how: how(), path: of.file.Path}
		}
	}
}

// The functions below are those that networks apply to a learned number before they use it. They are written out in the
// words of PyTorch.

// ofElement are functions of one element. %s stands for it.
var ofElement = []struct {
	name string
	of   func(x float64) float64
}{
	{"%s", func(x float64) float64 { return x }},
	{"-%s", func(x float64) float64 { return -x }},
	{"exp(%s)", math.Exp},
	{"exp(-%s)", func(x float64) float64 { return math.Exp(-x) }},
	{"exp(%s / 2)", func(x float64) float64 { return math.Exp(x / 2) }},
	{"exp(2 * %s)", func(x float64) float64 { return math.Exp(2 * x) }},
	{"expm1(%s)", math.Expm1},
	{"log(%s)", math.Log},
	{"log1p(%s)", math.Log1p},
	{"sigmoid(%s)", sigmoid},
	{"1 - sigmoid(%s)", func(x float64) float64 { return sigmoid(-x) }},
	{"logsigmoid(%s)", func(x float64) float64 { return -softplus(-x) }},
	{"softplus(%s)", softplus},
	{"tanh(%s)", math.Tanh},
	{"1 + tanh(%s)", func(x float64) float64 { return 1 + math.Tanh(x) }},
	{"%s ** 2", func(x float64) float64 { return x * x }},
	{"sqrt(%s)", math.Sqrt},
	{"rsqrt(%s)", func(x float64) float64 { return 1 / math.Sqrt(x) }},
	{"1 / %s", func(x float64) float64 { return 1 / x }},
	{"1 - %s", func(x float64) float64 { return 1 - x }},
	{"1 + %s", func(x float64) float64 { return 1 + x }},
	{"%s / 2", func(x float64) float64 { return x / 2 }},
	{"silu(%s)", func(x float64) float64 { return x * sigmoid(x) }},
	{"gelu(%s)", func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }},
	{"sin(%s)", math.Sin},
	{"cos(%s)", math.Cos},
}

func sigmoid(x float64) float64  { return 1 / (1 + math.Exp(-x)) }
func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// ofVector are functions of a vector that have a value for each of its elements. They write the values to dst. They return
// how far a computation may be off, in rounding units: relative to each value, or absolutely for logarithms. %s stands for the vector.
var ofVector = []struct {
	name string
	of   func(dst, x []float64) (units float64)
}{
	{"softmax(%s)", func(dst, x []float64) float64 {
		_, units := logSoftmax(dst, x)
		for i := range dst {
			dst[i] = math.Exp(dst[i])
		}
		return units
	}},
	{"log_softmax(%s)", func(dst, x []float64) float64 {
		_, units := logSoftmax(dst, x)
		return units
	}},
	{"normalize(%s)", func(dst, x []float64) float64 {
		return shares(dst, x, func(v float64) float64 { return v * v }, math.Sqrt, 0)
	}},
	{"%s / sum(%[1]s)", func(dst, x []float64) float64 {
		return shares(dst, x, func(v float64) float64 { return v }, func(s float64) float64 { return s }, 0)
	}},
	{"relu(%s) / (sum(relu(%[1]s)) + 1e-4)", func(dst, x []float64) float64 {
		positive := make([]float64, len(x))
		for i, v := range x {
			positive[i] = math.Max(v, 0)
		}
		return shares(dst, positive, func(v float64) float64 { return v }, func(s float64) float64 { return s }, 1e-4)
	}},
}

// logSoftmax writes the logarithms of softmax to dst, and returns log Σ exp(x) as total. Their error comes from the largest
// difference of elements, and from the sum.
func logSoftmax(dst, x []float64) (total, units float64) {
	most, least := math.Inf(-1), math.Inf(1)
	for _, v := range x {
		most, least = math.Max(most, v), math.Min(least, v)
	}
	for _, v := range x {
		total += math.Exp(v - most)
	}
	total = most + math.Log(total)
	for i, v := range x {
		dst[i] = v - total
	}
	return total, rounding(len(x)) + math.Min(most-least, 40)
}

// shares divides the elements by a norm of the vector.
func shares(dst, x []float64, term, norm func(float64) float64, epsilon float64) float64 {
	sum := epsilon
	for _, v := range x {
		sum += term(v)
	}
	sum = norm(sum)
	for i, v := range x {
		dst[i] = v / sum
	}
	return rounding(len(x))
}

// rounding is the number of rounding units that a sum of n numbers is off. Rounding errors are like draws, so they grow like
// √n.
func rounding(n int) float64 { return 4 + math.Sqrt(float64(n)) }

// ofWhole are functions of a vector that have one value. They also return the size of what they add up: rounding is
// relative to it.
var ofWhole = []struct {
	name string
	of   func(x []float64) (value, size float64)
}{
	{"sum(%s)", func(x []float64) (float64, float64) { return sums(x, 1) }},
	{"mean(%s)", func(x []float64) (float64, float64) { return sums(x, 1/float64(len(x))) }},
	{"norm(%s)", func(x []float64) (float64, float64) {
		value, _ := sums(squares(x), 1)
		return math.Sqrt(value), math.Sqrt(value)
	}},
	{"sum(%s ** 2)", func(x []float64) (float64, float64) { return sums(squares(x), 1) }},
	{"mean(%s ** 2)", func(x []float64) (float64, float64) { return sums(squares(x), 1/float64(len(x))) }},
	{"logsumexp(%s)", func(x []float64) (float64, float64) {
		total, _ := logSoftmax(make([]float64, len(x)), x)
		return total, 1 + math.Abs(total)
	}},
	{"prod(%s)", func(x []float64) (float64, float64) {
		value := 1.0
		for _, v := range x {
			value *= v
		}
		return value, math.Abs(value)
	}},
}

func sums(x []float64, factor float64) (value, size float64) {
	for _, v := range x {
		value, size = value+v*factor, size+math.Abs(v*factor)
	}
	return value, size
}

func squares(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * v
	}
	return out
}
