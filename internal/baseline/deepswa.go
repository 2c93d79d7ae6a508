package baseline

import (
	"context"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/infer"
)

// deepSWA is a deep ensemble of the SWA networks of several runs.
var deepSWA = &Method{
	Key:  "deep-swa",
	From: fromSWA,
	Name: func(in *Inputs) string { return fmt.Sprintf("deep ensemble, %d SWA", len(in.Runs)) },
	Needs: func(in *Inputs) string {
		if !slices.ContainsFunc(in.Runs, func(r Run) bool { return !r.Network.Posterior.Single() }) {
			return spread
		}
		return needsRuns(in)
	},
	AllRuns: true,
	Deploy:  averaged,
	Cost: func(in *Inputs, c Cost) int64 {
		return int64(len(in.Runs))*c.Data + int64(len(in.Runs)-1)*c.BatchNorm
	},
	Run: func(ctx context.Context, w *work) error {
		first, err := w.swaOf(ctx)
		if err != nil {
			return err
		}
		p := w.own()
		p.Take(first, 0)
		for i := 1; i < len(w.Runs); i++ {
			m, err := w.swa(ctx, i)
			if err == nil {
				err = w.add(ctx, p, func() (infer.Model, error) { return m, nil })
			}
			if err != nil {
				return err
			}
		}
		return w.yield(p)
	},
}
