package baseline

import (
	"context"
	"fmt"
)

// sgdEnsemble is the ensemble of all checkpoints, each with its own batch-norm statistics.
var sgdEnsemble = &Method{
	Key:    "sgd-ensemble",
	From:   fromLast,
	Name:   func(in *Inputs) string { return fmt.Sprintf("SGD, all %d iterates", len(in.Runs[0].Checkpoints)) },
	Needs:  needsCheckpoints,
	Stored: always,
	Deploy: allCheckpoints,
	Cost: func(in *Inputs, c Cost) int64 {
		return c.Data * int64(len(in.Runs[0].Checkpoints)-1) // sgd runs the last one
	},
	Run: func(ctx context.Context, w *work) error {
		last, err := w.lastIterate(ctx)
		if err != nil {
			return err
		}
		all, models := w.own(), w.Runs[0].Checkpoints
		for _, m := range models[:len(models)-1] {
			if err := w.checkpoint(ctx, all, m); err != nil {
				return err
			}
		}
		all.Take(last, all.group(last))
		return w.yield(all)
	},
}
