package baseline

import (
	"context"
	"fmt"
)

// deepSGD is a deep ensemble of the last checkpoints of several runs (Lakshminarayanan et al. 2017).
var deepSGD = &Method{
	Key:     "deep-sgd",
	From:    fromLast,
	AllRuns: true,
	Stored:  always,
	Deploy:  lastCheckpoint,
	Name:    func(in *Inputs) string { return fmt.Sprintf("deep ensemble, %d SGD", len(in.Runs)) },
	Needs: func(in *Inputs) string {
		what := needsRuns(in)
		for _, r := range in.Runs {
			if what == "" && !r.hasLast() {
				what = "the checkpoints of " + r.Network.Posterior.Path
			}
		}
		return what
	},
	Cost: func(in *Inputs, c Cost) int64 { return int64(len(in.Runs)) * c.Data },
	Run: func(ctx context.Context, w *work) error {
		first, err := w.lastIterate(ctx)
		if err != nil {
			return err
		}
		p := w.own()
		p.Take(first, 0)
		for _, r := range w.Runs[1:] {
			if err := w.last(ctx, p, r); err != nil {
				return err
			}
		}
		return w.yield(p)
	},
}
