package sweep

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// loss returns the loss that ranks settings. nll returns its mean.
func (r *Result) loss() task.Loss                { return r.Default().Losses[0] }
func (r *Result) nll(e *task.Evaluation) float64 { return e.Value(r.loss().Key) }

// Page returns the result with figures.
func (r *Result) Page() *report.Report {
	settings := []report.Fact{
		study.Fact("test images", "%s", report.Thousands(r.Test.Len())),
		study.Fact("members", "%s", report.Thousands(r.Error.Members)),
		study.Fact("default", "%v", r.Default()),
		study.Fact("seed", "%d", r.Seed),
	}
	if r.Validation != nil {
		settings = append(settings, study.Fact("validation images", "%s", report.Thousands(r.Validation.Len())))
	}
	page := r.Statistics.Page("Settings of SWAG", r, study.Texts(r.Warnings), settings...)
	page.Provenance = study.Provenance(r.Runtime, r.Statistics.Networks, study.Used{As: "test", Data: r.Test},
		study.Used{As: "validation", Data: r.Validation}, study.Used{As: "batch norm", Data: r.BatchNorm.Data})
	page.Tables = []report.NamedTable{
		{Title: "Settings", Explanation: "Differences of the NLL are to the paper's default setting, with 95 % paired bootstrap intervals over the images.", Table: r.settingsTable()},
		{Title: "Number of members", Table: r.membersTable()},
	}
	page.Sweeps = append(page.Sweeps, r.membersCurve())
	for _, c := range []plot.Curve{r.scaleCurve(), r.rankCurve()} {
		if len(c.Series) > 0 {
			page.Sweeps = append(page.Sweeps, c)
		}
	}
	return page
}

// membersCurve returns the paper's figure of the NLL by the number of members.
func (r *Result) membersCurve() plot.Curve {
	var line, band plot.Series
	line.Name, band.Name = "members in their order", "any choice of members, 90 %"
	if of := r.averagedLoss(); of != r.loss().Name {
		band.Name += ": " + of
	}
	var swa plot.Series
	swa.Name = "SWA"
	for _, p := range r.Curve {
		x := float64(p.Members)
		line.X, line.Y = append(line.X, x), append(line.Y, r.nll(p.Evaluation))
		band.X, band.Y = append(band.X, x), append(band.Y, p.AnyOrder.Mean)
		band.Lower, band.Upper = append(band.Lower, p.AnyOrder.Low), append(band.Upper, p.AnyOrder.High)
		if r.shown(&r.Points[0]) {
			swa.X, swa.Y = append(swa.X, x), append(swa.Y, r.nll(r.Points[0].Evaluation))
		}
	}
	c := plot.Curve{Title: "NLL by the number of members", XLabel: "members", YLabel: "NLL, nats", LogX: true, Series: []plot.Series{line, band}, Note: r.membersVerdict()}
	if len(swa.X) > 0 {
		c.Series = append(c.Series, swa)
	}
	if n := r.Error.Enough; n > 0 && n <= r.Error.Members {
		c.Marks = []plot.Tick{{At: float64(n), Label: "enough"}}
	}
	return c
}

// drawn returns the scores of a point for figures of all settings. They are those on validation data, or on test data
// if AllTest is set. Otherwise ok is false.
func (r *Result) drawn(p *Point) (e *task.Evaluation, differences map[string]calibrate.Interval, ok bool) {
	switch {
	case r.AllTest:
		return p.Evaluation, p.Differences, true
	case p.Validation != nil:
		return p.Validation, p.ValidationDifferences, true
	}
	return nil, nil, false
}

// drawnOf names the images of drawn.
func (r *Result) drawnOf() string {
	if r.AllTest {
		return "test images"
	}
	return "validation images"
}

// scaleCurve returns the paper's figure of the NLL by the scale.
func (r *Result) scaleCurve() plot.Curve {
	d := r.Default()
	c := plot.Curve{Title: "NLL by scale", XLabel: "scale α", YLabel: "NLL of " + r.drawnOf() + ", nats", LogX: true, Marks: []plot.Tick{{At: d.Scale, Label: "default"}}}
	for _, covariance := range []swag.Covariance{swag.LowRankPlusDiagonal, swag.Diagonal} {
		keep := func(p Point) bool {
			return !p.Stale && !p.SWA() && p.Covariance == covariance && (covariance == swag.Diagonal || p.Rank == d.Rank)
		}
		name := map[swag.Covariance]string{swag.LowRankPlusDiagonal: fmt.Sprintf("SWAG, rank %d", d.Rank), swag.Diagonal: "SWAG-Diag"}[covariance]
		if s := r.series(name, keep, func(p Point) float64 { return p.Scale }); len(s.X) > 1 {
			c.Series = append(c.Series, s)
		}
	}
	if len(c.Series) > 0 {
		first, last := c.Series[0].X[0], c.Series[0].X[len(c.Series[0].X)-1]
		if swa, _, ok := r.drawn(&r.Points[0]); ok {
			c.Series = append(c.Series, plot.Series{Name: "SWA", X: []float64{first, last}, Y: []float64{r.nll(swa), r.nll(swa)}})
		}
	}
	return c
}

// rankCurve returns the figure of the NLL by the rank, where 0 means the diagonal alone.
func (r *Result) rankCurve() plot.Curve {
	d := r.Default()
	c := plot.Curve{Title: "NLL by rank", XLabel: "rank K; 0 is the diagonal alone", YLabel: "NLL of " + r.drawnOf() + ", nats", Marks: []plot.Tick{{At: float64(d.Rank), Label: "default"}}}
	s := r.series(fmt.Sprintf("scale %g", d.Scale), func(p Point) bool { return !p.Stale && p.Scale == d.Scale },
		func(p Point) float64 { return float64(p.Rank) })
	if len(s.X) > 1 {
		c.Series = []plot.Series{s}
	}
	return c
}

// series returns the NLL of some settings. The bars show the interval of the difference to the default. If a bar does
// not reach the default's NLL, the difference is more than chance.
func (r *Result) series(name string, keep func(Point) bool, x func(Point) float64) plot.Series {
	points := slices.Clone(r.Points)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(x(a), x(b)) })
	s := plot.Series{Name: name}
	e, _, ok := r.drawn(r.Default())
	if !ok {
		return s
	}
	standard := r.nll(e)
	for _, p := range points {
		if keep(p) {
			e, differences, _ := r.drawn(&p)
			s.X, s.Y = append(s.X, x(p)), append(s.Y, r.nll(e))
			d := differences[r.loss().Key] // zero for the default
			s.Lower, s.Upper = append(s.Lower, standard+d.Low), append(s.Upper, standard+d.High)
		}
	}
	return s
}
