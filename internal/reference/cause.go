package reference

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/onnxio"
)

// A Search looks for what makes the numbers of a network equal to reference outputs.
type Search struct {
	*Runner
	Model *onnxio.Model
	Row   int // of the outputs
	// Others are other weights for the graph, such as those of other files, and of other keys in the same file.
	Others []Other
	// Exported is the graph with the weights that it was exported with, or nil. Of is the file that has these weights, or "".
	Exported *onnxio.Model

	want [][][]float64 // of all examples
	got  [][][]float64 // what the model gives
}

// Other is other weights.
type Other struct {
	Words string // what they are
	Hint  string // how to take them
	Open  func() (m *onnxio.Model, done func(), err error)
}

// A Found is the cause of a difference.
type Found struct {
	Name  string // of the row of causes
	Words string // what makes the numbers equal
	Hints []string
}

// causes are tried in this order. Each yields what it found, if the numbers are equal then.
var causes = []struct {
	name string
	try  func(*Search, context.Context) (words string, hints []string)
}{
	{"weights", (*Search).otherWeights},
	{"missing tensor", (*Search).missingTensor},
	{"training mode", (*Search).trainingMode},
	{"order of inputs", (*Search).inputOrder},
	{"normalisation", (*Search).normalisation},
	{"scores", (*Search).scores},
	{"order of examples", (*Search).exampleOrder},
	{"order of scores", (*Search).scoreOrder},
}

// Cause returns the first cause that makes the numbers equal, or nil.
func (s *Search) Cause(ctx context.Context) *Found {
	ctx = tally.For(ctx, tally.Check("reference outputs"))
	all := s.first(s.Count)
	s.want = s.wanted(s.Row, all)
	var err error
	if s.got, err = s.run(ctx, s.Model, all, how{}); err != nil {
		return nil
	}
	for _, c := range causes {
		if words, hints := c.try(s, ctx); words != "" {
			return &Found{c.name, words, hints}
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// equal reports whether outputs are those of the file.
func (s *Search) equal(out [][][]float64) bool {
	d, _, _ := s.distance(out, s.want)
	return d <= max(s.strict, s.coarse)
}

// gives reports whether the network gives the outputs of the file, if it runs in another way.
func (s *Search) gives(ctx context.Context, m *onnxio.Model, h how) bool {
	out, err := s.run(ctx, m, s.first(s.Count), h)
	return err == nil && s.equal(out)
}

func (s *Search) otherWeights(ctx context.Context) (string, []string) {
	for _, o := range s.Others {
		m, done, err := o.Open()
		if err != nil {
			continue
		}
		found := s.gives(ctx, m, how{})
		done()
		if found {
			return "these are the outputs of " + o.Words, []string{o.Hint}
		}
	}
	return "", nil
}

// missingTensor knows the cause if the graph is right with the weights that it was exported with alone: then something that
// differs between the files is a constant in it.
func (s *Search) missingTensor(ctx context.Context) (string, []string) {
	if s.Exported == nil || s.Rows() < 2 {
		return "", nil
	}
	out, err := s.run(ctx, s.Exported, s.first(s.Count), how{})
	if err != nil {
		return "", nil
	}
	for row := range s.Rows() {
		if d, _, _ := s.distance(out, s.wanted(row, s.first(s.Count))); row != s.Row && d <= s.strict {
			words := fmt.Sprintf("the graph is right with the weights that it was exported with (%s), and wrong with others: a part of "+
				"those weights is a constant in it", s.Weights[row])
			return words, []string{"export the graph again so that it has all weights: in PyTorch with optimize=False"}
		}
	}
	return "", nil
}

func (s *Search) trainingMode(ctx context.Context) (string, []string) {
	if s.gives(ctx, s.Model, how{training: true}) {
		return "these are the outputs in training mode: batch norm used the statistics of these examples",
			[]string{"compute them in evaluation mode: model.eval() in PyTorch, training=False in Keras and Flax"}
	}
	return "", nil
}

// inputOrder tries inputs of the same shape in another order, channels the other way around, and other layouts.
func (s *Search) inputOrder(ctx context.Context) (string, []string) {
	for i := range s.inputs {
		for k := range i {
			swap := func(in []ort.Tensor) []ort.Tensor {
				out := slices.Clone(in)
				out[i], out[k] = in[k], in[i]
				out[i].Name, out[k].Name = in[i].Name, in[k].Name
				return out
			}
			if slices.Equal(s.inputs[i].Shape, s.inputs[k].Shape) && s.gives(ctx, s.Model, how{inputs: swap}) {
				return fmt.Sprintf("the inputs %q and %q are exchanged", s.inputs[k].Name, s.inputs[i].Name),
					[]string{"name the arrays of the file by the inputs of the graph, or export with input_names in the network's order"}
			}
		}
	}
	for i, t := range s.inputs {
		if t.F32 == nil || len(t.Shape) < 3 {
			continue
		}
		for _, c := range arrangements(t.Shape[1:]) {
			if s.gives(ctx, s.Model, how{inputs: replaced(i, c.change)}) {
				return c.words, []string{"save the inputs as the exported graph takes them"}
			}
		}
	}
	return "", nil
}

// replaced changes the elements of one input.
func replaced(i int, change func([]float32) []float32) func([]ort.Tensor) []ort.Tensor {
	return func(in []ort.Tensor) []ort.Tensor {
		out := slices.Clone(in)
		n := int(in[i].Shape[0])
		var all []float32
		for e := range n {
			all = append(all, change(part(in[i].F32, n, e))...)
		}
		out[i].F32 = all
		return out
	}
}

// An arrangement is another order of the elements of an example.
type arrangement struct {
	words  string
	change func([]float32) []float32
}

// arrangements returns other orders of the elements of an example of this shape.
func arrangements(shape []int64) (all []arrangement) {
	permuted := func(words string, at func(index []int64) []int64, from []int64) {
		all = append(all, arrangement{words, func(x []float32) []float32 {
			out := make([]float32, len(x))
			index := make([]int64, len(shape))
			for k := range out {
				rest := int64(k)
				for axis := len(shape) - 1; axis >= 0; axis-- {
					index[axis], rest = rest%shape[axis], rest/shape[axis]
				}
				flat := int64(0)
				for axis, i := range at(index) {
					flat = flat*from[axis] + i
				}
				out[k] = x[flat]
			}
			return out
		}})
	}
	last := len(shape) - 1
	for _, axis := range []int{0, last} {
		if shape[axis] > 1 && shape[axis] <= 4 {
			permuted("the channels are in the opposite order: BGR instead of RGB", func(i []int64) []int64 {
				i = slices.Clone(i)
				i[axis] = shape[axis] - 1 - i[axis]
				return i
			}, shape)
		}
	}
	// The same number of elements with the channels at the other end.
	toLast := append(slices.Clone(shape[1:]), shape[0])
	permuted("the inputs have their channels last, and the graph takes them first", func(i []int64) []int64 {
		return append(slices.Clone(i[1:]), i[0])
	}, toLast)
	toFirst := append([]int64{shape[last]}, shape[:last]...)
	permuted("the inputs have their channels first, and the graph takes them last", func(i []int64) []int64 {
		return append([]int64{i[last]}, i[:last]...)
	}, toFirst)
	for _, pair := range [][2]int{{last - 1, last}, {0, 1}} {
		if a, b := pair[0], pair[1]; a >= 0 && b <= last && shape[a] == shape[b] {
			permuted("two axes of the inputs are exchanged, such as height and width", func(i []int64) []int64 {
				i = slices.Clone(i)
				i[a], i[b] = i[b], i[a]
				return i
			}, shape)
		}
	}
	return all
}

// A usual is the mean and the standard deviation of pixels in [0, 1] that many networks were trained with, for one channel or three.
type usual struct {
	words     string
	mean, std []float64
}

// usuals are those of the presets, and those of small pictures.
var usuals = []usual{
	preset("mean and standard deviation of ImageNet", "imagenet"),
	preset("mean 0.5 and standard deviation 0.5", "inception"),
	preset("mean and standard deviation of CLIP", "clip"),
	{"mean and standard deviation of CIFAR-10", []float64{.4914, .4822, .4465}, []float64{.2470, .2435, .2616}},
	{"mean and standard deviation of MNIST", []float64{.1307}, []float64{.3081}},
	{"a factor of 255", []float64{0}, []float64{1. / 255}},
}

func preset(words, name string) usual {
	s, err := preprocess.Preset(name)
	if err != nil {
		panic(err) // the names are constants
	}
	return usual{words, s.Mean, s.Std}
}

// normalisation tries what usually stands before a network: inputs that have it once too often, or lack it.
func (s *Search) normalisation(ctx context.Context) (string, []string) {
	for i, t := range s.inputs {
		if t.F32 == nil || len(t.Shape) < 2 {
			continue
		}
		for _, n := range usuals {
			for _, missing := range []bool{true, false} {
				for _, last := range []bool{false, true} {
					channels, inner := t.Shape[1], int64(1)
					if last {
						channels = t.Shape[len(t.Shape)-1]
					} else {
						for _, d := range t.Shape[2:] {
							inner *= d
						}
					}
					change := func(x []float32) []float32 {
						out := make([]float32, len(x))
						for k, v := range x {
							c := int64(k) / inner % channels
							if channels != int64(len(n.mean)) {
								c = 0
							}
							if missing {
								out[k] = float32((float64(v) - n.mean[c]) / n.std[c])
							} else {
								out[k] = float32(float64(v)*n.std[c] + n.mean[c])
							}
						}
						return out
					}
					if !s.gives(ctx, s.Model, how{inputs: replaced(i, change)}) {
						continue
					}
					words := "the graph normalises its inputs once more than the network did: " + n.words
					if missing {
						words = "the network normalised its inputs, and the graph does not: " + n.words
					}
					return words, []string{"save the inputs as the exported graph takes them, or export the network that has this step"}
				}
			}
		}
	}
	return "", nil
}

// conversions turn scores into others of the same number.
var conversions = []struct {
	words  string
	change func([]float64) []float64
}{
	{"softmax", func(x []float64) []float64 { return calibrate.Softmax(nil, x, len(x), 1) }},
	{"log-softmax", func(x []float64) []float64 { return calibrate.LogSoftmax(nil, x, len(x), 1) }},
	{"sigmoid", func(x []float64) []float64 {
		return mapValues(x, func(v float64) float64 { return 1 / (1 + math.Exp(-v)) })
	}},
	{"exp", func(x []float64) []float64 { return mapValues(x, math.Exp) }},
	{"log", func(x []float64) []float64 { return mapValues(x, math.Log) }},
}

func mapValues(x []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = f(v)
	}
	return out
}

// scores tries outputs behind softmax and the like, on either side, and other outputs of the graph.
func (s *Search) scores(ctx context.Context) (string, []string) {
	hint := []string{"save the outputs of the network that was exported, before or after this step as there"}
	for _, c := range conversions {
		if s.equal(changed(s.got, c.change)) {
			return "the reference outputs are behind " + c.words + ", and those of the graph are before it", hint
		}
		if d, _, _ := s.distance(s.got, changed(s.want, c.change)); d*s.scale[0] <= s.strict { // of numbers up to 1, or their logarithms
			return "the outputs of the graph are behind " + c.words + ", and the reference outputs are before it", hint
		}
	}
	for _, o := range s.Model.Graph.Outputs {
		if slices.Contains(s.names, o.Name) || len(s.names) > 1 || !o.ElemType.DType().IsFloat() {
			continue
		}
		other := *s.Runner
		e := *s.Examples
		e.names = []string{o.Name}
		other.Examples = &e
		out, err := other.run(ctx, s.Model, s.first(s.Count), how{})
		if err == nil && s.equal(out) {
			return fmt.Sprintf("these are the numbers of the output %q, not of %q", o.Name, s.names[0]),
				[]string{setting.OutputName.With(o.Name) + " takes it, or name the array of the file so"}
		}
	}
	return "", nil
}

func changed(out [][][]float64, change func([]float64) []float64) (all [][][]float64) {
	for _, rows := range out {
		var these [][]float64
		for _, row := range rows {
			these = append(these, change(row))
		}
		all = append(all, these)
	}
	return all
}

// matched returns, for each of n places of want, the place of got that is equal, or nil. Each place is taken once.
func matched(n int, equal func(want, got int) bool) (places []int) {
	taken := make([]bool, n)
	for want := range n {
		got := 0
		for got < n && (taken[got] || !equal(want, got)) {
			got++
		}
		if got == n {
			return nil
		}
		taken[got] = true
		places = append(places, got)
	}
	return places
}

// firstMoved returns the first place that is not its own, or -1.
func firstMoved(places []int) int {
	for i, at := range places {
		if i != at {
			return i
		}
	}
	return -1
}

func (s *Search) exampleOrder(context.Context) (string, []string) {
	places := matched(s.Count, func(w, g int) bool { return largestDifference(s.got[0][g], s.want[0][w]) <= s.strict*s.scale[0] })
	moved := firstMoved(places)
	if moved < 0 {
		return "", nil
	}
	return fmt.Sprintf("the outputs are those of the examples in another order: number %d is that of example %d", moved, places[moved]),
		[]string{"save inputs and outputs of the same batch, without shuffling in between"}
}

// scoreOrder tries the scores of an example in another order. One order must hold for all examples.
func (s *Search) scoreOrder(context.Context) (string, []string) {
	const most = 4096
	width := len(s.want[0][0])
	if width < 2 || width > most || s.Count < 2 || len(s.got[0][0]) != width {
		return "", nil
	}
	places := matched(width, func(w, g int) bool {
		for i := range s.Count {
			if d := math.Abs(s.got[0][i][g] - s.want[0][i][w]); !(d <= s.strict*s.scale[0]) {
				return false
			}
		}
		return true
	})
	moved := firstMoved(places)
	if moved < 0 {
		return "", nil
	}
	return fmt.Sprintf("the scores are in another order: number %d of the reference outputs is number %d of the graph", moved,
			places[moved]),
		[]string{"export the network that the outputs are of"}
}
