package batchnorm

import (
	"context"
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/records"
)

// find sets the key of the pass, and looks for the pass in the store.
func (p *pass) find() (err error) {
	if p.run.Store == nil {
		return nil
	}
	id := dataset.ID(p.data.Data)
	if id == "" {
		return nil
	}
	k, err := p.run.Key("batch norm", p.model, id)
	if err != nil {
		return err
	}
	k["batch"], k["pass_batch"], k["images"], k["shuffle"], k["seed"] = p.data.batchSize(p.run.Engine), p.n.Passes.Batch, p.data.Images(),
		p.data.Order.Shuffle, p.data.Order.Seed
	p.key = k
	var was batchList
	found, err := p.run.Store.Get(k, func(h *records.Head) (func(*records.Row) error, error) {
		return was.recall(h, p.data.Images(), p.n.Passes.Plan.Layers())
	})
	if !found {
		return err
	}
	for _, b := range was {
		p.run.Report(b.Images)
	}
	p.found = was
	return err
}

// batchList is a [bnupdate.Runner] that returns the results of an earlier run.
type batchList []bnupdate.Batch

func (l batchList) Batches() int                                         { return len(l) }
func (l batchList) Run(_ context.Context, k int) (bnupdate.Batch, error) { return l[k], nil }

// recorder keeps the results of a Runner.
type recorder struct {
	bnupdate.Runner
	seen batchList
}

func (r *recorder) Run(ctx context.Context, k int) (b bnupdate.Batch, err error) {
	b, err = r.Runner.Run(ctx, k)
	r.seen[k] = b
	return b, err
}

// row fills in the row of batch k. The row begins with the number of images. For each layer it has the numbers of
// channels and of dimensions, the means, the variances, and the shape of the layer's input.
func (l batchList) row(k int, r *records.Row) {
	b := l[k]
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
func (l *batchList) recall(h *records.Head, all, layers int) (func(*records.Row) error, error) {
	if h.Part.Rows() < 1 {
		return nil, errors.New("no batches")
	}
	*l = nil
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
		*l = append(*l, b)
		return nil
	}, nil
}
