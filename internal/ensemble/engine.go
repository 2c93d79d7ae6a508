package ensemble

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// DefaultBatchSize is the batch of the reference's experiments; batch-norm
// statistics depend on it, if little.
const DefaultBatchSize = 128

// Engine runs networks.
type Engine struct {
	Runtime   *ort.Runtime
	BatchSize int // 0 means DefaultBatchSize, or what the network fixes
	// Workers is the number of batches in flight; 0 means one per core. Each
	// runs on one thread of its own, which is as fast as all threads on one
	// batch and keeps the cores busy between batches too.
	Workers int
	// Progress, if not nil, is told of every image that went through a network.
	// It is called from several goroutines.
	Progress func(images int)
}

// Predict runs the model over the data and adds its probabilities to sums, times
// a weight. The name says in errors which member or checkpoint it is.
func (e *Engine) Predict(ctx context.Context, name string, model onnxio.Filled, data dataset.Dataset, weight float64, sums *Sums) error {
	m, err := model.Template.Model(name, model.Layout)
	if err != nil {
		return err
	}
	outputsProbabilities := endsInSoftmax(m)
	s, err := e.open(ctx, model, []string{m.Graph.Outputs[0].Name})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer s.Close()
	size, err := e.batchSize(s)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var first sync.Once
	predict := func(ctx context.Context, batch []int) error {
		out, err := s.run(ctx, data, batch)
		if err != nil {
			return err
		}
		scores, err := float32s(out[0])
		if err != nil {
			return err
		}
		shape := out[0].Shape
		if len(shape) != 2 || int(shape[0]) < len(batch) || shape[1] < 2 {
			return fmt.Errorf("tensor %q: output of shape %v, want [%d classes] with at least 2 classes", m.Graph.Outputs[0].Name, shape, len(batch))
		}
		classes := int(shape[1])
		first.Do(func() { sums.init(name, data.Len(), classes) })
		if classes != sums.Classes {
			return fmt.Errorf("tensor %q: %d classes, want %d as in %s", m.Graph.Outputs[0].Name, classes, sums.Classes, sums.first)
		}
		for j, i := range batch {
			if err := sums.add(i, scores[j*classes:][:classes], outputsProbabilities, weight); err != nil {
				return fmt.Errorf("%s: %w", data.Name(i), err)
			}
		}
		e.report(len(batch))
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(e.workers())
	for batch := range (dataset.Order{}).Batches(data.Len(), size) {
		g.Go(func() error { return predict(ctx, batch) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	sums.Members++
	sums.Weight += weight
	return nil
}

func (e *Engine) report(images int) {
	if e.Progress != nil {
		e.Progress(images)
	}
}

func (e *Engine) workers() int {
	if e.Workers > 0 {
		return e.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// batchSize is what was asked for, unless the network takes one size only.
func (e *Engine) batchSize(s *session) (int, error) {
	fixed := s.fixedBatch()
	switch {
	case fixed == 0 && e.BatchSize == 0:
		return DefaultBatchSize, nil
	case fixed == 0:
		return e.BatchSize, nil
	case e.BatchSize == 0 || e.BatchSize == fixed:
		return fixed, nil
	}
	return 0, fmt.Errorf("tensor %q: takes batches of %d only, not of %d: leave the batch size to the network, or export with a dynamic batch dimension", s.input.Name, fixed, e.BatchSize)
}

// session is an ORT session with one input.
type session struct {
	*ort.Session
	input ort.ValueInfo
}

func (e *Engine) open(ctx context.Context, model onnxio.Filled, outputs []string) (*session, error) {
	s, err := e.Runtime.NewFilledSession(ctx, model, ort.Options{Threads: 1, Outputs: outputs})
	if err != nil {
		return nil, err
	}
	return &session{Session: s, input: s.Inputs()[0]}, nil
}

// fixedBatch returns the only batch size that the network takes, or 0.
func (s *session) fixedBatch() int {
	if len(s.input.Shape) == 0 {
		return 0
	}
	return int(max(s.input.Shape[0], 0))
}

// run feeds the examples idx. Where the network has a fixed batch, a shorter
// one is filled up with copies of its last example; their outputs are the last
// rows.
func (s *session) run(ctx context.Context, data dataset.Dataset, idx []int) ([]ort.Tensor, error) {
	if short := s.fixedBatch() - len(idx); short > 0 {
		idx = slices.Clone(idx)
		for range short {
			idx = append(idx, idx[len(idx)-1])
		}
	}
	shape := append([]int64{int64(len(idx))}, data.Shape()...)
	elements, err := weights.Elements(shape)
	if err != nil {
		return nil, err
	}
	values, err := dataset.ReadBatch(data, make([]float32, elements), idx)
	if err != nil {
		return nil, err
	}
	in, err := s.feed(shape, values)
	if err != nil {
		return nil, err
	}
	return s.Run(ctx, []ort.Tensor{in})
}

// feed makes an input of the type that the network takes.
func (s *session) feed(shape []int64, values []float32) (ort.Tensor, error) {
	t := ort.Tensor{Shape: shape}
	switch s.input.DType {
	case "float32":
		t.F32 = values
	case "float64":
		t.F64 = make([]float64, len(values))
		for i, v := range values {
			t.F64[i] = float64(v)
		}
	case "float16":
		t.F16 = make([]uint16, len(values))
		for i, v := range values {
			t.F16[i] = weights.Float16Bits(v)
		}
	case "int64": // tokens
		t.I64 = make([]int64, len(values))
		for i, v := range values {
			if t.I64[i] = int64(v); float32(t.I64[i]) != v {
				return t, fmt.Errorf("tensor %q: takes whole numbers, not %v", s.input.Name, v)
			}
		}
	default:
		return t, fmt.Errorf("tensor %q: takes %s, want a float type or int64", s.input.Name, s.input.DType)
	}
	return t, nil
}

func float32s(t ort.Tensor) ([]float32, error) {
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

// endsInSoftmax reports whether the model's first output is a Softmax's.
func endsInSoftmax(m *onnxio.Model) bool {
	name := m.Graph.Outputs[0].Name
	for _, n := range m.Graph.Nodes {
		if slices.Contains(n.Outputs, name) {
			return n.OpType == "Softmax"
		}
	}
	return false
}

// Sums is what a Bayesian model average needs of its members.
type Sums struct {
	Classes int
	Members int
	Weight  float64   // Σ w over members
	Prob    []float64 // Σ w·p over members, n×Classes
	Entropy []float64 // Σ w·H(p) over members, n

	first string // the name of the first, for errors
}

func (s *Sums) init(first string, n, classes int) {
	if s.Prob == nil {
		s.first, s.Classes, s.Prob, s.Entropy = first, classes, make([]float64, n*classes), make([]float64, n)
	}
}

// add adds one member's scores for example i, with weight w.
func (s *Sums) add(i int, scores []float32, areProbabilities bool, w float64) error {
	p := make([]float64, len(scores))
	total := 0.0
	for c, v := range scores {
		p[c] = float64(v)
		total += p[c]
	}
	switch {
	case math.IsNaN(total) || math.IsInf(total, 0):
		return fmt.Errorf("the network's output is not finite: %v", scores)
	case !areProbabilities:
		calibrate.Softmax(p, p, len(p), 1)
	case math.Abs(total-1) > 1e-3 || slices.Min(p) < 0:
		return fmt.Errorf("the network ends in a softmax, but its outputs are no probabilities: %v", scores)
	default: // rounded to float32 by the network
		for c := range p {
			p[c] /= total
		}
	}
	row := s.Prob[i*s.Classes:][:s.Classes]
	for c, v := range p {
		row[c] += w * v
	}
	s.Entropy[i] += w * calibrate.Entropy(p)
	return nil
}

// merge adds the members of o.
func (s *Sums) merge(o *Sums) {
	s.init(o.first, len(o.Entropy), o.Classes)
	for i, v := range o.Prob {
		s.Prob[i] += v
	}
	for i, v := range o.Entropy {
		s.Entropy[i] += v
	}
	s.Members += o.Members
	s.Weight += o.Weight
}

// Mean returns the average probabilities Σ w·p / Σ w, n×Classes.
func (s *Sums) Mean() []float64 { return divided(s.Prob, s.Weight) }

// ExpectedEntropy returns the average of the members' entropies Σ w·H(p) / Σ w
// for each example, in nats.
func (s *Sums) ExpectedEntropy() []float64 { return divided(s.Entropy, s.Weight) }

func divided(sum []float64, weight float64) []float64 {
	out := make([]float64, len(sum))
	for i, v := range sum {
		out[i] = v / weight
	}
	return out
}
