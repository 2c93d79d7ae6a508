package landscape

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/swag/geometry"
)

// loss returns the name of the loss in lines and planes.
func (g shown) loss() string {
	if g.Decay > 0 {
		return fmt.Sprintf("NLL + %g/2·‖θ‖²", g.Decay)
	}
	return "NLL"
}

func (g shown) spectrum() (rows []study.Row) {
	sum := 0.0
	for i, v := range g.Geometry.Eigenvalues {
		share := v / g.Geometry.LowRankTrace
		sum += share
		rows = append(rows, study.Row{
			study.Number("direction", "direction", i+1, fmt.Sprint(i+1)).Aligned(report.Right),
			right("low_rank_variance", "low-rank variance", v),
			study.Shown("share", report.Percent(share, 1)),
			study.Shown("sum", report.Percent(sum, 1)).Droppable(1),
			right("diagonal_variance", "diagonal variance", g.Geometry.Diagonal[i][i]).Droppable(2),
			right("standard_deviation", "standard deviation", g.Deviation(i)),
		})
	}
	return rows
}

// right returns a cell with four digits.
func right(key, header string, v float64) study.Cell {
	return study.Number(key, header, v, fourDigits(v)).Aligned(report.Right)
}

// points returns points with their distances along directions 1, 2 …; the others are 0. The loss includes the weight decay.
func (g shown) points(points []Point) []study.Row {
	return study.Rows(points, func(p Point) study.Row {
		return append(study.Fields("at", p.At, "nll", p.NLL(), "loss", p.Loss()), study.Scores("", p.Main()[:1])...)
	})
}

func (g shown) sections() []study.Section {
	n, accuracy := decimals(g.Lines), g.Lines[0].Points[0].Main()[0].Header
	return []study.Section{
		{Title: "Spectrum of the covariance", Folded: true, Rows: g.spectrum(), Notes: []string{
			fmt.Sprintf("Variances are squared Euclidean distances in weight space, without the scale; the standard deviation is a "+
				"distance, of members at scale %g", g.Scale),
			fmt.Sprintf("the low-rank part is as concentrated as %s equal directions, the whole covariance as %s (participation ratios)",
				report.Fixed(g.Geometry.LowRankDimension, 1), report.Fixed(g.Geometry.Dimension, 1)),
		}},
		g.along("Loss", g.loss(), func(p Point) string { return report.Fixed(p.Loss(), n) }),
		g.along("Accuracy", accuracy, func(p Point) string { return study.Format(p.Main()[0]) }),
	}
}

// along shows a figure of the points on the lines.
func (g shown) along(title, header string, format func(Point) string) study.Section {
	s := study.Section{Title: title + " along the directions", Folded: true,
		Notes: []string{"σ is the posterior standard deviation along the direction; 0 is SWA"}}
	for k := range g.Grid {
		row := study.Row{study.Shown(header+" at", report.Signed(g.Lines[0].Points[k].At[0]/g.Lines[0].Deviation, 2)+" σ")}
		for _, l := range g.Lines {
			row = append(row, study.Shown(fmt.Sprintf("direction %d", l.I+1), format(l.Points[k])).Droppable(l.I))
		}
		s.Rows = append(s.Rows, row)
	}
	return s
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

// row returns all numbers, unrounded. Numbers that are not finite become null.
func (g shown) row() study.Row {
	s := g.Geometry
	lines := study.Rows(g.Lines, func(l Line) study.Row { return study.Fields("direction", l.I+1, "points", g.points(l.Points)) })
	planes := study.Rows(g.Planes, func(p Plane) study.Row {
		var rows [][]study.Row // along y
		for _, row := range p.Points {
			rows = append(rows, g.points(row))
		}
		return study.Fields("directions", [2]int{p.I + 1, p.J + 1}, "covariance", [2][2]float64{{p.XX, p.XY}, {p.XY, p.YY}},
			"x", p.X, "y", p.Y, "points", rows)
	})
	iterates := study.Rows(s.Positions(), func(it geometry.Position) study.Row {
		return study.Fields("model", it.Model, "at", it.Along, "distance", it.Distance)
	})
	return study.Fields("examples", g.Data.Len(), "weights", g.Network.Posterior.Len(), "rank", s.Rank, "scale", g.Scale,
		"weight_decay", g.Decay, "diagonal_trace", s.DiagonalTrace, "low_rank_trace", s.LowRankTrace,
		"dimension", s.Dimension, "low_rank_dimension", s.LowRankDimension, "spectrum", g.spectrum(), "lines", lines, "planes", planes,
		"warnings", g.Statistics.Warnings(), "data_notes", g.Statistics.Notes(), "batch_norm", g.Statistics.Records[0],
		"iterates", iterates, "verdict", g.verdict())
}

// verdict returns the result in plain words.
func (g shown) verdict() []string {
	out := lineVerdict(g.loss(), g.Extent, g.Lines)
	s := g.Geometry
	total := s.DiagonalTrace + s.LowRankTrace
	return append(out,
		fmt.Sprintf("The low-rank part has %s of the variance, in %s. The diagonal part has %s, spread over all weights.",
			report.Percent(s.LowRankTrace/total, 1), report.Plural(s.Directions(), "direction"), report.Percent(s.DiagonalTrace/total, 1)),
	)
}

// lineVerdict describes how much the loss rises towards the ends of the lines, which are equally many posterior
// standard deviations away. It also reports where the loss falls.
func lineVerdict(loss string, extent float64, lines []Line) []string {
	least, most, n := 0, 0, decimals(lines)
	rise := make([]float64, len(lines))
	lower, at, along := 0.0, 0.0, 0
	for i, l := range lines {
		middle := l.Points[len(l.Points)/2].Loss()
		rise[i] = (l.Points[0].Loss()+l.Points[len(l.Points)-1].Loss())/2 - middle
		if rise[i] < rise[least] {
			least = i
		}
		if rise[i] > rise[most] {
			most = i
		}
		for _, p := range l.Points {
			if d := p.Loss() - middle; d < lower {
				lower, at, along = d, p.At[l.I]/l.Deviation, l.I
			}
		}
	}
	text := fmt.Sprintf("At %g posterior standard deviations from SWA the %s rises by %s along direction %d.", extent, loss,
		report.Signed(rise[most], n), lines[most].I+1)
	if len(lines) > 1 {
		text = fmt.Sprintf("At %g posterior standard deviations from SWA the %s changes by %s (direction %d) to %s (direction %d), in "+
			"the mean of both sides.",
			extent, loss, report.Signed(rise[least], n), lines[least].I+1, report.Signed(rise[most], n), lines[most].I+1)
	}
	lowest := "Nowhere on these lines is it lower than at SWA."
	if report.Signed(lower, n) != report.Fixed(0, n) {
		lowest = fmt.Sprintf("The lowest on these lines is %s, at %s standard deviations along direction %d.", report.Signed(lower, n),
			report.Signed(at, 2), along+1)
	}
	return []string{text, lowest}
}
