package baseline

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// lastLayer is a network that outputs the input features of its last layer.
type lastLayer struct {
	*infer.Session
	graph *infer.Graph
	head  *onnxio.Head
	task  task.Curved
	mean  *mat.Dense // the layer's weights, scores×columns; the last column is the bias
	name  string     // name of the network, for errors
}

// openLastLayer opens the SWA network and its last layer. It returns unfit unless the layer is linear and its weights
// are in the posterior.
func (w *work) openLastLayer(ctx context.Context, swa infer.Model) (*lastLayer, error) {
	n := w.Runs[0].Network
	head, err := n.Skeleton().Head(n.Output())
	if f := n.Form(); err == nil && f != n.Proven() && f != task.Logits && f != "" {
		err = fmt.Errorf("its scores are %s, but it has no activation after the last linear layer", f)
	}
	if err != nil {
		return nil, &unfit{err: err}
	}
	l := &lastLayer{graph: n.Graph, head: head, name: n.Posterior.Path + ": SWA"}
	if l.mean, err = headWeights(n.Posterior.Layout, head, swa.Filled.Parameters); err != nil {
		return nil, err
	}
	scores, _ := l.mean.Dims()
	t, err := n.Task(infer.Layout{Count: scores, Positions: 1})
	if err != nil {
		return nil, err
	}
	var ok bool
	if l.task, ok = t.(task.Curved); !ok {
		return nil, &unfit{err: fmt.Errorf("the Laplace approximation is not for the task %s", t.About().Name), plain: true}
	}
	template, err := onnxio.HeadTemplate(n.Skeleton(), head, n.Posterior.Layout)
	if err != nil {
		return nil, err
	}
	m, err := n.Other(template, "SWA", swa.Filled.Parameters, swa.Filled.Statistics)
	if err != nil {
		return nil, err
	}
	l.Session, err = w.run.Open(ctx, n.Graph, m.Filled, head.Features, n.Output())
	return l, err
}

// headWeights returns the layer's weights and bias as one matrix.
func headWeights(l *weights.Layout, h *onnxio.Head, parameters weights.Vector) (*mat.Dense, error) {
	read := func(name string) ([]float64, error) {
		t, ok := l.Find(name)
		if !ok || t.Role != weights.Parameter || t.Tied != "" {
			return nil, &unfit{err: fmt.Errorf("tensor %q of its last layer is not a separate parameter of the posterior", name)}
		}
		values := make([]float32, t.Len())
		err := parameters.ReadAt(values, t.Offset)
		out := make([]float64, len(values))
		for i, v := range values {
			out[i] = float64(v)
		}
		return out, err
	}
	scores, width := int(h.Scores), int(h.Width)
	values, err := read(h.Weight)
	if err != nil {
		return nil, err
	}
	columns := width
	if h.Bias != "" {
		columns++
	}
	m := mat.NewDense(scores, columns, nil)
	for c := range scores {
		for j := range width {
			at := j*scores + c
			if h.ScoresFirst {
				at = c*width + j
			}
			m.Set(c, j, float64(h.Alpha)*values[at])
		}
	}
	if h.Bias == "" {
		return m, nil
	}
	if values, err = read(h.Bias); err != nil {
		return nil, err
	}
	for c, v := range values {
		m.Set(c, width, float64(h.Beta)*v)
	}
	return m, nil
}

// eachBatch runs the network on the given batches. It calls f in order with the features of each batch, a matrix of
// examples × columns.
func (w *work) eachBatch(ctx context.Context, l *lastLayer, data dataset.Dataset, batches [][]int,
	f func(k int, features *mat.Dense) error) error {
	width, err := w.run.Width(data, batches)
	if err != nil {
		return err
	}
	for first := 0; first < len(batches); first += width {
		found := make([]*mat.Dense, min(width, len(batches)-first))
		g, ctx := errgroup.WithContext(ctx)
		for i := range found {
			g.Go(weights.Guarded(func() error {
				idx := batches[first+i]
				out, err := l.Feed(ctx, data, idx)
				if err != nil {
					return fmt.Errorf("%s: %w", l.name, err)
				}
				w.run.Report(len(idx))
				if found[i], err = l.rows(out[0], len(idx)); err == nil && first+i == 0 {
					err = l.check(found[i], out[1])
				}
				return err
			}))
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for i, x := range found {
			if err := f(first+i, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows returns the features of n examples, with a column of ones for the bias.
func (l *lastLayer) rows(out ort.Tensor, n int) (*mat.Dense, error) {
	values, err := infer.Float32s(out)
	if err != nil {
		return nil, err
	}
	width := int(l.head.Width)
	if len(out.Shape) != 2 || out.Shape[0] < int64(n) || out.Shape[1] != int64(width) {
		return nil, &unfit{err: fmt.Errorf("the features of its last layer have the shape %v for %d examples, want [%d %d]",
			out.Shape, n, n, width)}
	}
	_, columns := l.mean.Dims()
	x := mat.NewDense(n, columns, nil)
	for i := range n {
		row := x.RawRowView(i)
		for j, v := range values[i*width:][:width] {
			if v-v != 0 {
				return nil, fmt.Errorf("tensor %q: a value is not finite", l.head.Features)
			}
			row[j] = float64(v)
		}
		if columns > width {
			row[width] = 1
		}
	}
	return x, nil
}

// headTolerance bounds the difference between probabilities from the features and the network's, which have float32
// precision or less.
const headTolerance = 1e-2

// check compares the probabilities from the features with the network's. They differ if the network has other nodes
// after the last layer.
func (l *lastLayer) check(features *mat.Dense, out ort.Tensor) error {
	n, _ := features.Dims()
	layout, scores, err := l.graph.Scores(out, max(n, l.FixedBatch()))
	if err != nil {
		return err
	}
	var logits mat.Dense
	logits.Mul(features, l.mean.T())
	if _, c := logits.Dims(); c != layout.Size() {
		return &unfit{err: fmt.Errorf("its last layer has %d scores, but the network has %d", c, layout.Size())}
	}
	ours, theirs := make([]float64, l.task.About().Width), make([]float64, l.task.About().Width)
	for i := range n {
		l.task.Link(ours, logits.RawRowView(i))
		if _, err := l.task.Outcome(theirs, scores[i*layout.Size():][:layout.Size()]); err != nil {
			return err
		}
		for c := range ours {
			if math.Abs(ours[c]-theirs[c]) > headTolerance {
				return &unfit{err: fmt.Errorf("a node after its last layer changes the output: the probability of class %d is %.3g, and "+
					"%.3g without the node", c, theirs[c], ours[c])}
			}
		}
	}
	return nil
}
