package baseline

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// dropout is Monte-Carlo dropout on the SWA weights: S passes in which the
// network's Dropout layers drop as in training, and batch norm stays as in
// predictions (Gal and Ghahramani 2016; SWA-Dropout in the paper's appendix).
//
// ONNX Runtime draws the masks of a session one run after the other. So each pass
// has a session of its own with seeds of its own and goes through its batches in
// order, while other passes run beside it: nothing depends on the number of
// workers.
var dropout = &Method{
	Key:  "swa-dropout",
	Name: called("SWA-Dropout"),
	Cost: func(in *Inputs, c Cost) int64 { return int64(in.Members) * c.Data },
	Run:  (*work).dropout,
}

func (w *work) dropout() error {
	swa, err := w.swa(0)
	if err != nil {
		return err
	}
	if _, err := w.dropping(swa, 0); err != nil { // before shares of the passes are counted
		return err
	}
	p := w.random()
	width := w.engine.Threads()
	for first := 0; first < w.Members; first += width {
		passes := make([]*Predicted, min(width, w.Members-first))
		var g errgroup.Group
		for i := range passes {
			if !w.mine() {
				continue
			}
			g.Go(weights.Guarded(func() (err error) {
				passes[i], err = w.dropoutPass(swa, first+i)
				return err
			}))
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if w.engine.Share == nil && first == 0 && len(passes) > 1 && slices.Equal(passes[0].Data[0].Outcome, passes[1].Data[0].Outcome) {
			return &unfit{err: errors.New("its layers drop nothing")}
		}
		for _, pass := range passes {
			if pass == nil {
				continue // another job's
			}
			p.Take(pass, p.group(pass))
		}
	}
	return w.yield(p)
}

// dropoutPass is what the network says of the data in pass k.
func (w *work) dropoutPass(swa *swaWeights, k int) (*Predicted, error) {
	m, err := w.dropping(swa, k)
	if err != nil {
		return nil, err
	}
	one := *w.engine
	one.Workers = 1
	alone := *w
	alone.engine = &one
	pass := w.predicted()
	return pass, alone.run(pass, m)
}

// dropping is the network with its layers on, with the seeds of pass k.
func (w *work) dropping(swa *swaWeights, k int) (infer.Model, error) {
	n := w.Runs[0].Network
	rng := rand.New(rand.NewPCG(w.Seed^dropoutStream, uint64(k)))
	// ONNX Runtime counts up from a seed, one for each run: seeds next to each
	// other would give the masks of one batch to the next in another pass.
	template, err := onnxio.DropoutTemplate(n.Skeleton(), n.Posterior.Layout, func(int) int64 { return int64(rng.Uint32() >> 1) })
	if errors.Is(err, onnxio.ErrNoDropout) {
		return infer.Model{}, &unfit{err: err, plain: true}
	}
	if err != nil {
		return infer.Model{}, err
	}
	return n.Other(template, fmt.Sprintf("dropout pass %d", k), swa.parameters, swa.statistics)
}

// Streams keep the uses of a seed apart: "dropout" and "laplace" in ASCII.
const (
	dropoutStream = 0x64726f706f7574
	laplaceStream = 0x6c61706c616365
)
