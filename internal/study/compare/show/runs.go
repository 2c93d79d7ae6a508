package show

import (
	"fmt"
	"math"
	"strings"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
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

// groupLoss returns the first loss of a group with its interval.
func (r words) groupLoss(g *task.Group) string {
	i, of := g.Intervals[r.Loss().Key], task.Metric{Digits: 4}
	return report.Fixed(i.Mean, 4) + " " + study.Range(of, i)
}

// groupLines says which group is the worst, and where the two methods differ that the verdict compares.
func (r sentences) groupLines() []string {
	base, other := r.verdict.Base, r.verdict.Candidate
	if r.Report == nil || len(base.Groups) < 2 {
		return nil
	}
	worst := func(m *compare.Method) string {
		g := m.Groups[r.WorstFirst(m)[0]]
		return fmt.Sprintf("for %s it is %s with %s %s", short(m), study.GroupName(g.Name), r.Loss().Name, r.groupLoss(g))
	}
	line := fmt.Sprintf("The worst of %d groups: %s", len(base.Groups), worst(base))
	if other == nil {
		return []string{line + "."}
	}
	line += "; " + worst(other) + "."
	var better, worse []string
	for k, d := range r.GroupDifferences(other, base) {
		name := study.GroupName(base.Groups[k].Name)
		if d.High < 0 {
			better = append(better, name)
		} else if d.Low > 0 {
			worse = append(worse, name)
		}
	}
	if better == nil && worse == nil {
		return []string{line, fmt.Sprintf("No group shows a difference of %s to %s.", short(other), short(base))}
	}
	return []string{line, fmt.Sprintf("%s is better than %s in %s, and worse in %s.", short(other), short(base), some(better), some(worse))}
}

func some(names []string) string {
	const named = 3
	switch n := len(names); {
	case n == 0:
		return "no group"
	case n > named:
		return fmt.Sprintf("%d groups", n)
	}
	return strings.Join(names, ", ")
}
