package landscape

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/report"
)

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
