package reference

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/splitmix"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Stored is what an exported model gave for a few examples when it was exported. Its metadata have it, so that whoever runs it can
// compare. docs/formats.md has the form.
type Stored struct {
	// Seed and the bounds of the inputs make the examples, unless From names the file that they are from.
	Seed      uint64         `json:"seed"`
	From      string         `json:"from,omitempty"`
	Examples  int            `json:"examples"`
	Inputs    []StoredInput  `json:"inputs"`
	Outputs   []StoredOutput `json:"outputs"`
	Tolerance float64        `json:"tolerance"` // in units of the largest number of an output
}

// A StoredInput is an input of all examples.
type StoredInput struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"` // of an example
	Type  string `json:"type"`  // as NumPy names it
	// Low and High bound made-up numbers.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Data are the elements of users' examples, little-endian.
	Data []byte `json:"data,omitempty"`
}

// A StoredOutput has some numbers of each example: those at 0, Step, 2·Step and so on.
type StoredOutput struct {
	Name    string      `json:"name"`
	Step    int         `json:"step"`
	Numbers [][]float64 `json:"numbers"`
}

// Bounds of what a model stores. A number has storedDigits: processors differ in later ones, and the file should not.
const (
	StoredExamples   = 4
	MaxStoredData    = 1 << 20 // bytes of users' examples
	mostStored       = 64      // numbers of an output of an example
	mostMade         = 1 << 24 // elements of made-up examples
	storedDigits     = 4
	leastTolerance   = 2e-3
	mostVariant      = 0.1 // the largest difference that rounding explains
	mostStoredBytes  = 4 * MaxStoredData
	mostStoredShape  = 8
	mostStoredInputs = 64
)

// ParseStored reads what a model stores.
func ParseStored(js string) (*Stored, error) {
	if len(js) > mostStoredBytes {
		return nil, fmt.Errorf("%d bytes, want at most %d", len(js), mostStoredBytes)
	}
	s := &Stored{}
	if err := json.Unmarshal([]byte(js), s); err != nil {
		return nil, err
	}
	if s.Examples < 1 || s.Examples > 1<<10 || len(s.Inputs) > mostStoredInputs || len(s.Outputs) == 0 || !(s.Tolerance > 0) {
		return nil, errors.New("want examples, inputs, outputs and a tolerance")
	}
	for _, o := range s.Outputs {
		if o.Step < 1 || len(o.Numbers) != s.Examples {
			return nil, fmt.Errorf("output %q: want numbers of %d examples", o.Name, s.Examples)
		}
	}
	return s, nil
}

// Text returns the form in metadata.
func (s *Stored) Text() string {
	js, _ := json.Marshal(s)
	return string(js)
}

// examples returns the examples as the inputs of a model.
func (s *Stored) examples(m *onnxio.Model) (*Examples, error) {
	e := &Examples{File: &File{Path: m.Path}, Count: s.Examples}
	for i, v := range m.FeedInputs() {
		at := slices.IndexFunc(s.Inputs, func(in StoredInput) bool { return in.Name == v.Name })
		if at < 0 {
			return nil, fmt.Errorf("%s: input %q: has no stored examples", m.Path, v.Name)
		}
		a, err := s.Inputs[at].array(s.Seed+uint64(at)<<32, s.Examples)
		if err != nil {
			return nil, fmt.Errorf("%s: input %q: %w", m.Path, v.Name, err)
		}
		t, err := tensorOf(v, a)
		if err != nil {
			return nil, fmt.Errorf("%s: input %q: %w", m.Path, v.Name, err)
		}
		if i == 0 && len(v.Shape) > 0 {
			e.fixed = int(max(0, v.Shape[0]))
		}
		e.inputs = append(e.inputs, t)
	}
	for _, o := range s.Outputs {
		e.names = append(e.names, o.Name)
	}
	return e, nil
}

// array returns the elements of all examples. Element k is low + (high − low)·u, where u has the first 24 bits of output k of
// SplitMix64. Whole numbers are rounded down, and reach the upper bound.
func (in StoredInput) array(seed uint64, examples int) (a numpy.Array, err error) {
	for _, t := range elemTypes {
		if t.Name == in.Type {
			a.Type = t
		}
	}
	if a.Type.Size == 0 || len(in.Shape) > mostStoredShape {
		return a, fmt.Errorf("type %q and shape %d, want numbers", in.Type, in.Shape)
	}
	n := examples
	for _, d := range in.Shape {
		if d < 1 || d > mostMade/n {
			return a, fmt.Errorf("shape %d: too large, or empty", in.Shape)
		}
		n *= d
	}
	a.Shape = append([]int{examples}, in.Shape...)
	if in.Data != nil {
		if a.Data = in.Data; len(a.Data) != n*a.Type.Size {
			return a, fmt.Errorf("%d bytes, want %d", len(a.Data), n*a.Type.Size)
		}
		return a, nil
	}
	whole := a.Type.Kind != 'f'
	for k := range n {
		u := float64(splitmix.Nth(seed, uint64(k))>>40) / (1 << 24)
		if whole {
			v := int64(math.Floor(in.Low + (in.High-in.Low+1)*u))
			a.Data = append(a.Data, binary.LittleEndian.AppendUint64(nil, uint64(v))[:a.Type.Size]...)
			continue
		}
		switch v := in.Low + (in.High-in.Low)*u; a.Type.Size {
		case 2:
			a.Data = binary.LittleEndian.AppendUint16(a.Data, weights.Float16Bits(float32(v)))
		case 4:
			a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(float32(v)))
		default:
			a.Data = binary.LittleEndian.AppendUint64(a.Data, math.Float64bits(v))
		}
	}
	return a, nil
}

// runner returns what runs the examples. Nothing is measured.
func (s *Stored) runner(rt *ort.Runtime, m *onnxio.Model) (*Runner, error) {
	e, err := s.examples(m)
	if err != nil {
		return nil, err
	}
	return &Runner{Examples: e, runtime: rt, scale: slices.Repeat([]float64{1}, len(e.names))}, nil
}

// Store runs the examples through a model, and fills in its outputs and the tolerance.
func (s *Stored) Store(ctx context.Context, rt *ort.Runtime, m *onnxio.Model) error {
	ctx = tally.For(ctx, tally.Check("outputs of the exported model"))
	for _, o := range m.Graph.Outputs {
		if o.ElemType.DType().IsFloat() {
			s.Outputs = append(s.Outputs, StoredOutput{Name: o.Name})
		}
	}
	r, err := s.runner(rt, m)
	if err != nil {
		return err
	}
	all := r.first(s.Examples)
	out, err := r.run(ctx, m, all, how{threads: 1})
	if err != nil {
		return err
	}
	for k, rows := range out {
		r.scale[k] = largest(rows)
	}
	s.Tolerance = leastTolerance
	variants := []how{{batch: 1, threads: 1}, {plain: true}}
	if Quantised(m) != "" { // another runtime may round numbers inside to the next step
		variants = append(variants, how{inputs: coarse})
	}
	for _, h := range variants {
		again, err := r.run(ctx, m, all, h)
		if err != nil {
			continue // such as a model that takes no single example
		}
		d, k, i := r.distance(again, out)
		if d > mostVariant && h.inputs == nil {
			return fmt.Errorf("%s: output %q of example %d differs between two runs", m.Path, r.names[k], i)
		}
		s.Tolerance = max(s.Tolerance, ofVariant*min(d, mostVariant))
	}
	s.Tolerance = rounded4(s.Tolerance)
	for k := range s.Outputs {
		o := &s.Outputs[k]
		o.Step = max(1, (len(out[k][0])+mostStored-1)/mostStored)
		for _, row := range out[k] {
			var some []float64
			for i := 0; i < len(row); i += o.Step {
				if row[i]-row[i] != 0 {
					return fmt.Errorf("%s: output %q is not finite for made-up numbers", m.Path, o.Name)
				}
				some = append(some, rounded4(row[i]))
			}
			o.Numbers = append(o.Numbers, some)
		}
	}
	return nil
}

// coarse rounds inputs to about as many bits as the numbers inside a quantised graph have.
func coarse(inputs []ort.Tensor) []ort.Tensor {
	for _, t := range inputs {
		for i, v := range t.F32 {
			t.F32[i] = round32(v, bitsBF16)
		}
		for i := range t.U8 {
			t.U8[i] &^= 1
		}
	}
	return inputs
}

func rounded4(v float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', storedDigits, 64), 64)
	return short
}

// largest returns the largest number of an output, or the least positive one.
func largest(rows [][]float64) float64 {
	largest := math.SmallestNonzeroFloat32
	for _, row := range rows {
		for _, v := range row {
			if a := math.Abs(v); a > largest && !math.IsInf(a, 1) {
				largest = a
			}
		}
	}
	return largest
}

// Verify runs the examples through the model, and compares its outputs with those that are stored.
func (s *Stored) Verify(ctx context.Context, rt *ort.Runtime, m *onnxio.Model) (d Difference, err error) {
	ctx = tally.For(ctx, tally.Check("outputs of the exported model"))
	r, err := s.runner(rt, m)
	if err != nil {
		return d, err
	}
	out, err := r.run(ctx, m, r.first(s.Examples), how{})
	if err != nil {
		return d, err
	}
	return s.compare(r, out), nil
}

// compare compares outputs of the examples with those that are stored.
func (s *Stored) compare(r *Runner, out [][][]float64) Difference {
	got, want := make([][][]float64, len(out)), make([][][]float64, len(out))
	for k, rows := range out {
		for _, row := range rows {
			var some []float64
			for at := 0; at < len(row); at += s.Outputs[k].Step {
				some = append(some, row[at])
			}
			got[k] = append(got[k], some)
		}
		want[k] = s.Outputs[k].Numbers
		r.scale[k] = largest(want[k])
	}
	far, k, i := r.distance(got, want)
	return Difference{Largest: far, Equal: far <= s.Tolerance, Output: r.names[k], Example: i, Got: got[k][i], Want: want[k][i]}
}

// quantised are operators that only quantisation puts into a graph.
var quantised = []string{"QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger", "DynamicQuantizeLinear", "QuantizeLinear",
	"MatMulNBits", "QAttention", "QGemm"}

// Quantised returns the operators of a graph that quantisation put there.
func Quantised(m *onnxio.Model) string {
	var ops []string
	for _, n := range m.Graph.Nodes {
		if slices.Contains(quantised, n.OpType) && !slices.Contains(ops, n.OpType) {
			ops = append(ops, n.OpType)
		}
	}
	return strings.Join(ops, ", ")
}

// Keep takes the first examples of reference outputs as inputs, as many as there is room for.
func (s *Stored) Keep(e *File, m *onnxio.Model) error {
	inputs, size, count := m.FeedInputs(), 0, 0
	s.Inputs = nil
	for i, v := range inputs {
		key, ok := e.find(v.Name, "inputs", i, len(inputs) == 1)
		if !ok {
			return e.missing("input", v.Name, "inputs", i)
		}
		a := e.arrays[key]
		if len(a.Shape) == 0 {
			a.Shape = []int{1}
		}
		if i == 0 {
			count = a.Shape[0]
		}
		if a.Shape[0] != count || count == 0 {
			return fmt.Errorf("%s: array %q: %d examples, and %d in others", e.Path, key, a.Shape[0], count)
		}
		size += len(a.Data) / count
		s.Inputs = append(s.Inputs, StoredInput{Name: v.Name, Shape: a.Shape[1:], Type: a.Type.Name, Data: a.Data})
	}
	if s.Examples = min(count, MaxStoredData/max(1, size)); s.Examples == 0 {
		return fmt.Errorf("%s: an example has %d bytes, and a model stores at most %d", e.Path, size, MaxStoredData)
	}
	for i := range s.Inputs {
		in := &s.Inputs[i]
		in.Data = in.Data[:len(in.Data)/count*s.Examples]
	}
	return nil
}
