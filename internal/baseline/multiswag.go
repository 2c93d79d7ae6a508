package baseline

import (
	"context"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/swag"
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
		if in.Members < len(in.Runs) {
			return "at least one member of each posterior (" + setting.Members.String() + ")"
		}
		return ""
	},
	Cost:    eachMember,
	AllRuns: true,
	Deploy:  likeSWAG,
	Run: func(ctx context.Context, w *work) error {
		components, err := ensemble.Mix(len(w.Runs), w.Members, nil, false)
		if err != nil {
			return err
		}
		e := &ensemble.Ensemble{
			Components: components,
			Sampling:   ensemble.Draw{Seed: w.Seed, Scale: w.Scale, Covariance: swag.LowRankPlusDiagonal.String()},
		}
		p := w.random(w.predicted())
		err = e.EachMember(ctx, w.run.Memory(), w.Networks(), 0, func(m ensemble.Member) error {
			return w.draw(ctx, p, m.Network, fmt.Sprintf("MultiSWAG member %d", m.Number), m.Weight, m.Parameters)
		})
		if err != nil {
			return err
		}
		return w.yield(p)
	},
}
