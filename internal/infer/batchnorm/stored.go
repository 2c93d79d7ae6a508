package batchnorm

import (
	"context"
	"fmt"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/store"
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
	was, err := e.Store.Get(k)
	if p = recallPass(was, data.Images(), n.Passes.Plan.Layers()); p != nil {
		for _, b := range p {
			e.Report(b.Images)
		}
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

// arrays returns the arrays of an entry. First come the images of each batch. Then come, for each layer, means and
// variances, batches×channels, and the shapes of its input, batches×rank.
func (p pass) arrays() []store.Array {
	n := int64(len(p))
	images := make([]int64, n)
	for k, b := range p {
		images[k] = int64(b.Images)
	}
	out := []store.Array{{Name: "images", Shape: []int64{n}, Values: images}}
	for i := range p[0].Mean {
		var mean, variance []float32
		var shapes []int64
		for _, b := range p {
			mean, variance, shapes = append(mean, b.Mean[i]...), append(variance, b.Var[i]...), append(shapes, b.Shapes[i]...)
		}
		out = append(out, store.Array{Name: fmt.Sprintf("mean.%d", i), Shape: []int64{n, int64(len(mean)) / n}, Values: mean},
			store.Array{Name: fmt.Sprintf("variance.%d", i), Shape: []int64{n, int64(len(variance)) / n}, Values: variance},
			store.Array{Name: fmt.Sprintf("shapes.%d", i), Shape: []int64{n, int64(len(shapes)) / n}, Values: shapes})
	}
	return out
}

// recallPass is the inverse of arrays: batches of at most all images, for the given number of layers. It returns nil
// if the entry is not a pass.
func recallPass(was *store.Entry, all, layers int) pass {
	if was == nil {
		return nil
	}
	images, ok := was.Arrays["images"].Values.([]int64)
	if !ok || len(images) == 0 || len(was.Arrays) != 1+3*layers {
		return nil
	}
	p, left := make(pass, len(images)), int64(all)
	for k, n := range images {
		if n < 1 || n > left {
			return nil
		}
		left -= n
		p[k].Images = int(n)
	}
	for i := range layers {
		mean, ok1 := was.Arrays[fmt.Sprintf("mean.%d", i)].Values.([]float32)
		variance, ok2 := was.Arrays[fmt.Sprintf("variance.%d", i)].Values.([]float32)
		shapes, ok3 := was.Arrays[fmt.Sprintf("shapes.%d", i)].Values.([]int64)
		if !ok1 || !ok2 || !ok3 || len(mean) != len(variance) || len(mean)%len(p) != 0 || len(shapes)%len(p) != 0 {
			return nil
		}
		channels, rank := len(mean)/len(p), len(shapes)/len(p)
		for k := range p {
			p[k].Mean = append(p[k].Mean, mean[k*channels:][:channels])
			p[k].Var = append(p[k].Var, variance[k*channels:][:channels])
			p[k].Shapes = append(p[k].Shapes, shapes[k*rank:][:rank])
		}
	}
	return p
}
