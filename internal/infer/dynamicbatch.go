package infer

import (
	"context"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// DynamicBatch returns the exporter's model with a free batch, for a network that takes batches of one size only. It
// fails unless the model computes the same on the data.
func (e *Engine) DynamicBatch(ctx context.Context, n *Network, data dataset.Dataset) (*onnxio.Model, error) {
	p, edit := n.Posterior, n.skeleton.Edit()
	edit.DynamicBatch()
	template, err := edit.Template(p.Layout)
	if err != nil {
		return nil, err
	}
	free, err := template.Model(p.Path, p.Layout)
	if err != nil {
		return nil, err
	}
	return free, e.sameByItself(ctx, n, free, data, int(n.Input.Shape[0]))
}

// sameByItself fails unless a graph with a free batch computes two batches of size at once like the network computes
// them one after the other. This finds operators that mix examples, such as a Reshape with a fixed size.
func (e *Engine) sameByItself(ctx context.Context, n *Network, free *onnxio.Model, data dataset.Dataset, size int) error {
	ctx = tally.For(ctx, tally.Check("free batch"))
	if data.Len() < 2*size {
		return fmt.Errorf("%d examples, too few to try larger batches on", data.Len())
	}
	rows := make([]int, 2*size)
	for i := range rows { // spread over the data
		rows[i] = i * ((data.Len() - 1) / (len(rows) - 1))
	}
	scores := func(t *onnxio.Template, batches ...[]int) (all []float32, err error) {
		last, err := n.Other(t, "last checkpoint", n.Posterior.Last(), weights.Slice(n.Posterior.Statistics))
		if err != nil {
			return nil, err
		}
		s, err := e.Open(ctx, n.Graph, last.Filled, n.Output())
		if err != nil {
			return nil, err
		}
		defer s.Close()
		for _, b := range batches {
			out, err := s.Feed(ctx, data, b)
			if err != nil {
				return nil, err
			}
			_, v, err := n.Scores(out[0], len(b)) // an output without a row for each example would prove nothing
			if err != nil {
				return nil, err
			}
			all = append(all, v...)
		}
		return all, nil
	}
	want, err := scores(n.runtime, rows[:size], rows[size:])
	if err != nil {
		return err
	}
	wide, err := onnxio.NewRuntimeTemplate(free, n.Posterior.Layout)
	if err != nil {
		return err
	}
	got, err := scores(wide, rows)
	if err != nil {
		return fmt.Errorf("the graph takes no larger batches: %w", err)
	}
	scale := 0.0
	for _, v := range want {
		scale = max(scale, math.Abs(float64(v)))
	}
	for i := range want {
		// Another order of float32 sums differs by less than a thousandth, another image by far more.
		if len(got) != len(want) || !(math.Abs(float64(got[i]-want[i])) <= 1e-3*scale) {
			return fmt.Errorf("the graph mixes the examples of larger batches: it computes %v in place of %v", got[i%len(got)], want[i])
		}
	}
	return nil
}
