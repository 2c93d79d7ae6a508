package main

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/swag"
)

// sweepPage makes a report.
func sweepPage(s *ensemble.Sweep, r *ensemble.SweepResult, bn *batchNorm, runtime string) *report.Report {
	page := &report.Report{Title: "Settings of SWAG", Verdict: sweepVerdict(s, r),
		Provenance: provenance(s.Network.Posterior, runtime)}
	page.Warnings = bn.warnings()
	for _, w := range r.Warnings {
		page.Warnings = append(page.Warnings, w.Error())
	}
	page.Provenance = append(page.Provenance, sourceFacts("test", s.Test)...)
	page.Provenance = append(page.Provenance, sourceFacts("validation", s.Validation)...)
	page.Provenance = append(page.Provenance, sourceFacts("batch norm", s.BatchNorm.Data)...)
	page.Facts = []report.Fact{
		fact("test images", "%s", report.Thousands(s.Test.Len())),
		fact("members", "%s", report.Thousands(r.Members.Members)),
		fact("default", "%v", r.Default()),
		fact("seed", "%d", s.Seed),
	}
	if s.Validation != nil {
		page.Facts = append(page.Facts, fact("validation images", "%s", report.Thousands(s.Validation.Len())))
	}
	page.Facts = append(page.Facts, bn.facts()...)
	page.Tables = []report.NamedTable{
		{Title: "Settings", Explanation: "Differences of the NLL are to the paper's default setting, with 95 % paired bootstrap intervals over the test images.", Table: sweepTable(r)},
		{Title: "Number of members", Table: membersTable(r)},
	}
	page.Sweeps = append(page.Sweeps, membersCurve(r))
	for _, c := range []plot.Curve{scaleCurve(r), rankCurve(r)} {
		if len(c.Series) > 0 {
			page.Sweeps = append(page.Sweeps, c)
		}
	}
	return page
}

// provenance says which posterior it was, of which checkpoints, and what ran it.
func provenance(p *swag.Posterior, runtime string) []report.Fact {
	out := []report.Fact{fact("ONNX Runtime", "%s", runtime), fact("posterior "+p.Path, "%s", p.ID)}
	for _, ck := range p.Checkpoints {
		out = append(out, fact("checkpoint "+ck.Path, "%s", ck.SHA256))
	}
	return out
}

// fact is one that a report states.
func fact(name, format string, args ...any) report.Fact {
	return report.Fact{Name: name, Value: fmt.Sprintf(format, args...)}
}

// membersCurve is the paper's figure of the NLL by the number of members.
func membersCurve(r *ensemble.SweepResult) plot.Curve {
	var line, band plot.Series
	line.Name, band.Name = "members in their order", "any choice of members, 90 %"
	var swa plot.Series
	swa.Name = "SWA"
	for _, p := range r.Curve {
		x := float64(p.Members)
		line.X, line.Y = append(line.X, x), append(line.Y, p.NLL)
		band.X, band.Y = append(band.X, x), append(band.Y, p.AnyOrder.Mean)
		band.Lower, band.Upper = append(band.Lower, p.AnyOrder.Low), append(band.Upper, p.AnyOrder.High)
		swa.X, swa.Y = append(swa.X, x), append(swa.Y, r.Points[0].NLL)
	}
	c := plot.Curve{Title: "NLL by the number of members", XLabel: "members", YLabel: "NLL, nats", LogX: true, Series: []plot.Series{line, band, swa}, Note: membersVerdict(r.Members)}
	if n := r.Members.Enough; n > 0 && n <= r.Members.Members {
		c.Marks = []plot.Tick{{At: float64(n), Label: "enough"}}
	}
	return c
}

// scaleCurve is the paper's figure of the NLL by the scale.
func scaleCurve(r *ensemble.SweepResult) plot.Curve {
	d := r.Default()
	c := plot.Curve{Title: "NLL by scale", XLabel: "scale α", YLabel: "NLL, nats", LogX: true, Marks: []plot.Tick{{At: d.Scale, Label: "default"}}}
	for _, covariance := range []swag.Covariance{swag.LowRankPlusDiagonal, swag.Diagonal} {
		keep := func(p ensemble.SweepPoint) bool {
			return !p.Stale && !p.SWA() && p.Covariance == covariance && (covariance == swag.Diagonal || p.Rank == d.Rank)
		}
		name := map[swag.Covariance]string{swag.LowRankPlusDiagonal: fmt.Sprintf("SWAG, rank %d", d.Rank), swag.Diagonal: "SWAG-Diag"}[covariance]
		if s := sweepSeries(r, name, keep, func(p ensemble.SweepPoint) float64 { return p.Scale }); len(s.X) > 1 {
			c.Series = append(c.Series, s)
		}
	}
	if len(c.Series) > 0 {
		first, last := c.Series[0].X[0], c.Series[0].X[len(c.Series[0].X)-1]
		c.Series = append(c.Series, plot.Series{Name: "SWA", X: []float64{first, last}, Y: []float64{r.Points[0].NLL, r.Points[0].NLL}})
	}
	return c
}

// rankCurve shows the NLL by the rank, which is 0 with the diagonal alone.
func rankCurve(r *ensemble.SweepResult) plot.Curve {
	d := r.Default()
	c := plot.Curve{Title: "NLL by rank", XLabel: "rank K; 0 is the diagonal alone", YLabel: "NLL, nats", Marks: []plot.Tick{{At: float64(d.Rank), Label: "default"}}}
	s := sweepSeries(r, fmt.Sprintf("scale %g", d.Scale), func(p ensemble.SweepPoint) bool { return !p.Stale && p.Scale == d.Scale },
		func(p ensemble.SweepPoint) float64 { return float64(p.Rank) })
	if len(s.X) > 1 {
		c.Series = []plot.Series{s}
	}
	return c
}

// sweepSeries draws the NLL of some settings. The bars are of the differences to
// the default, so that a bar that does not reach the default's NLL is a difference
// that is more than chance.
func sweepSeries(r *ensemble.SweepResult, name string, keep func(ensemble.SweepPoint) bool, x func(ensemble.SweepPoint) float64) plot.Series {
	points := slices.Clone(r.Points)
	slices.SortStableFunc(points, func(a, b ensemble.SweepPoint) int {
		switch {
		case x(a) < x(b):
			return -1
		case x(a) > x(b):
			return 1
		}
		return 0
	})
	s := plot.Series{Name: name}
	standard := r.Default().NLL
	for _, p := range points {
		if keep(p) {
			s.X, s.Y = append(s.X, x(p)), append(s.Y, p.NLL)
			s.Lower, s.Upper = append(s.Lower, standard+p.NLLDifference.Low), append(s.Upper, standard+p.NLLDifference.High)
		}
	}
	return s
}
