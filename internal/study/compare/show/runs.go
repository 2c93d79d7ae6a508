package show

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"gonum.org/v1/gonum/stat"
)

// runsTable shows the first loss and the differences to the baseline over runs of training. It is nil without them.
func (r tables) runsTable() *report.Table {
	if r.OfRuns == nil {
		return nil
	}
	base, loss := r.verdict.RunsBase, r.Loss()
	t := report.NewTable(report.Column{Header: fmt.Sprintf("over %d runs", len(r.OfRuns))}, decimal(loss.Name+" ± SD"),
		decimal("minus "+short(base)+" [95 %]"), decimal("± SD"),
		decimal("P(better) [95 %]"), decimal("sign-flip p"))
	for _, m := range r.Methods {
		in := m.InRuns(r.Result)
		if len(in) < len(r.OfRuns) || m.StaleBN {
			continue
		}
		var values []float64
		for _, own := range in {
			values = append(values, own.Value(loss.Key))
		}
		mean, spread := stat.MeanStdDev(values, nil)
		name := short(m)
		for k, own := range in {
			if !own.Sound() {
				t.Warn(fmt.Sprintf("* %s: not counted, since the fit is not determined in the run of %s: %s", short(m),
					r.Runs[k].Network.Posterior.Path, own.Undetermined))
				name = short(m) + " *"
			}
		}
		cells := []string{name, report.Fixed(mean, 4) + " ± " + report.Fixed(spread, 4)}
		if o := m.OverRuns; o != nil {
			p := o.Better
			cells = append(cells, intervalText(o.Interval), report.Fixed(o.Spread, 4),
				fmt.Sprintf("%s [%s, %s]", report.Fixed(p.Mean, 2), report.Fixed(p.Low, 2), report.Fixed(p.High, 2)),
				report.Fixed(o.SignFlip, 3))
		}
		t.Row(cells...)
	}
	t.Warn(fmt.Sprintf("each posterior is a run of training. Intervals of differences are for new runs and new %s. P(better): share of "+
		"runs in which the method beats %s, with its exact interval", r.units(), short(base)))
	if n := len(r.OfRuns); n <= 20 {
		t.Warn(fmt.Sprintf("the sign-flip test of %d runs has no p below %s", n, report.Fixed(math.Pow(2, 1-float64(n)), 3)))
	}
	return t
}

// runLines says whether the two methods of the verdict differ over runs of training.
func (r sentences) runLines() []string {
	if r.OfRuns == nil {
		return nil
	}
	base, m := r.verdict.RunsBase, r.verdict.Candidate
	if r.verdict.Unranked != compare.Ranked || m == nil || m.OverRuns == nil || math.IsNaN(m.OverRuns.Low) {
		return nil
	}
	o, n, what := m.OverRuns, len(r.OfRuns), "shows no difference to"
	unconfirmed := o.SignFlip > 0.05 && (o.High < 0 || o.Low > 0)
	verb := "is"
	if unconfirmed {
		verb = "seems"
	}
	if o.High < 0 {
		what = verb + " better than"
	} else if o.Low > 0 {
		what = verb + " worse than"
	}
	line := fmt.Sprintf("Over %d runs of training %s %s %s: %s, better in %.3g of %d.", n, short(m), what, short(base),
		intervalText(o.Interval), o.Better.Mean*float64(n), n)
	if unconfirmed {
		line += fmt.Sprintf(" The sign-flip test does not confirm it: p %s, and %d runs have none below %s.", report.Fixed(o.SignFlip, 3),
			n, report.Fixed(math.Pow(2, 1-float64(n)), 3))
	} else if n < fewRuns {
		line += fmt.Sprintf(" %d runs are few: only large differences can show.", n)
	}
	return []string{line}
}
