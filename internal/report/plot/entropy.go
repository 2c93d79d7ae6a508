package plot

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/swagwrap/swagwrap/calibrate/detect"
)

// HistogramPair holds the entropies, or another measure of uncertainty, of one method's predictions in and out of
// domain, with the same edges. Each histogram is drawn as shares of its own total, with the values below and above
// the edges at the ends. Positive edges that span more than two decades give a logarithmic axis.
type HistogramPair struct {
	Name    string // the method
	In, Out detect.Histogram
	Note    string // such as AUROC and symmetrised KL
	Minor   bool   // the figure is folded
	Label   string // label of the axis, unless the values are entropies
}

// sharesOf returns the counts of a histogram as parts of its total, with the values below and above it at the ends.
func sharesOf(h *detect.Histogram) []float64 {
	counts := append(append([]int{h.Below}, h.Counts...), h.Above)
	total := 0
	for _, n := range counts {
		total += n
	}
	out := make([]float64, len(counts))
	for i, n := range counts {
		out[i] = float64(n) / float64(max(total, 1))
	}
	return out
}

// DrawEntropies returns a figure for each pair. They share their axes as far as possible, so that readers can compare
// them.
func DrawEntropies(pairs []HistogramPair) (figures []*Figure) {
	var below, above bool
	y := shareAxis("share of examples")
	y.max = 0
	for i := range pairs {
		p := &pairs[i]
		y.max = max(y.max, 1.05*slices.Max(sharesOf(&p.In)), 1.05*slices.Max(sharesOf(&p.Out)))
		below, above = below || p.In.Below+p.Out.Below > 0, above || p.In.Above+p.Out.Above > 0
	}
	y.max = cmp.Or(y.max, 1)
	for i := range pairs {
		if p := &pairs[i]; len(p.In.Counts) > 0 {
			figures = append(figures, p.draw(y, below, above))
		}
	}
	return figures
}

// draw draws the pair. below and above reserve places for the values outside the edges.
func (p *HistogramPair) draw(y axis, below, above bool) *Figure {
	title := "Entropy: "
	if p.Label != "" {
		title = "Uncertainty: "
	}
	x, edges := p.axis(below, above)
	f := newFigure(title+p.Name, "Two histograms as shares of examples: in domain and out of domain.", chartWidth, entropyHeight, x, y)
	f.Name, f.Note, f.Folded = fileName("entropy", p.Name), p.Note, p.Minor
	for i, of := range []struct {
		name    string
		h       *detect.Histogram
		opacity float64
	}{{"in domain", &p.In, 0.3}, {"out of domain", &p.Out, 0.15}} {
		outline := &plotter.Polygon{Color: tint{roleOf(i), of.opacity}, LineStyle: pen(roleOf(i), 1.8, i)}
		if ring := steps(edges, sharesOf(of.h)); ring != nil {
			outline.XYs = []plotter.XYs{f.places(ring)}
		}
		f.add(outline)
		f.key(of.name, outline)
	}
	return f
}

// axis returns the horizontal axis and the edges. They are extended by places, with their own ticks, for the values
// below and above.
func (p *HistogramPair) axis(below, above bool) (axis, []float64) {
	edges := p.In.Edges
	first, last := edges[0], edges[len(edges)-1]
	a := axis{label: cmp.Or(p.Label, "predictive entropy, nats"), min: first, max: last}
	wider := func(x, by float64) float64 { return x + by*(last-first) }
	if first > 0 && last/first > 100 {
		a.kind = logarithmic
		wider = func(x, by float64) float64 { return x * math.Pow(last/first, by) }
	}
	numbers := a.numbers(6)
	const place = 0.06 // as a share of the span
	if below {
		a.min = wider(first, -place)
		a.named = append(a.named, Tick{wider(first, -place/2), "< " + shortNumber(first)})
	}
	if above {
		a.max = wider(last, place)
		a.named = append(a.named, Tick{wider(last, place/2), "> " + shortNumber(last)})
	}
	a.named = append(a.named, numbers...) // numbers that would touch an end are dropped
	return a, slices.Concat([]float64{wider(first, -place)}, edges, []float64{wider(last, place)})
}

// steps returns the outline of a histogram without empty bins at its ends, or nil if all are empty.
func steps(edges, shares []float64) (ring plotter.XYs) {
	filled := func(share float64) bool { return share > 0 }
	first := slices.IndexFunc(shares, filled)
	if first < 0 {
		return nil
	}
	ring = plotter.XYs{{X: edges[first]}}
	for i := first; slices.ContainsFunc(shares[i:], filled); i++ {
		ring = append(ring, plotter.XY{X: edges[i], Y: shares[i]}, plotter.XY{X: edges[i+1], Y: shares[i]})
	}
	return append(ring, plotter.XY{X: ring[len(ring)-1].X})
}
