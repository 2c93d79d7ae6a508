package infer

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/truth"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/joint"
	"github.com/swagwrap/swagwrap/weights"
)

// FixedBatch reports whether the network takes batches of one size only.
func (n *Network) FixedBatch() bool { return n.Input.Shape[0] >= 0 }

// Joint readies the network's graph for several members in one model. Batches of any size
// go through that: of a network of one size only e sees that this computes the same, for
// others it may be nil.
func (n *Network) Joint(ctx context.Context, e *Engine) (*joint.Network, error) {
	m, p := n.skeleton, n.Posterior
	if n.FixedBatch() {
		x, err := newNoise(n, int(2*n.Input.Shape[0]))
		if err == nil {
			m, err = e.Free(ctx, n, x)
		}
		if err != nil {
			return nil, &onnxio.Error{Path: p.Path, Tensor: n.Input.Name, What: fmt.Sprintf("takes batches of %d only", n.Input.Shape[0]), Err: err,
				Hint: "export the checkpoints with a dynamic batch dimension"}
		}
	}
	if p.Options.Dropout {
		m = m.WithDropout()
	}
	t, err := onnxio.NewWholeTemplate(m, p.Layout)
	if err != nil {
		return nil, err
	}
	return joint.NewNetwork(p.Path, t, p.Layout, n.Inputs, n.Output())
}

// Learn runs the network once, on noise: then its task is [Graph.Known].
func (e *Engine) Learn(ctx context.Context, n *Network) error {
	x, err := newNoise(n, 1)
	if err != nil {
		return err
	}
	p := n.Posterior
	m, err := n.Model("last checkpoint", p.Last(), weights.Slice(p.Statistics))
	if err != nil {
		return err
	}
	return e.Predict(ctx, m, x, &Sums{})
}

// noise is examples that a network takes, to see how its graph works.
type noise struct {
	shape  []int64
	count  int
	elem   onnxio.ElemType
	fields []dataset.Field // in its place, of a network of several inputs
}

func newNoise(n *Network, count int) (*noise, error) {
	x := &noise{shape: n.Input.Shape[1:], count: count, elem: n.Input.ElemType, fields: n.Fields()}
	for _, d := range x.shape {
		if d < 1 {
			return nil, fmt.Errorf("the network takes examples of any size %s: none can be made up to try it on", onnxio.FormatShape(n.Input.Shape, n.Input.Dims))
		}
	}
	return x, nil
}

func (x *noise) Len() int                  { return x.count }
func (x *noise) Shape() []int64            { return x.shape }
func (x *noise) Fields() []dataset.Field   { return x.fields }
func (x *noise) Labels() truth.Truth       { return truth.Truth{} }
func (x *noise) ClassNames() []string      { return nil }
func (x *noise) Name(i int) string         { return fmt.Sprintf("noise[%d]", i) }
func (x *noise) Sources() []dataset.Source { return nil }

// Read makes up example i. Whole numbers are small, as any vocabulary has them.
func (x *noise) Read(dst []float32, i int) error {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	fill := func(dst []float32, whole bool) {
		for k := range dst {
			if !whole {
				dst[k] = float32(r.NormFloat64())
			} else {
				dst[k] = float32(r.IntN(2))
			}
		}
	}
	if x.fields == nil {
		fill(dst, !x.elem.DType().IsFloat())
	}
	for _, f := range x.fields {
		size := f.Elements()
		fill(dst[:size], f.Whole())
		dst = dst[size:]
	}
	return nil
}
