package infer

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// states says how a network takes its states and gives them back, and where the batch is in its inputs and scores. A
// [Session] hides all of this: its inputs and scores have the batch in front, and states are zeros if nobody gives them.
type states struct {
	pairs     []swag.StatePair
	values    []onnxio.Value  // the inputs of the pairs
	timeFirst map[string]bool // inputs and outputs of shape [T B …]
	flat      bool            // the scores have the shape [B·T V], or [T·B V] with time first
	output    string          // the scores
	batch     int64           // the only batch size, or -1
	grows     []int           // the axis of each pair that a run makes longer by its tokens, or -1. A cache of keys and values has one
}

// States returns the inputs that come back as outputs, of a network whose examples may continue each other.
func (g *Graph) States() []swag.StatePair {
	if g.states == nil {
		return nil
	}
	return g.states.pairs
}

// pairStates finds the states of m: those of card if it names some, else those of recurrent operators, else those whose
// names say it.
func pairStates(m *onnxio.Model, output string, card swag.Card) (pairs []swag.StatePair, err error) {
	inputs := m.FeedInputs()
	if card.State != nil {
		return card.State, nil
	}
	traced := m.Recurrences()
	comes := func(r onnxio.Recurrence) bool { return len(r.Inputs) > 0 && len(r.Outputs) > 0 }
	for _, r := range traced {
		switch {
		case len(r.Inputs) == 0 || !slices.ContainsFunc(traced, comes):
		case len(r.Inputs) > 1 || len(r.Outputs) != 1:
			return nil, unpaired(m, r.Inputs[0], "a recurrent operator begins with it, and the graph does not show which output gives "+
				"its next value")
		default:
			p := swag.StatePair{In: r.Inputs[0], Out: r.Outputs[0], Axis: -1}
			for _, q := range pairs {
				if q.In == p.In && q.Out != p.Out || q.Out == p.Out && q.In != p.In {
					return nil, tied(m, p.In)
				}
			}
			if !slices.Contains(pairs, p) {
				pairs = append(pairs, p)
			}
		}
	}
	for _, v := range inputs {
		if slices.ContainsFunc(pairs, func(p swag.StatePair) bool { return p.In == v.Name }) {
			continue
		}
		var found []string
		for _, o := range m.Graph.Outputs {
			taken := slices.ContainsFunc(pairs, func(p swag.StatePair) bool { return p.Out == o.Name })
			if o.Name == output || taken || v.ElemType != onnxio.Float && v.ElemType != onnxio.Float16 && v.ElemType != onnxio.Double ||
				v.ElemType != o.ElemType || stem(v.Name) != stem(o.Name) {
				continue
			}
			found = append(found, o.Name)
			if slices.Equal(sized(v).Shape, sized(o).Shape) {
				pairs = append(pairs, swag.StatePair{In: v.Name, Out: o.Name, Axis: -1})
			}
		}
		if len(found) > 1 {
			return nil, unpaired(m, v.Name, fmt.Sprintf("the outputs %q may give it back", found))
		}
	}
	if len(pairs) == len(inputs) {
		return nil, nil // no input takes examples, so the names mean something else
	}
	return pairs, nil
}

// stateName splits the name of a state: h0 and hn, h and h1, h_in and h_out, past and present belong together.
var stateName = regexp.MustCompile(`^(?:(?:new|next|prev|previous|last|initial)_)?(.*?)_?(?:0|1|n|in|out|prev|next|new|old|x)?$`)

// stem returns the part of a name that the input and the output of a state have in common.
func stem(name string) string {
	name = strings.ToLower(name)
	for _, cache := range []string{"past_key_values", "present_key_values", "past", "present"} {
		if rest, ok := strings.CutPrefix(name, cache); ok {
			return "cache" + rest
		}
	}
	return stateName.FindStringSubmatch(name)[1]
}

func unpaired(m *onnxio.Model, input, what string) error {
	return &onnxio.Error{Path: m.Path, Tensor: input, What: "a state: " + what,
		Hint: fmt.Sprintf("%s names the output that gives its next value\n%s takes its values from the data",
			setting.Fit.With(setting.State.With(input+"=OUTPUT")), setting.Fit.With(setting.State.With("none")))}
}

func tied(m *onnxio.Model, input string) error {
	return &onnxio.Error{
		Path:   m.Path,
		Tensor: input,
		What:   "two states of the network begin with this one input. Was one tensor given for two arguments at export?",
		Hint:   "export again with a tensor for each: h0 = torch.zeros(…), c0 = torch.zeros(…)",
	}
}

// readStates finds the states and the batch axes of m. It returns nil without states.
func readStates(m *onnxio.Model, output string, card swag.Card) (*states, error) {
	pairs, err := pairStates(m, output, card)
	if err != nil || len(pairs) == 0 {
		return nil, err
	}
	s := &states{pairs: slices.Clone(pairs), timeFirst: map[string]bool{}, output: output, batch: -1}
	inputs, outputs := m.FeedInputs(), m.Graph.Outputs
	find := func(name string, among []onnxio.Value) (onnxio.Value, error) {
		i := slices.IndexFunc(among, func(v onnxio.Value) bool { return v.Name == name })
		if i < 0 {
			var names []string
			for _, v := range among {
				names = append(names, v.Name)
			}
			return onnxio.Value{}, &onnxio.Error{Path: m.Path, Tensor: name, What: fmt.Sprintf("named as a state, and not among %q", names)}
		}
		return among[i], nil
	}
	unread := m.Unread()
	var data []onnxio.Value
	for _, v := range inputs {
		if !slices.ContainsFunc(pairs, func(p swag.StatePair) bool { return p.In == v.Name }) {
			data = append(data, v)
		}
	}
	for i := range s.pairs {
		p := &s.pairs[i]
		in, err := find(p.In, inputs)
		if err != nil {
			return nil, err
		}
		out, err := find(p.Out, outputs)
		if err != nil {
			return nil, err
		}
		in, out = sized(in), sized(out)
		switch {
		case slices.Contains(unread, p.In):
			return nil, &onnxio.Error{
				Path:   m.Path,
				Tensor: p.In,
				What:   "a state that no node reads. Was one tensor given for two arguments at export?",
				Hint:   "export again with a tensor for each: h0 = torch.zeros(…), c0 = torch.zeros(…)",
			}
		case in.ElemType != out.ElemType:
			return nil, s.mismatch(m, in, out, fmt.Sprintf("type %v", in.ElemType), fmt.Sprintf("type %v", out.ElemType))
		case len(in.Shape) != len(out.Shape) || !alike(onnxio.Value{Shape: append([]int64{0}, in.Shape...)},
			onnxio.Value{Shape: append([]int64{0}, out.Shape...)}):
			return nil, s.mismatch(m, in, out, "shape "+onnxio.FormatShape(in.Shape, in.Dims),
				"shape "+onnxio.FormatShape(out.Shape, out.Dims))
		case p.Axis < 0:
			p.Axis = stateAxis(in, data)
		}
		if p.Axis >= len(in.Shape) {
			return nil, &onnxio.Error{
				Path:   m.Path,
				Tensor: p.In,
				What:   fmt.Sprintf("a state of shape %s has no batch axis %d", onnxio.FormatShape(in.Shape, in.Dims), p.Axis),
			}
		}
		grows := -1
		for axis, d := range in.Shape {
			switch {
			case axis == p.Axis || d > 0:
			case grows < 0 && out.Shape[axis] < 0 && (in.Dims[axis] == "" || in.Dims[axis] != out.Dims[axis]):
				grows = axis
			default:
				return nil, &onnxio.Error{
					Path:   m.Path,
					Tensor: p.In,
					What: fmt.Sprintf("a state of shape %s: only its batch may be free, axis %d, and the tokens of a cache",
						onnxio.FormatShape(in.Shape, in.Dims), p.Axis),
					Hint: "export the network with fixed sizes of its states",
				}
			}
		}
		s.values, s.grows, s.batch = append(s.values, in), append(s.grows, grows), max(s.batch, in.Shape[p.Axis])
	}
	for _, v := range data {
		s.timeFirst[v.Name] = s.isTimeFirst(v, func() bool { return m.TimeFirst(v.Name) })
	}
	first := len(data) > 0 && s.timeFirst[data[0].Name]
	if o, err := find(output, outputs); err == nil {
		switch batch := s.dim(0); {
		case len(o.Shape) == 2:
			s.flat = !(o.Dims[0] != "" && o.Dims[0] == batch || s.batch > 0 && o.Shape[0] == s.batch)
		case len(o.Shape) == 3:
			s.timeFirst[output] = s.isTimeFirst(o, func() bool { return first })
		}
		if s.flat {
			s.timeFirst[output] = first
		}
	}
	return s, nil
}

func (s *states) mismatch(m *onnxio.Model, in, out onnxio.Value, is, want string) error {
	return &onnxio.Error{
		Path:   m.Path,
		Tensor: in.Name,
		What:   fmt.Sprintf("a state of %s, and output %q, which gives its next value, has the %s", is, out.Name, want),
		Hint:   setting.Fit.With(setting.State.With("IN=OUT")) + " names the pairs",
	}
}

// sized returns v with the sizes that the exporter of transformers writes as names, such as "64".
func sized(v onnxio.Value) onnxio.Value {
	v.Shape = slices.Clone(v.Shape)
	for axis, name := range v.Dims {
		if n, err := strconv.Atoi(name); err == nil && v.Shape[axis] < 0 {
			v.Shape[axis] = int64(n)
		}
	}
	return v
}

// Grows reports whether states grow with each token, as a cache of keys and values does.
func (g *Graph) Grows() bool { return g.states != nil && slices.Max(g.states.grows) >= 0 }

// past returns the number of tokens in a cache.
func (s *states) past(from []ort.Tensor) int64 {
	for i, axis := range s.grows {
		if axis >= 0 && from != nil {
			return from[i].Shape[axis]
		}
	}
	return 0
}

// picked returns the parts of a tensor with the given indices along an axis.
func picked(t ort.Tensor, axis int, idx []int) ort.Tensor {
	size := 1
	for _, d := range t.Shape[axis+1:] {
		size *= int(d)
	}
	n := int(t.Shape[axis])
	t.Shape = slices.Clone(t.Shape)
	t.Shape[axis] = int64(len(idx))
	t.F32, t.F64, t.F16 = pick(t.F32, n, size, idx), pick(t.F64, n, size, idx), pick(t.F16, n, size, idx)
	t.U8, t.I64, t.Raw = pick(t.U8, n, size, idx), pick(t.I64, n, size, idx), pick(t.Raw, n, size*ort.RawSize(t.Type), idx)
	return t
}

func pick[T any](v []T, n, size int, idx []int) (out []T) {
	for at := 0; at < len(v); at += n * size {
		for _, i := range idx {
			out = append(out, v[at+i*size:][:size]...)
		}
	}
	return out
}

// indices returns the numbers from … to−1.
func indices(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// bytes returns the memory of the states of rows after so many tokens. It fails if one takes more than most.
func (s *states) bytes(rows, tokens int, most int64) (n int64, err error) {
	for i := range s.values {
		one, err := s.size(i, rows, tokens, most)
		if err != nil {
			return 0, err
		}
		n += one
	}
	return n, nil
}

// size returns the memory of state i. It fails if that is more than most.
func (s *states) size(i, rows, tokens int, most int64) (int64, error) {
	v, shape := s.values[i], s.shape(i, rows, tokens)
	size := v.ElemType.DType().Size()
	n, err := weights.Within(shape, most/size)
	if err != nil {
		return 0, &onnxio.Error{
			Tensor: v.Name,
			What:   fmt.Sprintf("a state of shape %v takes more than the %d MiB that are for it", shape, most>>20),
			Hint:   "give more: " + setting.Memory.String(),
		}
	}
	return n * size, nil
}

// shape returns the shape of state i for so many rows, after so many tokens.
func (s *states) shape(i, rows, tokens int) []int64 {
	shape := slices.Clone(s.values[i].Shape)
	shape[s.pairs[i].Axis] = int64(rows)
	if axis := s.grows[i]; axis >= 0 {
		shape[axis] = int64(tokens)
	}
	return shape
}

// dim returns the name of the batch dimension of state k, or "".
func (s *states) dim(k int) string { return s.values[k].Dims[s.pairs[k].Axis] }

// stateAxis returns the batch axis of a state. It has the name of an axis of the inputs. Without names it is axis 0 of
// [B heads P width], and the only free axis of other shapes. Otherwise it is axis 1 of [layers B H], and axis 0 of others.
func stateAxis(v onnxio.Value, data []onnxio.Value) int {
	free := -1
	for axis, name := range v.Dims {
		for _, d := range data {
			if name != "" && slices.Contains(d.Dims, name) {
				return axis
			}
		}
		if v.Shape[axis] < 0 {
			free = axis
		}
	}
	switch {
	case len(v.Shape) == 4:
		return 0
	case free >= 0:
		return free
	case len(v.Shape) == 3:
		return 1
	}
	return 0
}

// isTimeFirst reports whether a value of an input, or of the scores, has the shape [T B …]. Names of axes tell it, or fixed
// sizes, else the function unclear.
func (s *states) isTimeFirst(v onnxio.Value, unclear func() bool) bool {
	if len(v.Shape) < 2 {
		return false
	}
	name, second := s.dim(0), v.Dims[1]
	switch {
	case name != "" && (v.Dims[0] == name) != (second == name):
		return second == name
	case s.batch > 0 && (v.Shape[0] == s.batch) != (v.Shape[1] == s.batch) && v.Shape[0] > 0 && v.Shape[1] > 0:
		return v.Shape[1] == s.batch
	}
	return unclear()
}

// arranged returns an input or the scores with the batch in front. Flat scores get the axes of inputs [B T].
func (s *states) arranged(v onnxio.Value, input onnxio.Value) onnxio.Value {
	if s == nil {
		return v
	}
	switch {
	case v.Name == s.output && s.flat:
		v.Shape = []int64{input.Shape[0], input.Shape[1], v.Shape[1]}
		v.Dims = []string{input.Dims[0], input.Dims[1], v.Dims[1]}
	case s.timeFirst[v.Name]:
		v.Shape, v.Dims = slices.Clone(v.Shape), slices.Clone(v.Dims)
		v.Shape[0], v.Shape[1] = v.Shape[1], v.Shape[0]
		v.Dims[0], v.Dims[1] = v.Dims[1], v.Dims[0]
	}
	return v
}

// inputs returns the inputs that take examples, with the batch in front.
func (s *states) inputs(all []onnxio.Value) (data []onnxio.Value) {
	if s == nil {
		return all
	}
	for _, v := range all {
		if slices.ContainsFunc(s.pairs, func(p swag.StatePair) bool { return p.In == v.Name }) {
			continue
		}
		v = s.arranged(v, v)
		if len(v.Shape) > 0 && s.batch > 0 {
			v.Shape = slices.Clone(v.Shape)
			v.Shape[0] = s.batch
		}
		data = append(data, v)
	}
	return data
}

// hide adapts a session, as [states] says.
func (s *Session) hide(g *Graph) {
	if g == nil || g.states == nil {
		return
	}
	s.states = g.states
	all := s.inputs
	s.inputs = nil
	for _, v := range g.Inputs {
		i := slices.IndexFunc(all, func(of ort.ValueInfo) bool { return of.Name == v.Name })
		in := all[i]
		in.Shape = v.Shape
		s.inputs = append(s.inputs, in)
	}
}

// RunFrom is Run with states: those that an earlier run of the same rows returned as next, or nil for zeros.
func (s *Session) RunFrom(ctx context.Context, inputs, from []ort.Tensor) (out, next []ort.Tensor, err error) {
	examples := int(inputs[0].Shape[0])
	if s.states == nil {
		out, err = s.run(ctx, examples, inputs)
		return out, nil, err
	}
	all, err := s.withStates(inputs, from)
	if err != nil {
		return nil, nil, err
	}
	if out, err = s.run(ctx, examples, all); err != nil {
		return nil, nil, err
	}
	wanted := len(out) - len(s.states.pairs)
	out, next = out[:wanted], out[wanted:]
	for i, given := range all[len(inputs):] {
		next[i].Name = given.Name
		want := slices.Clone(given.Shape)
		if axis := s.states.grows[i]; axis >= 0 {
			want[axis] += inputs[0].Shape[1]
		}
		if !slices.Equal(next[i].Shape, want) {
			return nil, nil, &onnxio.Error{
				Tensor: given.Name,
				What: fmt.Sprintf("a state of shape %v, and output %q gives its next value the shape %v, want %v", given.Shape,
					s.states.pairs[i].Out, next[i].Shape, want),
			}
		}
	}
	for i := range out {
		if out[i].Name == s.states.output {
			if out[i], err = s.states.scores(out[i], inputs[0].Shape); err != nil {
				return nil, nil, err
			}
		}
	}
	return out, next, nil
}

// withStates returns inputs as the network takes them, and the states behind them.
func (s *Session) withStates(inputs, from []ort.Tensor) (all []ort.Tensor, err error) {
	if s.states == nil {
		return inputs, nil
	}
	for i, t := range inputs {
		t.Name = cmp.Or(t.Name, s.inputs[i].Name)
		if past := s.states.past(from); past > 0 && strings.Contains(strings.ToLower(t.Name), "mask") {
			// The mask also covers the cached tokens. Each gets the value of the window's first token.
			t = picked(t, 1, append(make([]int, past), indices(0, int(t.Shape[1]))...))
		}
		if s.states.timeFirst[t.Name] {
			t = swapped(t)
		}
		all = append(all, t)
	}
	if from == nil {
		for i, v := range s.states.values {
			rows := int(inputs[0].Shape[0])
			bytes, err := s.states.size(i, rows, 0, s.most)
			if err != nil {
				return nil, err
			}
			n := bytes / v.ElemType.DType().Size()
			t := ort.Tensor{Name: v.Name, Shape: s.states.shape(i, rows, 0)}
			switch v.ElemType {
			case onnxio.Double:
				t.F64 = make([]float64, n)
			case onnxio.Float16:
				t.F16 = make([]uint16, n)
			case onnxio.Float:
				t.F32 = make([]float32, n)
			default:
				return nil, &onnxio.Error{Tensor: v.Name, What: fmt.Sprintf("a state of type %v, want a float type", v.ElemType)}
			}
			from = append(from, t)
		}
	}
	return append(all, from...), nil
}

// scores returns scores with the batch in front, for inputs of shape [B T …].
func (s *states) scores(t ort.Tensor, input []int64) (ort.Tensor, error) {
	if s.flat {
		if len(input) < 2 || len(t.Shape) != 2 || t.Shape[0] != input[0]*input[1] {
			return t, &onnxio.Error{
				Tensor: t.Name,
				What:   fmt.Sprintf("output of shape %v for inputs of shape %v, want a row for each token", t.Shape, input),
			}
		}
		t.Shape = []int64{input[0], input[1], t.Shape[1]}
		if s.timeFirst[t.Name] {
			t.Shape[0], t.Shape[1] = t.Shape[1], t.Shape[0]
		}
	}
	if s.timeFirst[t.Name] {
		t = swapped(t)
	}
	return t, nil
}

// swapped returns a tensor with its first two axes in the other order.
func swapped(t ort.Tensor) ort.Tensor {
	shape := slices.Clone(t.Shape)
	shape[0], shape[1] = shape[1], shape[0]
	size := 1
	for _, d := range shape[2:] {
		size *= int(d)
	}
	of := [2]int{int(t.Shape[0]), int(t.Shape[1])}
	t.F32, t.F64, t.F16 = swap(t.F32, of, size), swap(t.F64, of, size), swap(t.F16, of, size)
	t.U8, t.I64, t.Raw = swap(t.U8, of, size), swap(t.I64, of, size), swap(t.Raw, of, size*ort.RawSize(t.Type))
	t.Shape = shape
	return t
}

func swap[T any](v []T, of [2]int, size int) []T {
	if v == nil {
		return nil
	}
	out := make([]T, len(v))
	for i := range of[0] {
		for j := range of[1] {
			copy(out[(j*of[0]+i)*size:][:size], v[(i*of[1]+j)*size:])
		}
	}
	return out
}

// reset sets the states of the given rows to zeros. The arrays are not changed, since another run may read them.
func (s *states) reset(from []ort.Tensor, rows []int) []ort.Tensor {
	out := slices.Clone(from)
	for i, t := range out {
		axis, size := s.pairs[i].Axis, 1
		for _, d := range t.Shape[axis+1:] {
			size *= int(d)
		}
		out[i].F32, out[i].F64, out[i].F16 = slices.Clone(t.F32), slices.Clone(t.F64), slices.Clone(t.F16)
		for at := 0; at < max(len(t.F32), len(t.F64), len(t.F16)); at += size * int(t.Shape[axis]) {
			for _, r := range rows {
				from, to := at+r*size, at+(r+1)*size
				switch {
				case t.F32 != nil:
					clear(out[i].F32[from:to])
				case t.F64 != nil:
					clear(out[i].F64[from:to])
				default:
					clear(out[i].F16[from:to])
				}
			}
		}
	}
	return out
}
