package baseline

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/infer"
)

// staleSWA is SWA with the last checkpoint's batch-norm statistics. It shows the cost of skipping the batch-norm
// update.
var staleSWA = &Method{
	Key:    StaleSWA,
	Name:   called("SWA, stale BN"),
	Scores: true,
	Needs: func(in *Inputs) string {
		if !in.Runs[0].Network.Recomputes() {
			return "batch norm"
		}
		return needsSpread(in)
	},
	Cost: oneNetwork,
	Run: func(ctx context.Context, w *work) error {
		m, err := w.swa(ctx, 0)
		if err != nil {
			return err
		}
		p, n := w.predicted(), w.Runs[0].Network
		p.StaleBN = true
		err = w.add(ctx, p, func() (infer.Model, error) {
			stale, err := n.State(m.Filled.Parameters)
			if err != nil {
				return m, err
			}
			return n.Model("SWA", m.Filled.Parameters, stale)
		})
		if err != nil {
			return err
		}
		return w.yield(p)
	},
}
