package infer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/fused"
	"github.com/swagwrap/swagwrap/weights"
)

// FixedBatch reports whether the network takes batches of one size only.
func (n *Network) FixedBatch() bool { return n.Input.Shape[0] >= 0 }

// Fused makes the network's graph ready for several members in one model. That model takes batches of any size. If
// the network takes one size only, e checks on data that a free batch computes the same, or on noise if data is nil. For other
// networks e may be nil. read reads the graph: [fused.NewNetwork], or what makes members compute in fewer bits.
func (n *Network) Fused(ctx context.Context, e *Engine, data dataset.Dataset, read FusedReader) (*fused.Network, error) {
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
		var err error
		if data != nil {
			m, err = e.DynamicBatch(ctx, n, data)
		} else {
			err = n.MadeUp(ctx, int(2*n.Input.Shape[0]), func(x *Noise) (err error) {
				m, err = e.DynamicBatch(ctx, n, x)
				return err
			})
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
	return read(p.Path, t, p.Layout, n.Inputs, n.Output())
}

// FusedReader reads the graph of a network whose members become one model.
type FusedReader func(path string, t *onnxio.Template, l *weights.Layout, inputs []onnxio.Value, output string) (*fused.Network, error)

// Learn runs the network once, on noise. Afterwards [Graph.Known] returns its task.
func (e *Engine) Learn(ctx context.Context, n *Network) error {
	m, err := n.LastCheckpoint()
	if err != nil {
		return err
	}
	return n.MadeUp(ctx, 1, func(x *Noise) error {
		_, err := e.PredictUsable(tally.For(ctx, tally.Check("task")), m, x, false, &Sums{})
		return err
	})
}

// Noise is a data set of random examples that a network takes, to see how its graph works.
type Noise struct {
	count  int
	fields []dataset.Field
}

// Sides are the sizes of made-up examples where the graph leaves them open. Most networks take one of them.
var Sides = []int64{64, 8, 224}

// A MadeUpError says that made-up examples did not show what is asked. Examples of data may.
type MadeUpError struct{ Err error }

func (e *MadeUpError) Error() string { return "tried on made-up examples: " + e.Err.Error() }
func (e *MadeUpError) Unwrap() error { return e.Err }

// MadeUp calls run with count random examples. If the network leaves their size open, run is called with several sizes, until one
// works.
func (n *Network) MadeUp(ctx context.Context, count int, run func(*Noise) error) (err error) {
	for _, side := range Sides {
		x, open := &Noise{count: count, fields: n.Fields()}, false
		for i := range x.fields {
			shape := slices.Clone(x.fields[i].Shape)
			for k, d := range shape {
				if d < 1 {
					shape[k], open = side, true
				}
			}
			x.fields[i].Shape = shape
		}
		if err = run(x); err == nil || !open || ctx.Err() != nil {
			return err
		}
	}
	return &MadeUpError{fmt.Errorf("the network takes examples of any size %s, but none with sides of %v: %w",
		onnxio.FormatShape(n.Input.Shape, n.Input.Dims), Sides, err)}
}

func (x *Noise) Len() int                  { return x.count }
func (x *Noise) Shape() []int64            { return x.fields[0].Shape }
func (x *Noise) Fields() []dataset.Field   { return x.fields }
func (x *Noise) Labels() target.Target     { return target.Target{} }
func (x *Noise) ClassNames() []string      { return nil }
func (x *Noise) Name(i int) string         { return fmt.Sprintf("noise[%d]", i) }
func (x *Noise) Sources() []dataset.Source { return nil }

// Read sets dst to random example i. Integers are small, so that any vocabulary has them. Masks leave out nothing.
func (x *Noise) Read(dst dataset.Values, i int) error {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	small := func(f dataset.Field) int64 {
		switch {
		case dataset.Given(f.Name) == "mask":
			return 1
		case f.Rows == 1:
			return 0
		}
		return int64(r.IntN(2))
	}
	for _, f := range x.fields {
		var own dataset.Values
		own, dst = dst.Cut(f.Size())
		for k := range own.Floats {
			if f.Integer() {
				own.Floats[k] = float32(small(f))
			} else {
				own.Floats[k] = float32(r.NormFloat64())
			}
		}
		for k := range own.Ints {
			own.Ints[k] = small(f)
		}
	}
	return nil
}
