package infer

import (
	"cmp"
	"context"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Observer finds the least and the largest elements of values inside a network.
type Observer struct {
	Values   []string
	network  *Network
	template *onnxio.Template
	outputs  []string
}

// NewObserver observes values that a choice picks from the network's graph.
func (n *Network) NewObserver(values func(*onnxio.Model) []string) (*Observer, error) {
	t, err := onnxio.NewRuntimeTemplate(n.skeleton, n.Posterior.Layout)
	if err != nil {
		return nil, err
	}
	m, err := t.Model(n.Posterior.Path, n.Posterior.Layout)
	if err != nil {
		return nil, err
	}
	o := &Observer{network: n, Values: values(m)}
	o.template, o.outputs, err = t.WithRanges(n.Posterior.Layout, o.Values)
	return o, err
}

// Observe runs a member on examples. The results have an element for each of the values.
func (o *Observer) Observe(ctx context.Context, e *Engine, parameters, statistics weights.Vector, data dataset.Dataset) (
	low, high []float32, err error) {
	if len(o.Values) == 0 {
		return nil, nil, nil
	}
	filled, err := o.template.Fill(o.network.Posterior.Layout, parameters, statistics)
	if err != nil {
		return nil, nil, err
	}
	s, err := e.Open(ctx, o.network.Graph, filled, o.outputs...)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	batch := cmp.Or(s.FixedBatch(), e.how.BatchSize, DefaultBatchSize)
	for from := 0; from < data.Len(); from += batch {
		rows := make([]int, min(batch, data.Len()-from))
		for i := range rows {
			rows[i] = from + i
		}
		out, err := s.Feed(ctx, data, rows)
		if err != nil {
			return nil, nil, err
		}
		if low == nil {
			low, high = make([]float32, len(o.Values)), make([]float32, len(o.Values))
			ends(out, func(k int, a, b float32) { low[k], high[k] = a, b })
		}
		ends(out, func(k int, a, b float32) { low[k], high[k] = min(low[k], a), max(high[k], b) })
	}
	return low, high, nil
}

// ends calls use with the two ends of each value.
func ends(out []ort.Tensor, use func(k int, low, high float32)) {
	for k := 0; k < len(out); k += 2 {
		use(k/2, out[k].F32[0], out[k+1].F32[0])
	}
}
