package infer

import (
	"cmp"
	"fmt"
	"runtime"
	"time"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
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
