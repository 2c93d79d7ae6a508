package infer

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
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

// DefaultBatchSize is the batch of the reference's experiments. Batch-norm statistics depend slightly on it.
const DefaultBatchSize = 128

// Engine runs networks. It never changes: [NewEngine] makes it, and an engine with other options is another engine.
// What differs between calls stands in a [Run].
type Engine struct {
	runtime *ort.Runtime
	how     EngineOptions
	most    int // bounds the default batch; 0 does not: see Spread
}

// EngineOptions say how an Engine computes. The zero value is float32 on the processor, with all its cores.
type EngineOptions struct {
	Provider ort.Provider // what computes, and with what precision
	// Passes is the provider for batch-norm passes. fixtures/precision gives the cost of bf16 there. In float32 ONNX
	// Runtime's own kernels are the fastest.
	Passes    ort.Provider
	BatchSize int // 0 means DefaultBatchSize, or the network's fixed size
	// Threads is the number of batches in flight; 0 means one per core. Each batch runs on its own single thread. That
	// is as fast as all threads on one batch, and keeps the cores busy between batches too.
	Threads int
	// Memory divides the memory of the command; nil is a budget without a limit. The limit of ONNX Runtime itself is
	// set by [ort.Runtime.Limit].
	Memory *memory.Budget
	// Rounding is the measured change by Provider's precision; nil if nothing was measured.
	Rounding fmt.Stringer
	// Placed, if not nil, is called once for each graph, with the nodes that a provider other than the CPU's does not
	// take. It is an error if the provider takes no node. Placed is called from several goroutines.
	Placed func(model string, p ort.Placement)
	// Left counts the nodes that Placed was called with, by operator. It may be nil.
	Left map[string]int
	// Slow, if not nil, is called when a batch has been inside a network for a minute, and again whenever that time
	// has doubled. The argument loops says that the network has a Loop, which may not end. Slow is called from several
	// goroutines.
	Slow func(inside time.Duration, loops bool)
}

// NewEngine returns an engine that computes with a runtime. Without a runtime it can run nothing.
func NewEngine(rt *ort.Runtime, how EngineOptions) *Engine { return &Engine{runtime: rt, how: how} }

// With returns an engine of other providers, for predictions and for batch-norm passes.
func (e *Engine) With(predictions, passes ort.Provider) *Engine {
	how := e.how
	how.Provider, how.Passes = predictions, passes
	return NewEngine(e.runtime, how)
}

// Spread returns an engine whose default batches are so small that so many examples keep all threads busy.
func (e *Engine) Spread(examples int) *Engine {
	spread := NewEngine(e.runtime, e.how)
	spread.most = ceil(examples, e.Threads())
	return spread
}

// Runtime returns the library that computes.
func (e *Engine) Runtime() *ort.Runtime { return e.runtime }

// Options returns the options that the engine was made with.
func (e *Engine) Options() EngineOptions { return e.how }

// Memory returns the budget of the command.
func (e *Engine) Memory() *memory.Budget { return e.how.Memory }

// Provider returns what computes predictions, and with what precision.
func (e *Engine) Provider() ort.Provider { return e.how.Provider }

// About returns the library's version and, if it is not the default, the provider and the measured
// effect of its precision.
func (e *Engine) About() string {
	about := e.runtime.Version()
	if p := e.how.Provider; p.String() != (ort.Provider{}).String() {
		about += ", " + p.String()
	}
	if e.how.Rounding != nil {
		about += "; " + e.how.Rounding.String()
	}
	return about
}

// Threads returns the number of batches in flight.
func (e *Engine) Threads() int {
	if e.how.Threads > 0 {
		return e.how.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// Width returns how many of the batches of a pass over training data run at the same time.
func (e *Engine) Width(data dataset.Dataset, batches [][]int) (int, error) {
	size, err := dataset.SizeOf(data)
	largest := 0
	for _, rows := range batches {
		largest = max(largest, len(rows))
	}
	return e.how.Memory.Batches(e.Threads(), int64(largest)*size.Bytes()), err
}

// TrainingBatch returns the batch size of passes over training data. It is the size that the user requested, unless
// the network takes one size only.
func (e *Engine) TrainingBatch(s *Session) (int, error) { return s.TrainingBatch(e.how.BatchSize) }

// TrainingBatch is [Engine.TrainingBatch] for another requested size; 0 stands for the default.
func (s *Session) TrainingBatch(asked int) (int, error) {
	return batchSize(s.inputs[0].Name, s.FixedBatch(), asked, DefaultBatchSize)
}

// scoreBatchBytes bounds the default batch of large examples. More than 16 images of 224×224 made no network faster on a
// processor, and took more memory. An H100 ran a ResNet-18 on 64 of them at 0.85 times the speed of 256 in float32.
const scoreBatchBytes, deviceBatchBytes = 10 << 20, 80 << 20

// scoreBatch returns the batch size for predictions, for examples of the given size. It is the network's own, the
// requested size, or a power of two up to preset.
func (e *Engine) scoreBatch(input onnxio.Value, size dataset.Size, preset int) (int, error) {
	if e.most > 0 {
		preset = min(preset, max(1, e.most))
	}
	most := int64(scoreBatchBytes)
	if e.how.Provider.Feeds() && e.how.Provider.GPU() {
		most = deviceBatchBytes
	}
	for preset > 1 && 4*int64(size.Floats+size.Ints)*int64(preset) > most {
		preset /= 2
	}
	return e.Batch(input.Name, int(max(input.Shape[0], 0)), preset)
}

// Batch returns the batch size of an input whose size is fixed, or 0 for any size.
func (e *Engine) Batch(input string, fixed, preset int) (int, error) {
	return batchSize(input, fixed, e.how.BatchSize, preset)
}

// batchSize returns the fixed size, or the requested one, or else preset. 0 stands for a size that is not given.
func batchSize(input string, fixed, asked, preset int) (int, error) {
	if fixed != 0 && asked != 0 && asked != fixed {
		return 0, fmt.Errorf("tensor %q: takes batches of %d only, not of %d: leave the batch size to the network, or export with a "+
			"dynamic batch dimension", input, fixed, asked)
	}
	return cmp.Or(fixed, asked, preset), nil
}

// Session is a model ready to run.
type Session struct {
	*ort.Session
	inputs []ort.ValueInfo
	batch  int     // examples of most runs, as the session was opened for; 0 if it was opened for any number
	states *states // nil without
	most   int64   // bytes that a state may take
	slow   func(inside time.Duration, loops bool)
	loops  bool

	mu    sync.Mutex
	spare []dataset.Values // buffers of [Session.Feed]: a new one for each batch would be most of the garbage
}

// buffer returns memory for n examples.
func (s *Session) buffer(size dataset.Size, n int) dataset.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.spare) - 1; last >= 0 {
		b := s.spare[last]
		if s.spare = s.spare[:last]; b.Holds(size, n) {
			return b.Rows(size, 0, n)
		}
	}
	return size.Make(n)
}

func (s *Session) giveBack(b dataset.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, b)
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

func (e *Engine) open(ctx context.Context, g *Graph, model onnxio.Filled, opts ort.Options) (*Session, error) {
	if g != nil && g.half != "" && !e.how.Provider.GPU() {
		return nil, &onnxio.Error{
			What: "the operator " + g.half + " in float16: ONNX Runtime has none for the processor, and would crash",
			Hint: "export the network in float32",
		}
	}
	if g != nil && g.threes != "" && e.how.Provider.ReadsThrees() {
		return nil, &onnxio.Error{
			Tensor: g.threes,
			What:   "the convolution has a multiple of 3 input channels and no multiple of 4: ONNX Runtime computes it wrong on WebGPU",
			Hint:   setting.Provider.With(ort.CPU) + " and " + ort.CUDA + " compute it right",
		}
	}
	if g != nil {
		if err := g.Fits(e.how.Memory); err != nil {
			return nil, err
		}
	}
	s, err := e.runtime.NewFilledSession(ctx, model, opts)
	if err != nil {
		return nil, err
	}
	sig, err := model.Template.Signature()
	session := &Session{
		Session: s,
		inputs:  s.Inputs(),
		batch:   opts.Batch,
		most:    max(1<<20, e.how.Memory.Networks()/2),
		slow:    e.how.Slow,
		loops:   sig.Loops,
	}
	session.hide(g)
	return session, err
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

// Place calls Placed for the model that s was opened for, unless seen is already set. It runs the model on zeros
// instead of the data.
func (e *Engine) Place(ctx context.Context, seen *atomic.Bool, name string, g *Graph, s *Session, model onnxio.Filled,
	data dataset.Dataset, outputs ...string) error {
	if !e.how.Provider.Partial() || seen.Swap(true) {
		return nil
	}
	const few = 2 // a batch norm of one example is an error
	rows := cmp.Or(s.FixedBatch(), few)
	p, err := e.place(ctx, g, s, model, data, rows, outputs)
	if divisible(err, rows, s) {
		rows = 1
		p, err = e.place(ctx, g, s, model, data, rows, outputs)
		divisible(err, rows, s)
	}
	if err != nil {
		seen.Store(false)
	} else if e.how.Placed != nil {
		e.how.Placed(name, p)
	}
	return err
}

// place runs the model on a batch of zeros.
func (e *Engine) place(ctx context.Context, g *Graph, s *Session, model onnxio.Filled, data dataset.Dataset, rows int,
	outputs []string) (ort.Placement, error) {
	size, err := dataset.SizeOf(data)
	if err != nil {
		return ort.Placement{}, err
	}
	in, err := s.feed(data, nil, rows, nil, size.Make(rows))
	if err == nil {
		in, err = s.withStates(in, nil)
	}
	if err != nil {
		return ort.Placement{}, err
	}
	tally.Add(tally.For(ctx, tally.Plan), rows)
	return e.runtime.Place(ctx, model, e.options(g, min(s.batch, rows), outputs), in)
}

// slowAfter is the time after which a run counts as slow.
var slowAfter = time.Minute

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
func (s *Session) Feed(ctx context.Context, data dataset.Dataset, idx []int) ([]ort.Tensor, error) {
	if short := s.FixedBatch() - len(idx); short > 0 {
		idx = slices.Clone(idx)
		for range short {
			idx = append(idx, idx[len(idx)-1])
		}
	}
	size, err := dataset.SizeOf(data)
	if err != nil {
		return nil, err
	}
	buffer := s.buffer(size, len(idx))
	defer s.giveBack(buffer)
	values, err := dataset.ReadBatch(data, buffer, idx)
	if err != nil {
		return nil, err
	}
	in, err := s.feed(data, idx, len(idx), nil, values)
	if err != nil {
		return nil, err
	}
	return s.Run(ctx, in)
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
