package sweep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// loss returns the loss that ranks settings. nll returns its mean.
func (r *Result) loss() task.Loss                { return r.Default().Losses[0] }
func (r *Result) nll(e *task.Evaluation) float64 { return e.Value(r.loss().Key) }

// Show declares what a sweep says.
func (r *Result) Show() *study.Document {
	s := shown{r}
	return &study.Document{
		Title:     "Settings of SWAG",
		Heading:   s.heading(),
		Settings:  s.facts(),
		BatchNorm: &r.Statistics,
		Notes:     study.Texts(r.Warnings),
		Verdict:   s.verdict(),
		Next:      r.Next(),
		Sections:  append(s.settings(), s.members(), s.first()),
		Figures:   s.figures,
		JSON:      s.all(),
		Provenance: study.Provenance(r.Runtime, r.Statistics.Networks, study.Used{As: "test", Data: r.Test},
			study.Used{As: "validation", Data: r.Validation}, study.Used{As: "batch norm", Data: r.BatchNorm.Data}),
	}
}

// shown says what a sweep found. It computes no numbers.
type shown struct{ *Result }

// facts returns the settings that the numbers depend on.
func (r shown) facts() []report.Fact {
	facts := []report.Fact{
		study.Fact("test "+r.units(), "%s", report.Thousands(r.Test.Len())),
		study.Fact("members", "%s", report.Thousands(r.Error.Members)),
		study.Fact("default", "%v", r.Default()),
		study.Fact("seed", "%d", r.Seed),
	}
	if r.Validation != nil {
		facts = append(facts, study.Fact("validation "+r.units(), "%s", report.Thousands(r.Validation.Len())))
	}
	return facts
}

func (r shown) figures(page *report.Report) {
	if len(r.Collected) > 0 {
		page.Sweeps = append(page.Sweeps, r.collectedCurve())
	}
	page.Sweeps = append(page.Sweeps, r.membersCurve())
	for _, c := range []plot.Curve{r.scaleCurve(), r.rankCurve()} {
		if len(c.Series) > 0 {
			page.Sweeps = append(page.Sweeps, c)
		}
	}
	page.Differences = []plot.Differences{r.differences()}
	page.Promote()
}

// differences returns the figure of all settings that may be shown.
func (r shown) differences() plot.Differences {
	name, data := r.loss().Name, "validation data"
	if r.AllTest {
		data = "test data"
	}
	d := plot.Differences{
		Title:    name + " of the settings against the default",
		Label:    name + " − " + name + "(default), nats, " + data,
		Baseline: "the default",
	}
	for i := range r.Points {
		p := &r.Points[i]
		if _, x, ok := r.drawn(p); ok && !p.Default && !p.Stale {
			d.Rows = append(d.Rows, plot.Difference{
				Name:  strings.TrimSpace(r.name(p.Setting) + " " + r.mark(p)),
				Value: x.Mean,
				Lower: x.Low,
				Upper: x.High,
			})
		}
	}
	return d
}

// membersCurve returns the paper's figure of the NLL by the number of members.
func (r shown) membersCurve() plot.Curve {
	var line, band plot.Series
	line.Name, band.Name = "members in their order", "any choice of members, 90 %"
	if of := r.averagedLoss(); of != r.loss().Name {
		band.Name += ": " + of
	}
	for _, p := range r.Curve {
		x := float64(p.Members)
		line.X, line.Y = append(line.X, x), append(line.Y, r.nll(p.Evaluation))
		band.X, band.Y = append(band.X, x), append(band.Y, p.AnyOrder.Mean)
		band.Lower, band.Upper = append(band.Lower, p.AnyOrder.Low), append(band.Upper, p.AnyOrder.High)
	}
	c := plot.Curve{
		Title:  "NLL by the number of members",
		XLabel: "members",
		YLabel: "NLL without a temperature, nats",
		LogX:   true,
		Series: []plot.Series{line, band},
		Note:   r.membersVerdict(),
	}
	if n := r.Error.Enough; n > 0 && n <= r.Error.Members {
		c.Marks = []plot.Tick{{At: float64(n), Label: "enough"}}
	}
	return c
}

// drawn returns the NLL of a point for figures of all settings, and the difference to the default. They are those on
// validation data, or on test data if AllTest is set. Otherwise ok is false.
func (r shown) drawn(p *Point) (nll float64, difference chance.Interval, ok bool) {
	switch {
	case r.AllTest:
		return r.nll(p.Evaluation), p.Difference, true
	case p.Validation != nil:
		return r.nll(p.Validation), p.ValidationDifference, true
	}
	return 0, chance.Interval{}, false
}

// drawnOf names the data of drawn.
func (r shown) drawnOf() string {
	if r.AllTest {
		return "test " + r.units()
	}
	return "validation " + r.units()
}

// scaleCurve returns the paper's figure of the NLL by the scale, with a line for each rank that has several scales.
func (r shown) scaleCurve() plot.Curve {
	d := r.Default()
	c := plot.Curve{
		Title:  "NLL by scale",
		XLabel: "scale α",
		YLabel: r.yLabel(),
		LogX:   true,
		Marks:  []plot.Tick{{At: d.Scale, Label: "default"}},
	}
	var ranks []int
	for _, p := range r.Points {
		if !p.SWA() && !p.Stale && !slices.Contains(ranks, p.Rank) {
			ranks = append(ranks, p.Rank)
		}
	}
	first, last := math.Inf(1), 0.0
	for _, rank := range ranks {
		name := fmt.Sprintf("SWAG, rank %d", rank)
		if rank == 0 {
			name = "SWAG-Diag"
		}
		s := r.series(name, func(p Point) bool { return !p.SWA() && p.Rank == rank }, func(p Point) float64 { return p.Scale })
		if len(s.X) > 1 {
			c.Series = append(c.Series, s)
			first, last = min(first, s.X[0]), max(last, s.X[len(s.X)-1])
		}
	}
	if swa, _, ok := r.drawn(&r.Points[0]); ok && len(c.Series) > 0 {
		c.Series = append(c.Series, plot.Series{Name: r.name(Setting{}), X: []float64{first, last}, Y: []float64{swa, swa}})
	}
	return c
}

// yLabel labels the axis of the NLL of [shown.drawn].
func (r shown) yLabel() string {
	return "NLL of " + r.drawnOf() + " at its own " + r.by.Symbol + ", nats"
}

// rankCurve returns the figure of the NLL by the rank, where 0 means the diagonal alone.
func (r shown) rankCurve() plot.Curve {
	d := r.Default()
	c := plot.Curve{
		Title:  "NLL by rank",
		XLabel: "rank K; 0 is the diagonal alone",
		YLabel: r.yLabel(),
		Marks:  []plot.Tick{{At: float64(d.Rank), Label: "default"}},
	}
	s := r.series(fmt.Sprintf("scale %g", d.Scale), func(p Point) bool {
		return p.Scale == d.Scale
	}, func(p Point) float64 { return float64(p.Rank) })
	if len(s.X) > 1 {
		c.Series = []plot.Series{s}
	}
	return c
}

// series returns the NLL of some settings with recomputed statistics. The bars show the interval of the difference to the
// default. If a bar does not reach the default's NLL, the difference is more than the chance of images and draws.
func (r shown) series(name string, keep func(Point) bool, x func(Point) float64) plot.Series {
	points := slices.Clone(r.Points)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(x(a), x(b)) })
	s := plot.Series{Name: name}
	base, _, ok := r.drawn(r.Default())
	for _, p := range points {
		if ok && !p.Stale && keep(p) {
			nll, d, _ := r.drawn(&p) // the difference is zero for the default
			s.X, s.Y = append(s.X, x(p)), append(s.Y, nll)
			s.Lower, s.Upper = append(s.Lower, base+d.Low), append(s.Upper, base+d.High)
		}
	}
	return s
}
