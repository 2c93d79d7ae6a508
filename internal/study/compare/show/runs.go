package show

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
)

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
		study.IntervalText(o.Interval), o.Better.Mean*float64(n), n)
	if unconfirmed {
		line += fmt.Sprintf(" The sign-flip test does not confirm it: p %s, and %d runs have none below %s.", report.Fixed(o.SignFlip, 3),
			n, report.Fixed(math.Pow(2, 1-float64(n)), 3))
	} else if n < fewRuns {
		line += fmt.Sprintf(" %d runs are few: only large differences can show.", n)
	}
	return []string{line}
}
