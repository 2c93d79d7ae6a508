package infer

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// group is several models of one part whose sessions are open at the same time.
type group struct {
	first    int // number of the first model
	batch    int // examples in a run
	sessions []*loaded
}

// loaded is a model with its session.
type loaded struct {
	Model
	*Session
	took  time.Duration // to make the model and its session
	bytes int64         // that they took
	run   atomic.Int64  // nanoseconds of a run for each example; 0 if no measurement ran the model
}

// open makes sessions of models first … first+count−1, which belong to one part. Sessions that are open already are taken over.
func (s *Scorer) open(ctx context.Context, first, count, batch int) (*group, error) {
	g := &group{first: first, batch: batch}
	for k, end := first, first+count; k < end; k = first + len(g.sessions) {
		if m := s.ran.takeOver(k); m != nil {
			g.sessions = append(g.sessions, m)
		} else if err := g.add(ctx, s, k, s.ran.missing(k, end)); err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

// add adds models first … first+count−1 of a Scorer, with new sessions.
func (g *group) add(ctx context.Context, s *Scorer, first, count int) error {
	began, before := time.Now(), memory.Resident()
	return s.models.Each(ctx, first, count, func(m Model) error {
		placed := time.Now()
		err := s.engine.Place(ctx, &m.placed, m.Name, m.Graph, g.batch, m.Filled, s.data, m.takes()...)
		began = began.Add(time.Since(placed)) // happens once
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		session, err := m.session(ctx, s.engine, g.batch)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		m.Filled.Parameters, m.Filled.Statistics = nil, nil // only valid during the call
		g.sessions = append(g.sessions, &loaded{Model: m, Session: session, took: time.Since(began), bytes: memory.Resident() - before})
		began, before = time.Now(), memory.Resident()
		return nil
	})
}

// session opens the model's session for runs of so many examples, unless it is kept open.
func (m Model) session(ctx context.Context, e *Engine, batch int) (session *Session, err error) {
	if m.kept != nil && m.kept.session != nil {
		return m.kept.session, nil
	}
	opts := e.options(m.Graph, batch, m.takes())
	opts.Callers = m.callers(e)
	session, err = e.open(ctx, m.Graph, m.Filled, opts)
	if err == nil && m.kept != nil {
		m.kept.session = session
	}
	return session, err
}

// keptSession is the session of a model that runs over several data sets. It is nil until the first of them.
type keptSession struct{ session *Session }

// Keep returns m with one session for all calls of [Run.Predict], in turn. The function release closes it.
func (m Model) Keep() (kept Model, release func()) {
	k := &keptSession{}
	m.kept = k
	return m, func() {
		if k.session != nil {
			k.session.Close()
		}
	}
}

func (m *loaded) close() {
	if m.kept == nil {
		m.Close()
	}
}

func (g *group) close() {
	for _, m := range g.sessions {
		m.close()
	}
}

// Session is a model ready to run.
type Session struct {
	*ort.Session
	inputs []ort.ValueInfo
	states *states // nil without
	most   int64   // bytes that a state may take
	slow   func(inside time.Duration, loops bool)
	loops  bool
	spare  spares
}

// spares are buffers for examples. A new one for each batch would be most of the garbage.
type spares struct {
	mu   sync.Mutex
	list []dataset.Values
}

// take returns memory for n examples. The caller returns it by giveBack.
func (s *spares) take(size dataset.Size, n int) dataset.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.list) - 1; last >= 0 {
		b := s.list[last]
		if s.list = s.list[:last]; b.Holds(size, n) {
			return b.Rows(size, 0, n)
		}
	}
	return size.Make(n)
}

func (s *spares) giveBack(b dataset.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, b)
}

// Open makes a model of graph g ready to compute the given outputs. g may be nil for a graph without states.
func (e *Engine) Open(ctx context.Context, g *Graph, model onnxio.Filled, outputs ...string) (*Session, error) {
	return e.open(ctx, g, model, e.options(g, 0, outputs))
}

// OpenShared is Open for runs that come one after another. All threads share each of them.
func (e *Engine) OpenShared(ctx context.Context, g *Graph, model onnxio.Filled, outputs ...string) (*Session, error) {
	opts := e.options(g, 0, outputs)
	opts.Threads = e.Threads()
	return e.open(ctx, g, model, opts)
}

// refuses fails if the provider does not compute the graph, or crashes, or if the graph is too large.
func (e *Engine) refuses(g *Graph) error {
	if g == nil {
		return nil
	}
	if g.half != "" && !e.how.Provider.GPU() {
		return &onnxio.Error{
			What: "the operator " + g.half + " in float16: ONNX Runtime has none for the processor, and would crash",
			Hint: "export the network in float32",
		}
	}
	if g.misread != "" && e.how.Provider.MisreadsChannels() {
		return &onnxio.Error{
			Tensor: g.misread,
			What:   "the convolution has a multiple of 3 input channels and no multiple of 4: ONNX Runtime computes it wrong on WebGPU",
			Hint:   setting.Provider.With(ort.CPU) + " and " + ort.CUDA + " compute it right",
		}
	}
	return g.Fits(e.how.Memory)
}

func (e *Engine) open(ctx context.Context, g *Graph, model onnxio.Filled, opts ort.Options) (*Session, error) {
	if err := e.refuses(g); err != nil {
		return nil, err
	}
	s, err := e.runtime.NewFilledSession(ctx, model, opts)
	if err != nil {
		return nil, err
	}
	session := e.session(g, s)
	sig, err := model.Template.Signature()
	session.slow, session.loops = e.how.Slow, sig.Loops
	return session, err
}

// session returns a session with the inputs that its callers give, without states.
func (e *Engine) session(g *Graph, s *ort.Session) *Session {
	session := &Session{Session: s, inputs: s.Inputs(), most: max(1<<20, e.how.Memory.Networks()/2)}
	session.hide(g)
	return session
}

// options returns the options of a session whose runs have a thread each, and so many examples; 0 is any number. States may
// have their batch on another axis.
func (e *Engine) options(g *Graph, batch int, outputs []string) ort.Options {
	if g != nil {
		if g.states != nil {
			batch = 0
		}
		outputs = slices.Clone(outputs)
		for _, p := range g.States() {
			outputs = append(outputs, p.Out)
		}
	}
	return ort.Options{Threads: 1, Outputs: outputs, Provider: e.how.Provider, Callers: e.Threads(), Batch: batch}
}

// Place calls Placed for a model that runs on batches of a size, 0 for any, unless seen is already set. It runs the model on zeros
// instead of the data. Its session is closed at the end, so the session of the run should be opened later.
func (e *Engine) Place(ctx context.Context, seen *atomic.Bool, name string, g *Graph, batch int, model onnxio.Filled,
	data dataset.Dataset, outputs ...string) error {
	if !e.how.Provider.Partial() || seen.Swap(true) {
		return nil
	}
	const few = 2 // a batch norm of one example is an error
	fixed := fixedBatch(g)
	rows := cmp.Or(fixed, few)
	p, err := e.place(ctx, g, batch, model, data, rows, outputs)
	if divisible(err, rows, fixed) {
		rows = 1
		p, err = e.place(ctx, g, batch, model, data, rows, outputs)
		divisible(err, rows, fixed)
	}
	if err != nil {
		seen.Store(false)
	} else if e.how.Placed != nil {
		e.how.Placed(name, p)
	}
	return err
}

// place runs the model on a batch of zeros.
func (e *Engine) place(ctx context.Context, g *Graph, batch int, model onnxio.Filled, data dataset.Dataset, rows int,
	outputs []string) (ort.Placement, error) {
	size, err := dataset.SizeOf(data)
	if err == nil {
		err = e.refuses(g)
	}
	if err != nil {
		return ort.Placement{}, err
	}
	tally.Add(tally.For(ctx, tally.Plan), rows)
	return e.runtime.Place(ctx, model, e.options(g, min(batch, rows), outputs), func(of *ort.Session) ([]ort.Tensor, error) {
		s := e.session(g, of)
		in, err := s.feed(data, nil, rows, nil, size.Make(rows))
		if err == nil {
			in, err = s.withStates(in, nil)
		}
		return in, err
	})
}

// slowAfter is the time after which a run counts as slow.
var slowAfter = time.Minute

// fixedBatch returns the only batch size that the network takes, or 0.
func fixedBatch(g *Graph) (fixed int) {
	for _, v := range g.Inputs {
		fixed = max(fixed, int(v.Shape[0]))
	}
	return fixed
}

// FixedBatch returns the only batch size that the network takes, or 0.
func (s *Session) FixedBatch() int {
	fixed := int64(0)
	for _, v := range s.inputs {
		if len(v.Shape) > 0 {
			fixed = max(fixed, v.Shape[0])
		}
	}
	return int(fixed)
}

// Feed runs the examples idx. If the network has a fixed batch, a shorter one is filled up with copies of its last
// example. The outputs of the copies are the last rows.
func (s *Session) Feed(ctx context.Context, data dataset.Dataset, idx []int) (out []ort.Tensor, err error) {
	err = FeedAll(ctx, []*Session{s}, data, idx, 0, func(_ int, run func() ([]ort.Tensor, error)) (err error) {
		out, err = run()
		return err
	})
	return out, err
}

// FeedAll is [Session.Feed] of several sessions that take the same inputs. use gets the number of a session and what runs it, first
// that with the given number.
func FeedAll(ctx context.Context, all []*Session, data dataset.Dataset, idx []int, first int,
	use func(k int, run func() ([]ort.Tensor, error)) error) error {
	s := all[0]
	if short := s.FixedBatch() - len(idx); short > 0 {
		idx = slices.Clone(idx)
		for range short {
			idx = append(idx, idx[len(idx)-1])
		}
	}
	size, err := dataset.SizeOf(data)
	if err != nil {
		return err
	}
	buffer := s.spare.take(size, len(idx))
	defer s.spare.giveBack(buffer)
	values, err := dataset.ReadBatch(data, buffer, idx)
	if err != nil {
		return err
	}
	in, err := s.feed(data, idx, len(idx), nil, values)
	for i := range all {
		if err == nil {
			k := (first + i) % len(all)
			err = use(k, func() ([]ort.Tensor, error) { return all[k].Run(ctx, in) })
		}
	}
	return err
}

// feed makes the input tensors of rows examples. values holds one example after the other. idx are the examples, and
// there may be fewer than rows. Lists that were filled up to the longest of all are cut to the longest of these, unless
// idx is nil. If padTo is not nil, it has the length of the lists of each field instead.
func (s *Session) feed(data dataset.Dataset, idx []int, rows int, padTo []int, values dataset.Values) ([]ort.Tensor, error) {
	fields := dataset.Fields(data)
	if fields == nil && len(s.inputs) == 1 {
		t, err := tensor(s.inputs[0], append([]int64{int64(rows)}, data.Shape()...), values)
		return []ort.Tensor{t}, err
	}
	total, err := dataset.SizeOf(data)
	if err != nil {
		return nil, err
	}
	out := make([]ort.Tensor, len(s.inputs))
	for i, to := range s.inputs {
		k := slices.IndexFunc(fields, func(f dataset.Field) bool { return f.Name == to.Name || len(fields) == 1 && len(s.inputs) == 1 })
		if k < 0 {
			return nil, fmt.Errorf("tensor %q: the network takes it, and the examples have nothing of that name", to.Name)
		}
		own := fields[k]
		shape := append([]int64{int64(rows)}, own.Shape...)
		if longest := longest(data, k, idx); longest > 0 {
			shape[1] = int64(longest)
			if padTo != nil {
				shape[1] = int64(padTo[k])
			}
		}
		own.Shape = shape[1:]
		size := own.Size()
		part := size.Make(rows)
		for r := range rows {
			part.Rows(size, r, r+1).Copy(values.Rows(total, r, r+1).Field(fields, k))
		}
		t, err := tensor(to, shape, part)
		if err != nil {
			return nil, err
		}
		t.Name, out[i] = to.Name, t
	}
	return out, nil
}

// tensor returns values as a tensor of the input's type.
func tensor(to ort.ValueInfo, shape []int64, values dataset.Values) (ort.Tensor, error) {
	t, floats := ort.Tensor{Shape: shape}, values.Floats
	switch to.DType {
	case "float32":
		t.F32 = floats
	case "float64":
		t.F64 = make([]float64, len(floats))
		for i, v := range floats {
			t.F64[i] = float64(v)
		}
	case "float16":
		t.F16 = make([]uint16, len(floats))
		for i, v := range floats {
			t.F16[i] = weights.Float16Bits(v)
		}
	case "uint8": // pixels
		t.U8 = make([]uint8, len(floats))
		for i, v := range floats {
			if t.U8[i] = uint8(v); float32(t.U8[i]) != v {
				return t, fmt.Errorf("tensor %q: takes whole numbers up to 255, not %v", to.Name, v)
			}
		}
	default:
		return integers(t, to, values)
	}
	if len(values.Ints) > 0 {
		return t, fmt.Errorf("tensor %q: takes %s, and the examples have whole numbers", to.Name, to.DType)
	}
	return t, nil
}

// integers sets the elements of a tensor of an integer type. Floats must be whole numbers.
func integers(t ort.Tensor, to ort.ValueInfo, values dataset.Values) (ort.Tensor, error) {
	size := ort.RawSize(to.DType)
	if size == 0 && to.DType != "int64" {
		return t, fmt.Errorf("tensor %q: takes %s, want a float type, an integer type or bool", to.Name, to.DType)
	}
	whole, want := slices.Clip(values.Ints), to.DType
	if size == 0 {
		want = "whole numbers"
	}
	for _, v := range values.Floats {
		if w := float64(v); w != math.Trunc(w) || math.Abs(w) >= 1<<63 {
			return t, fmt.Errorf("tensor %q: takes %s, not %v", to.Name, want, v)
		}
		whole = append(whole, int64(v))
	}
	if size == 0 {
		t.I64 = whole
		return t, nil
	}
	t.Type, t.Raw = to.DType, make([]byte, 0, size*len(whole))
	least, most := dataset.Field{Type: to.DType}.Limits()
	for _, v := range whole {
		if v < least || v > most {
			return t, fmt.Errorf("tensor %q: takes %s, not %v", to.Name, to.DType, v)
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(v)) // like all machines that ONNX Runtime is built for
		t.Raw = append(t.Raw, b[:size]...)
	}
	return t, nil
}

// longest returns the length of the longest of the examples in a field whose lists were filled up, and at least 1. It
// returns 0 for other fields.
func longest(data dataset.Dataset, field int, idx []int) int {
	most := 0
	for _, i := range idx {
		if n := dataset.Length(data, field, i); n >= 0 {
			most = max(most, n, 1)
		}
	}
	return most
}

// scores runs the model.
func (m *loaded) scores(ctx context.Context, inputs []ort.Tensor) (ort.Tensor, error) {
	out, err := m.Run(ctx, inputs)
	if err != nil {
		return ort.Tensor{}, err
	}
	return m.together(out, int(inputs[0].Shape[0]))
}

// Run is [ort.Session.Run], with states that are zeros.
func (s *Session) Run(ctx context.Context, inputs []ort.Tensor) ([]ort.Tensor, error) {
	out, _, err := s.RunFrom(ctx, inputs, nil)
	return out, err
}

// run is [ort.Session.Run]. It counts the examples and calls Slow. All passes go through it.
func (s *Session) run(ctx context.Context, examples int, inputs []ort.Tensor) ([]ort.Tensor, error) {
	tally.Add(ctx, examples)
	if s.slow != nil {
		done := make(chan struct{})
		defer close(done)
		defer time.AfterFunc(slowAfter, func() {
			for inside := slowAfter; ; inside *= 2 {
				s.slow(inside, s.loops)
				select {
				case <-done:
					return
				case <-time.After(inside):
				}
			}
		}).Stop()
	}
	return s.Session.Run(ctx, inputs)
}

// Float32s returns the elements of a tensor of any float type.
func Float32s(t ort.Tensor) ([]float32, error) {
	switch {
	case t.F32 != nil:
		return t.F32, nil
	case t.F64 != nil:
		out := make([]float32, len(t.F64))
		for i, v := range t.F64 {
			out[i] = float32(v)
		}
		return out, nil
	case t.F16 != nil:
		out := make([]float32, len(t.F16))
		for i, v := range t.F16 {
			out[i] = weights.Float16FromBits(v)
		}
		return out, nil
	}
	return nil, fmt.Errorf("tensor %q: %s, want a float type", t.Name, t.DType())
}
