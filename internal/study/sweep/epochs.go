package sweep

import (
	"context"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
)

// Collected is the posterior of the first checkpoints, at the default scale: SWA, the diagonal alone, and the ranks of the
// sweep that it has. It is a point of the paper's figure "ensemble" (a), the rank against the epochs of collection.
type Collected struct {
	Checkpoints, Columns int
	Result               *Result
}

// early returns the sweep over the posterior of the first checkpoints. Its network is that of s.
func (s *Sweep) early(checkpoints int) Sweep {
	sub := *s
	sub.Scales, sub.Extend, sub.Resize, sub.Announce, sub.tunes = nil, 0, nil, nil, true
	sub.Ranks = nil
	for _, k := range s.Ranks {
		if k <= checkpoints {
			sub.Ranks = append(sub.Ranks, k)
		}
	}
	return sub
}

// collect runs the sweeps over earlier posteriors.
func (r *Result) collect(ctx context.Context, run infer.Run) error {
	for _, count := range r.Epochs {
		sub := r.early(count)
		network, err := r.Earlier(ctx, count)
		if err != nil {
			return err
		}
		sub.Network = network
		columns := network.Posterior.Options.Columns
		sub.Ranks = slices.DeleteFunc(sub.Ranks, func(k int) bool { return k > columns })
		of := &Result{Sweep: &sub}
		err = of.explore(ctx, run, r.Default().Members)
		if closed := network.Posterior.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return fmt.Errorf("first %s: %w", report.Plural(count, "checkpoint"), err)
		}
		r.Collected = append(r.Collected, Collected{count, columns, of})
	}
	return nil
}

// collectedRanks returns the ranks of all earlier posteriors, and "all" for the rank of all columns.
func (r shown) collectedRanks() (names []string) {
	names = []string{r.name(Setting{}), "SWAG-Diag"}
	for _, k := range slices.Sorted(slices.Values(r.Ranks)) {
		if k > 0 {
			names = append(names, fmt.Sprintf("rank %d", k))
		}
	}
	return append(names, "all columns")
}

// nllOf returns the NLL of an earlier posterior by the name of its rank: see [shown.drawn].
func (c *Collected) nllOf(name string) (nll float64, ok bool) {
	for i := range c.Result.Points {
		p := &c.Result.Points[i]
		switch {
		case p.SWA() && name == shown{c.Result}.name(Setting{}), !p.SWA() && p.Rank == 0 && name == "SWAG-Diag",
			!p.SWA() && name == fmt.Sprintf("rank %d", p.Rank), p.Default && name == "all columns":
			nll, _, ok = shown{c.Result}.drawn(p)
			return nll, ok
		}
	}
	return 0, false
}

// collected returns an earlier posterior with its settings. Tables show the NLL by the rank.
func (r shown) collected(c Collected) study.Row {
	row := study.Row{
		study.Count("checkpoints", "checkpoints", c.Checkpoints).Aligned(report.Right),
		study.Count("columns", "columns", c.Columns).Aligned(report.Right),
	}
	for _, name := range r.collectedRanks() {
		cell := ""
		if nll, ok := c.nllOf(name); ok {
			cell = report.Fixed(nll, 4)
		}
		row = append(row, study.Shown(name, cell))
	}
	return append(row, study.Fields("settings", shown{c.Result}.rows())...)
}

// first shows the NLL by the number of checkpoints and the rank.
func (r shown) first() study.Section {
	return study.Section{Title: "Collected checkpoints", Rows: study.Rows(r.Collected, r.collected), Warnings: []string{
		fmt.Sprintf("%s. Each row is the posterior of the first checkpoints, at scale %g.", r.yLabel(), r.Default().Scale),
	}}
}

// collectedCurve returns the paper's figure of the rank against the epochs of collection.
func (r shown) collectedCurve() plot.Curve {
	out := plot.Curve{Title: "NLL by collected checkpoints", XLabel: "checkpoints", YLabel: r.yLabel()}
	for _, name := range r.collectedRanks() {
		s := plot.Series{Name: name}
		for _, c := range r.Collected {
			if nll, ok := c.nllOf(name); ok {
				s.X, s.Y = append(s.X, float64(c.Checkpoints)), append(s.Y, nll)
			}
		}
		if len(s.X) > 0 {
			out.Series = append(out.Series, s)
		}
	}
	return out
}
