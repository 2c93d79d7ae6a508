package landscape

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
)

// Show declares what a landscape says.
func (g *Result) Show() *study.Document {
	s := shown{g}
	settings := []report.Fact{
		study.Fact(dataset.Unit(g.Data)+"s", "%s", report.Thousands(g.Data.Len())),
		study.Fact("weights", "%s", report.Thousands(int(g.Network.Posterior.Len()))),
		study.Fact("rank", "%d", g.Geometry.Rank),
		study.Fact("scale", "%g", g.Scale),
		study.Fact("loss", "%s", s.loss()),
	}
	return &study.Document{
		Title: "Geometry of the posterior",
		Heading: fmt.Sprintf("%s, %s weights, rank %d, scale %g", report.Plural(s.Data.Len(), dataset.Unit(s.Data)),
			report.Thousands(int(s.Network.Posterior.Len())), s.Geometry.Rank, s.Scale),
		Settings:  settings,
		BatchNorm: &g.Statistics,
		Verdict:   s.verdict(),
		Next:      []study.Step{study.Sweep{Training: study.Training(g.BatchNorm.Data), Posterior: g.Network.Posterior.Path}},
		Sections:  s.sections(),
		Figures:   s.figures,
		JSON:      s.row(),
		Provenance: study.Provenance(g.Runtime, g.Statistics.Networks, study.Used{As: "data", Data: g.Data},
			study.Used{As: "batch norm", Data: g.BatchNorm.Data}),
	}
}

// shown says what a landscape shows. It computes no losses.
type shown struct{ *Result }

func (g shown) figures(page *report.Report) {
	s := g.Geometry
	eigenvalues := plot.Series{Name: "eigenvalue"}
	for i, v := range s.Eigenvalues {
		if v > 0 { // a covariance of rank K−1 has one zero, up to rounding
			eigenvalues.X, eigenvalues.Y = append(eigenvalues.X, float64(i+1)), append(eigenvalues.Y, v)
		}
	}
	page.Spectrum = []plot.Curve{{
		Title:  "Spectrum",
		XLabel: "direction",
		YLabel: "variance along the direction",
		LogY:   true,
		Series: []plot.Series{eigenvalues},
		Note: fmt.Sprintf("Eigenvalues of the low-rank part, squared distances in weight space without the scale. They add up to %s; "+
			"the diagonal part has %s more.",
			fourDigits(s.LowRankTrace), fourDigits(s.DiagonalTrace)),
	}}
	page.Lines = g.lineCurves()
	for _, plane := range g.Planes {
		page.Surfaces = append(page.Surfaces, g.surface(plane))
	}
	if figures := plot.DrawSurfaces(page.Surfaces); figures != nil {
		page.Lead, page.Surfaces = figures[0], page.Surfaces[1:]
	}
}

// lineCurves returns the paper's left panel, in both units.
func (g shown) lineCurves() []plot.Curve {
	label := g.loss() + ", nats"
	norms := plot.Curve{Title: "Loss by distance in weight space", XLabel: "Euclidean distance from SWA", YLabel: label,
		Note: "Each line goes equally many posterior standard deviations to both sides: the wider the posterior, the longer the line. " +
			"Where SWAG fits, longer lines are flatter."}
	deviations := plot.Curve{
		Title:  "Loss by posterior standard deviations",
		XLabel: "posterior standard deviations from SWA",
		YLabel: label,
		Note:   "Where SWAG fits, the lines rise alike.",
	}
	for _, l := range g.Lines {
		name := fmt.Sprintf("direction %d", l.I+1)
		a, b := plot.Series{Name: name}, plot.Series{Name: name}
		for _, p := range l.Points {
			a.X, a.Y = append(a.X, p.At[l.I]), append(a.Y, p.Loss())
			b.X, b.Y = append(b.X, p.At[l.I]/l.Deviation), append(b.Y, p.Loss())
		}
		norms.Series, deviations.Series = append(norms.Series, a), append(deviations.Series, b)
	}
	return []plot.Curve{norms, deviations}
}

// surface returns the figure of a plane. It has the contours of SWAG's density at one and two standard deviations,
// and the iterates within the window.
func (g shown) surface(plane Plane) plot.Surface {
	s := plot.Surface{
		Title:  fmt.Sprintf("Loss in the plane of directions %d and %d", plane.I+1, plane.J+1),
		XLabel: fmt.Sprintf("distance along direction %d", plane.I+1),
		YLabel: fmt.Sprintf("distance along direction %d", plane.J+1),
		ZLabel: g.loss() + ", nats",
		X:      plane.X,
		Y:      plane.Y,
	}
	for _, row := range plane.Points {
		var z []float64
		for _, p := range row {
			z = append(z, p.Loss())
		}
		s.Z = append(s.Z, z)
	}
	for r := 1.0; r <= math.Min(2, g.Extent); r++ {
		s.Ellipses = append(s.Ellipses, plot.Ellipse{XX: plane.XX, XY: plane.XY, YY: plane.YY, Radius: r, Label: fmt.Sprintf("%gσ", r)})
	}
	swa, sgd := plot.PointSet{Name: "SWA", X: []float64{0}, Y: []float64{0}}, plot.PointSet{Name: "SGD iterates", Path: true}
	all := g.Geometry.Positions()
	for _, it := range all {
		x, y := it.Along[plane.I], it.Along[plane.J]
		if math.Abs(x) <= plane.X[len(plane.X)-1] && math.Abs(y) <= plane.Y[len(plane.Y)-1] {
			sgd.X, sgd.Y = append(sgd.X, x), append(sgd.Y, y)
		}
	}
	s.Points = []plot.PointSet{swa}
	if len(sgd.X) > 0 {
		sgd.Path = len(sgd.X) == len(all) // a path with holes would show steps that never happened
		s.Points = append(s.Points, sgd)
	}
	s.Note = fmt.Sprintf("Ellipses hold the scale %g and the diagonal part.", g.Scale)
	if outside := len(all) - len(sgd.X); outside > 0 {
		s.Note += fmt.Sprintf(" %d of the last %d iterates lie outside.", outside, len(all))
	}
	return s
}
