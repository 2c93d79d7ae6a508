package landscape

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
)

// loss returns the name of the loss in lines and planes.
func (g shown) loss() string {
	if g.Decay > 0 {
		return fmt.Sprintf("NLL + %g/2·‖θ‖²", g.Decay)
	}
	return "NLL"
}

// heading returns the settings in one line.
func (g shown) heading() string {
	return fmt.Sprintf("%s, %s weights, rank %d, scale %g", report.Plural(g.Data.Len(), dataset.Unit(g.Data)),
		report.Thousands(int(g.Network.Posterior.Len())), g.Geometry.Rank, g.Scale)
}

// Next returns the step that tries the scales which the figures show.
func (g *Result) Next() []study.Step {
	return []study.Step{study.Sweep{Training: study.Training(g.BatchNorm.Data), Posterior: g.Network.Posterior.Path}}
}

// spectrumTable shows the variance along the directions.
func (g shown) spectrumTable() *report.Table {
	t := report.NewTable(
		report.Column{Header: "direction", Align: report.Right},
		report.Column{Header: "low-rank variance", Align: report.Right},
		report.Column{Header: "share", Align: report.Decimal},
		report.Column{Header: "sum", Align: report.Decimal, Optional: 1},
		report.Column{Header: "diagonal variance", Align: report.Right, Optional: 2},
		report.Column{Header: "standard deviation", Align: report.Right},
	)
	sum := 0.0
	for i, v := range g.Geometry.Eigenvalues {
		share := v / g.Geometry.LowRankTrace
		sum += share
		t.Row(fmt.Sprint(i+1), fourDigits(v), report.Percent(share, 1), report.Percent(sum, 1), fourDigits(g.Geometry.Diagonal[i][i]),
			fourDigits(g.Deviation(i)))
	}
	t.Note(fmt.Sprintf("Variances are squared Euclidean distances in weight space, without the scale; the standard deviation is a "+
		"distance, of members at scale %g", g.Scale))
	t.Note(fmt.Sprintf("the low-rank part is as concentrated as %s equal directions, the whole covariance as %s (participation ratios)",
		report.Fixed(g.Geometry.LowRankDimension, 1), report.Fixed(g.Geometry.Dimension, 1)))
	return t
}

// linesTable shows the loss along the directions.
func (g shown) linesTable() *report.Table {
	n := decimals(g.Lines)
	return g.alongTable(g.loss(), func(p Point) string { return report.Fixed(p.Loss(), n) })
}

func (g shown) accuracyTable() *report.Table {
	return g.alongTable(g.Lines[0].Points[0].Main()[0].Header, func(p Point) string { return study.Cell(p.Main()[0]) })
}

func (g shown) alongTable(what string, cell func(Point) string) *report.Table {
	cols := []report.Column{{Header: what + " at", Align: report.Decimal}}
	for _, l := range g.Lines {
		cols = append(cols, report.Column{Header: fmt.Sprintf("direction %d", l.I+1), Align: report.Decimal, Optional: l.I})
	}
	t := report.NewTable(cols...)
	for k := range g.Grid {
		row := []string{report.Signed(g.Lines[0].Points[k].At[0]/g.Lines[0].Deviation, 2) + " σ"}
		for _, l := range g.Lines {
			row = append(row, cell(l.Points[k]))
		}
		t.Row(row...)
	}
	t.Note("σ is the posterior standard deviation along the direction; 0 is SWA")
	return t
}

// decimals returns the number of decimals for two digits of the smallest loss, which can be near 0 on training data.
func decimals(lines []Line) int {
	n := 4
	for _, l := range lines {
		for _, p := range l.Points {
			if v := math.Abs(p.Loss()); v > 0 && !math.IsInf(v, 0) {
				n = max(n, min(1-int(math.Floor(math.Log10(v))), 8))
			}
		}
	}
	return n
}

// fourDigits formats a number with four digits.
func fourDigits(v float64) string { return fmt.Sprintf("%.4g", v) }

// json returns all numbers, unrounded. Numbers that are not finite become null.
func (g shown) json() any {
	s := g.Geometry
	spectrum, lines, planes, iterates := []study.Object{}, []study.Object{}, []study.Object{}, []study.Object{}
	for i, v := range s.Eigenvalues {
		spectrum = append(spectrum, study.Fields("direction", i+1, "low_rank_variance", v, "diagonal_variance", s.Diagonal[i][i],
			"standard_deviation", g.Deviation(i)))
	}
	for _, l := range g.Lines {
		lines = append(lines, study.Fields("direction", l.I+1, "points", g.pointsJSON(l.Points)))
	}
	for _, p := range g.Planes {
		var rows [][]study.Object // along y
		for _, row := range p.Points {
			rows = append(rows, g.pointsJSON(row))
		}
		planes = append(planes, study.Fields("directions", [2]int{p.I + 1, p.J + 1}, "covariance",
			[2][2]float64{{p.XX, p.XY}, {p.XY, p.YY}}, "x", p.X, "y", p.Y, "points", rows))
	}
	for _, it := range s.Positions() {
		iterates = append(iterates, study.Fields("model", it.Model, "at", it.Along, "distance", it.Distance))
	}
	return study.Fields("examples", g.Data.Len(), "weights", g.Network.Posterior.Len(), "rank", s.Rank, "scale", g.Scale,
		"weight_decay", g.Decay,
		"diagonal_trace", s.DiagonalTrace, "low_rank_trace", s.LowRankTrace, "dimension", s.Dimension, "low_rank_dimension",
		s.LowRankDimension,
		"spectrum", spectrum, "lines", lines, "planes", planes, "warnings", g.Statistics.Warnings(), "data_notes", g.Statistics.Notes(),
		"batch_norm", g.Statistics.Records[0],
		"iterates", iterates, "verdict", g.verdict())
}

// pointsJSON returns points with their distances along directions 1, 2 …; the others are 0. The loss includes the
// weight decay.
func (g shown) pointsJSON(points []Point) (out []study.Object) {
	for _, p := range points {
		out = append(out, append(study.Fields("at", p.At, "nll", study.Finite(p.NLL()), "loss", study.Finite(p.Loss())),
			study.Scores("", p.Main()[:1])...))
	}
	return out
}
