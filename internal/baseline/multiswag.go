package baseline

import (
	"context"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// multiSWAG is a mixture of the posteriors of several runs (Wilson and Izmailov 2020). It has as many members in all
// as SWAG, so both cost the same.
var multiSWAG = &Method{
	Key:  MultiSWAG,
	Name: func(in *Inputs) string { return fmt.Sprintf("MultiSWAG, %d runs", len(in.Runs)) },
	Needs: func(in *Inputs) string {
		if what := needsRuns(in); what != "" {
			return what
		}
		for _, n := range in.Networks() {
			if n.Posterior.Options.Columns == 0 {
				return "deviations in " + n.Posterior.Path
			}
		}
		if in.most() < len(in.Runs) {
			return "at least one member of each posterior (" + setting.Members.String() + ")"
		}
		return ""
	},
	Cost:    eachMember,
	AllRuns: true,
	Deploy:  likeSWAG,
	Run: func(ctx context.Context, w *work) error {
		e := &ensemble.Ensemble{Sampling: ensemble.DrawOf(w.swag())}
		members := w.most()
		if w.Members == 0 && w.likeSWAG > 0 {
			members = max(w.likeSWAG, 2*len(w.Runs))
		}
		if err := e.Mix(len(w.Runs), members, nil); err != nil {
			return err
		}
		p := w.random(w.predicted())
		p.Antithetic = e.Sampling.Antithetic
		err := e.EachMember(ctx, w.run.Memory(), w.Networks(), 0, func(m ensemble.Member) error {
			return w.draw(ctx, p, m.Network, fmt.Sprintf("MultiSWAG member %d", m.Number), m.Weight, m.Parameters)
		})
		if err != nil {
			return err
		}
		return w.yield(p)
	},
}
