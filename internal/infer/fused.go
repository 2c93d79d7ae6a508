package infer

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/fused"
)

// FixedBatch reports whether the network takes batches of one size only.
func (n *Network) FixedBatch() bool { return n.Input.Shape[0] >= 0 }

// Fused makes the network's graph ready for several members in one model. That model takes batches of any size. If
// the network takes one size only, e checks that a free batch computes the same. For other networks e may be nil.
func (n *Network) Fused(ctx context.Context, e *Engine) (*fused.Network, error) {
	m, p := n.skeleton, n.Posterior
	if n.states != nil {
		return nil, &onnxio.Error{
			Path:   p.Path,
			Tensor: n.states.pairs[0].In,
			What:   "a state that each member carries for itself: one model cannot return the states of all members",
			Hint: fmt.Sprintf("%s writes SWA, and %s a member. They take states and return them",
				setting.Export.WithFiles("POSTERIOR"), setting.Export.With(setting.Member.With("K"), "ENSEMBLE")),
		}
	}
	if n.FixedBatch() {
		if err := n.Fits(e.how.Memory); err != nil {
			return nil, err
		}
		x, err := NewNoise(n, int(2*n.Input.Shape[0]))
		if err == nil {
			m, err = e.DynamicBatch(ctx, n, x)
		}
		if err != nil {
			return nil, &onnxio.Error{
				Path:   p.Path,
				Tensor: n.Input.Name,
				What:   fmt.Sprintf("takes batches of %d only", n.Input.Shape[0]),
				Err:    err,
				Hint:   "export the checkpoints with a dynamic batch dimension",
			}
		}
	}
	t, err := onnxio.NewWholeTemplate(m, p.Layout)
	if err != nil {
		return nil, err
	}
	return fused.NewNetwork(p.Path, t, p.Layout, n.Inputs, n.Output())
}

// Learn runs the network once, on noise. Afterwards [Graph.Known] returns its task.
func (e *Engine) Learn(ctx context.Context, n *Network) error {
	x, err := NewNoise(n, 1)
	if err != nil {
		return err
	}
	m, err := n.LastCheckpoint()
	if err != nil {
		return err
	}
	_, err = e.PredictUsable(tally.For(ctx, tally.Check("task")), m, x, false, &Sums{})
	return err
}

// Noise is a data set of random examples that a network takes, to see how its graph works.
type Noise struct {
	shape  []int64
	count  int
	fields []dataset.Field
}

// NewNoise returns count random examples. It fails if the network leaves their size open.
func NewNoise(n *Network, count int) (*Noise, error) {
	x := &Noise{shape: n.Input.Shape[1:], count: count, fields: n.Fields()}
	for _, d := range x.shape {
		if d < 1 {
			return nil, fmt.Errorf("the network takes examples of any size %s: none can be made up to try it on",
				onnxio.FormatShape(n.Input.Shape, n.Input.Dims))
		}
	}
	return x, nil
}

func (x *Noise) Len() int                  { return x.count }
func (x *Noise) Shape() []int64            { return x.shape }
func (x *Noise) Fields() []dataset.Field   { return x.fields }
func (x *Noise) Labels() target.Target     { return target.Target{} }
func (x *Noise) ClassNames() []string      { return nil }
func (x *Noise) Name(i int) string         { return fmt.Sprintf("noise[%d]", i) }
func (x *Noise) Sources() []dataset.Source { return nil }

// Read sets dst to random example i. Whole numbers are small, so that any vocabulary has them.
func (x *Noise) Read(dst dataset.Values, i int) error {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	for _, f := range x.fields {
		var own dataset.Values
		own, dst = dst.Cut(f.Size())
		for k := range own.Floats {
			if f.Integer() {
				own.Floats[k] = float32(r.IntN(2))
			} else {
				own.Floats[k] = float32(r.NormFloat64())
			}
		}
		for k := range own.Ints {
			own.Ints[k] = int64(r.IntN(2))
		}
	}
	return nil
}
