package baseline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// dropout is Monte-Carlo dropout on the SWA weights (Gal and Ghahramani 2016; SWA-Dropout in the paper's appendix).
// It makes S passes in which Dropout layers are active as in training, and batch norm works as in prediction.
//
// A session of ONNX Runtime draws its masks one run after the other. So each pass has its own session with its own
// seeds, and takes its batches in order. Passes run in parallel, and the result does not depend on the number of
// workers.
var dropout = &Method{
	Key:      "swa-dropout",
	Outcomes: true,
	Name:     func(in *Inputs) string { return in.centre() + "-Dropout" },
	Cost:     func(in *Inputs, c Cost) int64 { return int64(in.most()) * c.Data },
	Run:      func(ctx context.Context, w *work) error { return w.dropout(ctx) },
}

func (w *work) dropout(ctx context.Context) error {
	swa, err := w.swa(ctx, 0)
	if err != nil {
		return err
	}
	if _, err := w.dropping(swa, 0); err != nil { // before shares of the passes are counted
		return err
	}
	p := w.random(w.predicted())
	width := w.run.Threads()
	for first := 0; first < w.most(); first += width {
		passes := make([]*Predicted, min(width, w.most()-first))
		var g errgroup.Group
		for i := range passes {
			if !w.mine() {
				continue
			}
			g.Go(weights.Guarded(func() (err error) {
				passes[i], err = w.dropoutPass(ctx, swa, first+i)
				return err
			}))
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if w.shard == nil && first == 0 && len(passes) > 1 && slices.Equal(passes[0].Data[0].Outcome, passes[1].Data[0].Outcome) {
			return &unfit{err: errors.New("its Dropout layers drop nothing")}
		}
		for _, pass := range passes {
			if pass == nil {
				continue // another job computes it
			}
			p.Take(pass, p.group(pass))
		}
	}
	return w.yield(p)
}

func (w *work) dropoutPass(ctx context.Context, swa infer.Model, k int) (*Predicted, error) {
	m, err := w.dropping(swa, k)
	if err != nil {
		return nil, err
	}
	pass := w.predicted()
	return pass, w.predict(ctx, pass, m)
}

// dropping returns the network with active Dropout layers and the seeds of pass k.
func (w *work) dropping(swa infer.Model, k int) (infer.Model, error) {
	n := w.Runs[0].Network
	rng := rand.New(rand.NewPCG(w.Seed^dropoutStream, uint64(k)))
	// ONNX Runtime adds 1 to a seed in each run. With neighbouring seeds, two passes would share masks in different
	// batches.
	template, err := onnxio.DropoutTemplate(n.Skeleton(), n.Posterior.Layout, func(int) int64 { return int64(rng.Uint32() >> 1) })
	if errors.Is(err, onnxio.ErrNoDropout) {
		return infer.Model{}, &unfit{err: err, plain: true}
	}
	if err != nil {
		return infer.Model{}, err
	}
	m, err := n.Other(template, fmt.Sprintf("dropout pass %d", k), swa.Filled.Parameters, swa.Filled.Statistics)
	m.InOrder = true
	return m, err
}

// The streams separate the uses of a seed: "dropout" and "laplace" in ASCII.
const (
	dropoutStream = 0x64726f706f7574
	laplaceStream = 0x6c61706c616365
)
