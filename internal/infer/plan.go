package infer

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// plan says how a Scorer works. Except for batch sizes, nothing in it changes the result.
type plan struct {
	workers  int  // examples that are read at the same time
	runs     int  // runs at the same time
	chunk    int  // examples, a multiple of every batch
	resident bool // sessions are opened once
	ahead    int  // groups that are open at the same time, if sessions are opened for each chunk
	// keepsInputs says that a device keeps the inputs of a chunk for all groups.
	keepsInputs bool
	groups      []planned
}

// planned is a group to be opened.
type planned struct {
	Part
	first, batch int
}

// cost is the cost of a session; zero if nothing was run yet.
type cost struct {
	sessionBytes int64         // memory of a session
	runBytes     int64         // memory of each run at the same time
	open         time.Duration // time that a model and its session take to open
	run          time.Duration // time that one thread takes for one example
}

// deviceRuns is the number of batches on a device. One computes, and the next is copied.
const deviceRuns = 2

const (
	// maxChunk is the largest number of examples in a chunk. A run that is killed loses the current chunk.
	maxChunk = 4096
	// chunkTime is how long a chunk should take if sessions stay open.
	chunkTime = 10 * time.Second
	// openShare is the share of the time that should go into opening sessions if they are opened for each chunk. If it is
	// more than mostOpenShare, they stay open.
	openShare, mostOpenShare = 0.02, 0.05
)

// newPlan divides the engine's memory: a quarter for examples, at most half for runs, the rest for sessions.
//
// Sessions that wait for their turn would be most of the memory of a command, so they stay open only if they are small, or if
// opening them again for each chunk takes long. Otherwise a session is closed before the next is opened. Several threads would
// wait meanwhile, so for them the next is opened while one runs.
func (s *Scorer) newPlan(workers int, c cost) (plan, error) {
	p := plan{workers: workers, runs: workers}
	if s.stateful != nil {
		return s.statefulPlan(workers, c)
	}
	all := s.engine.Memory().Networks()
	if c.runBytes > 0 {
		p.workers = int(max(1, min(int64(workers), all/2/c.runBytes)))
	}
	p.runs = p.workers
	device := s.engine.how.Provider.Feeds() && s.engine.how.Provider.GPU()
	if device {
		p.runs = min(p.workers, deviceRuns)
	}
	parts := s.models.Parts()
	batches, unit, err := s.engine.batches(parts, s.size, s.preset())
	if err != nil {
		return p, err
	}
	models := 0
	for _, part := range parts {
		models += part.Count
	}

	examples, group := maxChunk, models
	room := all - all/4 - int64(p.workers)*c.runBytes
	if free, ok := s.engine.runtime.DeviceMemory(s.engine.how.Provider); device && ok {
		room = free / 2 // the rest is for runs
	}
	held := min(room, s.engine.waiting())
	p.resident = models == 1 || int64(models)*c.sessionBytes <= held
	const batchesEach = 8 // the least number: with fewer, threads wait for each other at the end of a chunk
	within := func(n int) int { return min(max(n, batchesEach*p.workers*unit), maxChunk, int(all/4/s.exampleBytes())) }
	if examples = within(examples); c.run > 0 && !p.resident {
		examples = within(int(float64(c.open) / openShare / float64(c.run)))
		again := examples < s.data.Len() && float64(c.open) > mostOpenShare*float64(c.run)*float64(examples)
		p.resident = again && int64(models)*c.sessionBytes <= room
	}
	if c.run > 0 && p.resident {
		examples = within(int(chunkTime / c.run * time.Duration(p.workers) / time.Duration(models)))
	}
	if !p.resident {
		p.ahead = min(p.workers, 2)
		group = int(max(1, held/int64(p.ahead)/c.sessionBytes))
	}
	chunks := max(1, ceil(s.data.Len(), max(1, examples))) // all chunks have about the same size
	p.chunk = ceil(ceil(s.data.Len(), chunks), unit) * unit
	p.keepsInputs = s.engine.how.Provider.Feeds() && int64(p.chunk)*s.size.Bytes() <= room/keepsShare
	p.divide(parts, batches, group)
	return p, nil
}

// waiting returns the most bytes of sessions that stay open while others run.
func (e *Engine) waiting() int64 {
	if e.how.Provider.Feeds() {
		return math.MaxInt64 // members share a session, and a device has memory of its own
	}
	return e.how.Memory.Waiting()
}

// divide divides the models into groups of at most a size. The first groups are smaller, and each is as large as all before
// it: the first models run while the next are opened.
func (p *plan) divide(parts []Part, batches []int, size int) {
	first := 0
	for i, part := range parts {
		for left := part.Count; left > 0; left -= part.Count {
			part.Count = min(size, left, max(1, first))
			p.groups = append(p.groups, planned{part, first, batches[i]})
			first += part.Count
		}
	}
}

// largest returns the largest number of sessions that are opened together.
func (p plan) largest() (n int) {
	for _, g := range p.groups {
		n = max(n, g.Count)
	}
	return n
}

// batchOf returns the batch size of a part. A batch of windows has no more than the rows of one window of the whole text.
func (s *Scorer) batchOf(p Part) (int, error) {
	n, err := s.engine.scoreBatch(p.Input, s.size, s.preset())
	if s.stateful != nil && p.Input.Shape[0] < 0 {
		n = min(n, s.stateful.Source().Rows())
		if s.alone {
			n = 1
		}
	}
	return n, err
}

// batches returns the batch size of each part, and the smallest number of examples that is a multiple of all of them.
func (e *Engine) batches(parts []Part, size dataset.Size, preset int) (each []int, unit int, err error) {
	unit = 1
	for _, part := range parts {
		n, err := e.scoreBatch(part.Input, size, preset)
		if err != nil {
			return nil, 0, err
		}
		each, unit = append(each, n), lcm(unit, n)
	}
	return each, unit, nil
}

// BatchUnit returns the smallest number of examples that is a multiple of the batches of all models. It depends on
// the networks, on the data's shape and on the requested size, but not on the machine. So jobs on several machines
// can divide the examples by it.
func (e *Engine) BatchUnit(m MemberSource, data dataset.Dataset) (int, error) {
	size, err := dataset.SizeOf(data)
	if err != nil {
		return 0, err
	}
	_, unit, err := e.batches(m.Parts(), size, DefaultBatchSize)
	return unit, err
}

// String describes the plan for a user.
func (p plan) String() string {
	how := "all opened once"
	if !p.resident {
		how = fmt.Sprintf("opened for each chunk, %d at a time", p.largest())
	}
	return fmt.Sprintf("%d threads; batches of %d, chunks of %d; sessions %s", p.workers, p.groups[0].batch, p.chunk, how)
}

// exampleBytes returns the memory for an example in a chunk and for its result. There are two of each.
func (s *Scorer) exampleBytes() int64 {
	example := s.size.Bytes()
	if _, ok := s.data.(dataset.Bytes); ok {
		example = int64(s.size.Floats)
	}
	return 2 * (example + s.resultBytes())
}

func ceil(a, b int) int { return (a + b - 1) / b }

// lcm returns the least common multiple.
func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// mostElements bounds the elements of an example, and its scores. So the sum of several does not overflow.
const mostElements = 1 << 40

// open returns a shape with 1 for the dimensions that it leaves open.
func open(shape []int64) []int64 {
	out := make([]int64, len(shape))
	for i, d := range shape {
		out[i] = max(1, d)
	}
	return out
}

func tooLarge(m *onnxio.Model, what string, v onnxio.Value) error {
	return &onnxio.Error{
		Path:   m.Path,
		Tensor: v.Name,
		What:   fmt.Sprintf("%s of shape %s: too large", what, onnxio.FormatShape(v.Shape, v.Dims)),
		Hint:   free,
	}
}

// free helps with a graph whose sizes are wrong.
const free = "if these sizes are not meant, export the network with free dimensions: dynamic_axes, or dynamic_shapes"

// Fits fails if sizes that the graph fixes take more memory than there may be: one batch of examples, its states, or its
// scores. Fits must be called before anything of these sizes is made, because a graph may name any sizes.
func (g *Graph) Fits(b *memory.Budget) error {
	run := cmp.Or(b.Limit(), b.Networks()) // of ONNX Runtime, which makes the scores
	given := b.Batch()
	batch := int64(1)
	for _, v := range g.Inputs {
		batch = max(batch, v.Shape[0])
	}
	check := func(what string, v onnxio.Value, shape []int64, size, most int64) error {
		if _, err := weights.Within(shape, most/size); err == nil {
			return nil
		}
		return &onnxio.Error{Path: g.path, Tensor: v.Name,
			What: fmt.Sprintf("%s of shape %s: one batch takes more than the %d MiB that it may have", what,
				onnxio.FormatShape(v.Shape, v.Dims), most>>20),
			Hint: setting.Memory.With("SIZE") + " allows more\n" + free}
	}
	const float = 4      // bytes
	if g.states != nil { // they may be why the batch is fixed
		for i, v := range g.states.values {
			if err := check("a state", v, open(g.states.shape(i, int(batch), 1)), v.ElemType.DType().Size(), given); err != nil {
				return err
			}
		}
	}
	for _, v := range g.Inputs {
		size := int64(float)
		if (dataset.Field{Type: ort.DType(v.ElemType)}).Ints() {
			size = 8
		}
		if err := check("an input", v, append([]int64{batch}, open(v.Shape[1:])...), size, given); err != nil {
			return err
		}
	}
	return check("scores", g.output, []int64{batch, max(1, int64(g.layout.Count)), max(1, int64(g.layout.Positions))}, float, run)
}
