package reference

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Bits of the significand of the types in which frameworks compute.
const (
	bitsTF32 = 11 // also those of float16
	bitsBF16 = 8
	// bitsProbe is coarser than float32 by 16. With these bits the weights and inputs show how the network enlarges what
	// rounding changes.
	bitsProbe = 20
)

// Differences of an output, in units of its largest number. 95 networks of PyTorch, Keras and Flax were measured. Where the distance to the
// framework was above 1e-6, it was at most 2.1 times what the variants change, or 4.1 times what bitsProbe changes. The factors are twice
// that.
const (
	least     = 1e-5 // that is always explained
	ofVariant = 4    // times what batch size, threads and optimisation change
	ofProbe   = 8    // times what bitsProbe changes
	ofCoarse  = 4    // times what the bits of a coarse type change
	ofBatch   = 1e-3 // more than this is no rounding where the batch size changes outputs
	// ofRounding is for the steps of a coarse type themselves: outputs are rounded to it, too.
	ofRounding = 2
	ofSteps    = 2   // times both in types of 16 bits: the result of each step is rounded, not its factors alone
	ofSmall    = 100 // times its own largest number is the unit of a number that is small beside the others of its output
	ofNoise    = 64  // times what the variants change in such a number is always explained
	mostUnits  = 1 << 10
	// Outputs up to here may be probabilities. Small ones are exponentials, and rounding changes a large part of
	// these.
	mostProbability = 1.0001
)

// A Runner holds networks against reference outputs. All are one graph with different weights.
type Runner struct {
	*Examples
	runtime *ort.Runtime
	other   session           // in place of the runtime's, or nil
	strict  float64           // the largest difference that float32 explains
	coarse  float64           // the same for the type of the file, which may be coarser; 0 until it was needed
	scale   []float64         // the largest number of each output
	units   map[int][]float64 // of outputs with small numbers: the unit of each number of an example, as a part of scale
	whole   bool              // outputs of an example depend on the others in its batch: all run together, as in the framework
}

// NewRunner measures on the network m which differences float32 explains.
func NewRunner(ctx context.Context, rt *ort.Runtime, e *Examples, m *onnxio.Model) (*Runner, error) {
	r := &Runner{Examples: e, runtime: rt, strict: max(least, e.rounding), units: map[int][]float64{}}
	for _, rows := range e.outputs {
		r.scale = append(r.scale, max(slices.Max(largestNumbers(rows)), math.SmallestNonzeroFloat32))
	}
	ctx = tally.For(ctx, tally.Check("reference outputs"))
	some := r.first(2)
	base, err := r.run(ctx, m, some, how{})
	if err != nil {
		return nil, err
	}
	noise := make([][]float64, len(base)) // the largest change of each number
	for k, rows := range base {
		noise[k] = make([]float64, len(rows[0]))
		if r.scale[k] == math.SmallestNonzeroFloat32 { // the reference is zero, or not finite
			r.scale[k] = largest(rows)
		}
	}
	for _, v := range []struct {
		how   how
		times float64
	}{{how{bits: bitsProbe}, ofProbe}, {how{plain: true}, ofVariant}, {how{batch: 1, threads: 1}, ofVariant}} {
		out, err := r.run(ctx, m, some, v.how)
		if err != nil {
			continue // such as a network that takes no single example
		}
		for k, rows := range out {
			for i, row := range rows {
				for c := range min(len(row), len(noise[k])) {
					noise[k][c] = max(noise[k][c], math.Abs(row[c]-base[k][i][c]))
				}
			}
		}
		switch d, _, _ := r.distance(out, base); {
		case v.how.batch > 0 && d > ofBatch && d > r.strict:
			r.whole = true
		case !math.IsInf(d, 1):
			r.strict = max(r.strict, v.times*d)
		}
	}
	for k := range noise {
		r.measureUnits(k, noise[k])
	}
	return r, nil
}

// measureUnits finds the numbers of an output that are much smaller than the others, such as a target of a regression in another unit.
// They may be wrong by far less than the largest number of the output. The noise tells those from numbers that are small by
// cancellation. In a type of 16 bits it does not: each step of the network rounds to it.
func (r *Runner) measureUnits(k int, noise []float64) {
	own := largestNumbers(r.outputs[k])
	if len(own) != len(noise) || len(own) > mostUnits || r.scale[k] < mostProbability || r.isHalf() {
		return
	}
	for c, n := range noise {
		unit := max(ofSmall*own[c], ofNoise*n/r.strict) / r.scale[k]
		if n == 0 || !(unit < 1) { // nothing is known of a number that never changes
			continue
		}
		if r.units[k] == nil {
			r.units[k] = slices.Repeat([]float64{1}, len(own))
		}
		r.units[k][c] = unit
	}
}

// largestNumbers returns the largest finite number at each place of an example.
func largestNumbers(rows [][][]float64) []float64 {
	own := []float64{0}
	for _, row := range rows {
		for _, one := range row {
			own = append(own, make([]float64, max(0, len(one)-len(own)))...)
			for c, v := range one {
				if a := math.Abs(v); a > own[c] && !math.IsInf(a, 1) {
					own[c] = a
				}
			}
		}
	}
	return own
}

// first returns the places of the first n examples.
func (e *Examples) first(n int) (idx []int) {
	for i := range min(n, e.Count) {
		idx = append(idx, i)
	}
	return idx
}

// how says how a network runs.
type how struct {
	batch, threads int
	plain          bool                            // without optimisation
	bits           int                             // of the significand, to which weights and inputs are rounded; 0 for as they are
	training       bool                            // batch norm uses the statistics of the batch
	inputs         func([]ort.Tensor) []ort.Tensor // changes them
}

// run returns the outputs of the examples: by output and example.
func (r *Runner) run(ctx context.Context, m *onnxio.Model, examples []int, h how) ([][][]float64, error) {
	var err error
	wanted := len(examples)
	if r.whole {
		examples = r.first(r.Count)
	}
	if h.bits > 0 {
		if m, err = rounded(m, h.bits); err != nil {
			return nil, err
		}
	}
	session, err := r.open(ctx, m, h)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	size := len(examples)
	if h.batch > 0 {
		size = h.batch
	}
	if r.fixed > 0 {
		size = r.fixed
	}
	out := make([][][]float64, len(r.names))
	for batch := range slices.Chunk(examples, size) {
		full := slices.Clone(batch)
		for r.fixed > 0 && len(full) < size {
			full = append(full, batch[len(batch)-1])
		}
		var inputs []ort.Tensor
		for _, t := range r.inputs {
			if t = pick(t, full); h.bits > 0 {
				for i, v := range t.F32 {
					t.F32[i] = round32(v, h.bits)
				}
			}
			inputs = append(inputs, t)
		}
		if h.inputs != nil {
			inputs = h.inputs(inputs)
		}
		results, err := session.Run(ctx, inputs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		for k, t := range results {
			all := numbers(t)
			if len(all)%len(full) != 0 {
				return nil, fmt.Errorf("%s: output %q of shape %d for %d examples", m.Path, r.names[k], t.Shape, len(full))
			}
			for i := range batch {
				out[k] = append(out[k], part(all, len(full), i))
			}
		}
	}
	for k := range out {
		out[k] = out[k][:wanted]
	}
	return out, nil
}

// session runs a model: an [ort.Session], or one in another runtime.
type session interface {
	Run(ctx context.Context, inputs []ort.Tensor) ([]ort.Tensor, error)
	Close() error
}

func (r *Runner) open(ctx context.Context, m *onnxio.Model, h how) (session, error) {
	if r.other != nil {
		return r.other, nil
	}
	filled, err := prepared(m, h.training)
	if err != nil {
		return nil, err
	}
	s, err := r.runtime.NewFilledSession(ctx, filled, ort.Options{Outputs: r.names, Threads: h.threads, Plain: h.plain})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	return s, nil
}

// prepared returns a network for a session.
func prepared(m *onnxio.Model, training bool) (onnxio.Filled, error) {
	if !training {
		return m.Runtime()
	}
	none := &weights.Layout{}
	t, err := Training(m, none)
	if err != nil {
		return onnxio.Filled{}, err
	}
	return t.Fill(none, weights.Slice{}, weights.Slice{})
}

// Training returns the template of a network in training mode: batch norm uses the statistics of the batch.
func Training(m *onnxio.Model, l *weights.Layout) (*onnxio.Template, error) {
	bns, err := m.BatchNorms()
	if err != nil {
		return nil, err
	}
	e := m.Edit()
	for i, bn := range append(bns, m.WrittenBatchNorms()...) {
		if !bn.IsTraining {
			e.TrainBatchNorm(bn, fmt.Sprintf("reference_mean_%d", i), fmt.Sprintf("reference_var_%d", i))
		}
	}
	e.ForRuntime()
	return e.Template(l)
}

// rounded returns the network with the significands of its weights in so many bits.
func rounded(m *onnxio.Model, bits int) (*onnxio.Model, error) {
	elements := map[*onnxio.Tensor]weights.Piece{}
	for _, t := range m.Tensors() {
		if !t.IsFloat() || t.Len() == 0 {
			continue
		}
		data := slices.Clone(m.Elements(t))
		if data == nil {
			continue
		}
		switch t.ElemType {
		case onnxio.Float:
			for b := range slices.Chunk(data, 4) {
				v := round32(math.Float32frombits(binary.LittleEndian.Uint32(b)), bits)
				binary.LittleEndian.PutUint32(b, math.Float32bits(v))
			}
		case onnxio.Double:
			for b := range slices.Chunk(data, 8) {
				v := Round(math.Float64frombits(binary.LittleEndian.Uint64(b)), bits)
				binary.LittleEndian.PutUint64(b, math.Float64bits(v))
			}
		}
		elements[t] = weights.Piece{DType: t.ElemType.DType(), Data: data}
	}
	return m.WithWeights(m.Path, nil, elements)
}

// Round rounds the significand of v to so many bits.
func Round(v float64, bits int) float64 {
	fraction, exponent := math.Frexp(v)
	if fraction-fraction != 0 { // NaN and the infinities
		return v
	}
	return math.Ldexp(math.RoundToEven(math.Ldexp(fraction, bits)), exponent-bits)
}

// round32 keeps a number that would be infinite, such as the least one of float32, which masks add to scores of attention.
func round32(v float32, bits int) float32 {
	if r := float32(Round(float64(v), bits)); !math.IsInf(float64(r), 0) {
		return r
	}
	return v
}

// distance returns the largest difference, in units of the largest number of its output or in those of small numbers, and its output and
// example.
func (r *Runner) distance(a, b [][][]float64) (largest float64, output, example int) {
	for k := range a {
		for i := range a[k] {
			if d := largestDifference(a[k][i], b[k][i], r.units[k]...) / r.scale[k]; d > largest {
				largest, output, example = d, k, i
			}
		}
	}
	return largest, output, example
}

// largestDifference returns the largest difference of two rows. It is infinite for rows of different lengths, and where one number is not
// finite and not the same in both. Units may divide the difference at each place.
func largestDifference(a, b []float64, units ...float64) (largest float64) {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	for i, v := range a {
		switch d := math.Abs(v - b[i]); {
		case v == b[i] || v != v && b[i] != b[i]:
		case d-d != 0:
			return math.Inf(1)
		case i < len(units):
			largest = max(largest, d/units[i])
		default:
			largest = max(largest, d)
		}
	}
	return largest
}

// wanted returns the reference outputs of some examples in a row.
func (e *Examples) wanted(row int, examples []int) (out [][][]float64) {
	for _, rows := range e.outputs {
		var some [][]float64
		for _, i := range examples {
			some = append(some, rows[row][i])
		}
		out = append(out, some)
	}
	return out
}

// A Difference is what a network gives, held against reference outputs.
type Difference struct {
	Largest   float64 // in units of the largest number of the output, or of Unit
	Unit      string
	Equal     bool
	Coarse    bool // rounding of the type of the file explains it, and that of float32 does not
	Output    string
	Example   int
	Got, Want []float64
}

// Compare runs the first n examples through a network, and compares its outputs with a row of the file.
func (r *Runner) Compare(ctx context.Context, m *onnxio.Model, row, n int) (d Difference, err error) {
	ctx = tally.For(ctx, tally.Check("reference outputs"))
	some := r.first(n)
	got, err := r.run(ctx, m, some, how{})
	if err != nil {
		return d, err
	}
	want := r.wanted(row, some)
	largest, k, i := r.distance(got, want)
	d = Difference{Largest: largest, Equal: largest <= r.strict, Output: r.names[k], Example: i, Got: got[k][i], Want: want[k][i]}
	if d.Unit = "the largest number"; largestDifference(d.Got, d.Want)/r.scale[k] < largest {
		d.Unit = fmt.Sprintf("%d times the largest number of its column", ofSmall)
	}
	if !d.Equal && !math.IsInf(largest, 1) && r.bits() > 0 {
		if err := r.measureCoarse(ctx, m); err != nil {
			return d, err
		}
		d.Coarse = largest <= r.coarse
		d.Equal = d.Coarse
	}
	return d, nil
}

// isHalf reports whether the framework computed in a type of 16 bits.
func (f *File) isHalf() bool {
	return strings.Contains(f.About.DType, "float16") || strings.Contains(f.About.DType, "half")
}

// bits returns the bits in which the framework may have computed, or 0 if it computed in float32.
func (f *File) bits() int {
	dtype, device := f.About.DType, f.About.Device
	switch {
	case strings.Contains(dtype, "bfloat16"):
		return bitsBF16
	case f.isHalf():
		return bitsTF32
	case f.About.TF32 != nil && !*f.About.TF32 || strings.HasPrefix(device, "cpu"):
		return 0
	}
	return bitsTF32 // a GPU, or one that is not named
}

// measureCoarse measures which differences the type of the file explains.
func (r *Runner) measureCoarse(ctx context.Context, m *onnxio.Model) error {
	if r.coarse > 0 {
		return nil
	}
	times := 1.0
	if r.isHalf() {
		times = ofSteps
	}
	r.coarse = max(r.strict, times*math.Ldexp(ofRounding, -r.bits()))
	some := r.first(r.Count) // the bits of few examples may reach the largest numbers
	base, err := r.run(ctx, m, some, how{})
	if err != nil {
		return err
	}
	out, err := r.run(ctx, m, some, how{bits: r.bits()})
	if err != nil {
		return err
	}
	if d, _, _ := r.distance(out, base); !math.IsInf(d, 1) {
		r.coarse = max(r.coarse, times*ofCoarse*d)
	}
	return nil
}

// Tolerance returns the largest difference that rounding explains.
func (r *Runner) Tolerance() float64 { return max(r.strict, r.coarse) }
