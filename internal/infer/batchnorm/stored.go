package batchnorm

import (
	"context"
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/onnxio"
)

// storedPass returns the key of a pass, nil without a store, and the pass if the store has it.
func storedPass(e *infer.Engine, n *infer.Network, m onnxio.Filled, data Training) (k store.Key, p pass, err error) {
	if e.Store == nil {
		return nil, nil, nil
	}
	id := dataset.ID(data.Data)
	if id == "" {
		return nil, nil, nil
	}
	if k, err = e.Key("batch norm", m, id); err != nil {
		return nil, nil, err
	}
	k["batch"], k["pass_batch"], k["images"], k["shuffle"], k["seed"] = e.BatchSize, n.Passes.Batch, data.Images(), data.Order.Shuffle, data.Order.Seed
	found, err := e.Store.Get(k, func(h *records.Head) (func(*records.Row) error, error) {
		return p.recall(h, data.Images(), n.Passes.Plan.Layers())
	})
	if !found {
		return k, nil, err
	}
	for _, b := range p {
		e.Report(b.Images)
	}
	return k, p, err
}

// pass is a [bnupdate.Runner] that returns the results of an earlier run.
type pass []bnupdate.Batch

func (p pass) Batches() int                                         { return len(p) }
func (p pass) Run(_ context.Context, k int) (bnupdate.Batch, error) { return p[k], nil }

// recorder keeps the results of a Runner.
type recorder struct {
	bnupdate.Runner
	seen pass
}

func (r *recorder) Run(ctx context.Context, k int) (b bnupdate.Batch, err error) {
	b, err = r.Runner.Run(ctx, k)
	r.seen[k] = b
	return b, err
}

// row fills in the row of batch k. The row begins with the number of images. For each layer it has the numbers of
// channels and of dimensions, the means, the variances, and the shape of the layer's input.
func (p pass) row(k int, r *records.Row) {
	b := p[k]
	r.Values = append(r.Values[:0], float64(b.Images))
	for i := range b.Mean {
		r.Values = append(r.Values, float64(len(b.Mean[i])), float64(len(b.Shapes[i])))
		r.Values = appendNumbers(appendNumbers(r.Values, b.Mean[i]), b.Var[i])
		r.Values = appendNumbers(r.Values, b.Shapes[i])
	}
}

func appendNumbers[To, From float32 | float64 | int64](dst []To, numbers []From) []To {
	for _, v := range numbers {
		dst = append(dst, To(v))
	}
	return dst
}

// recall is the inverse of row, for batches of at most all images and the given number of layers. It checks the head of
// an entry, and returns a function that appends a batch.
func (p *pass) recall(h *records.Head, all, layers int) (func(*records.Row) error, error) {
	if h.Part.Rows() < 1 {
		return nil, errors.New("no batches")
	}
	*p = nil
	left := float64(all)
	return func(r *records.Row) error {
		values, sound := r.Values, true
		take := func(n float64) (taken []float64) {
			if sound = sound && n >= 0 && n <= float64(len(values)); sound {
				taken, values = values[:int(n)], values[int(n):]
			}
			return taken
		}
		number := func() float64 {
			if one := take(1); sound {
				return one[0]
			}
			return 0
		}
		b := bnupdate.Batch{Images: int(number())}
		for range layers {
			channels, rank := number(), number()
			b.Mean = append(b.Mean, appendNumbers([]float32(nil), take(channels)))
			b.Var = append(b.Var, appendNumbers([]float32(nil), take(channels)))
			b.Shapes = append(b.Shapes, appendNumbers([]int64(nil), take(rank)))
		}
		if left -= float64(b.Images); !sound || len(values) > 0 || b.Images < 1 || left < 0 {
			return fmt.Errorf("row %d: is no batch of this network", r.Index)
		}
		*p = append(*p, b)
		return nil
	}, nil
}
