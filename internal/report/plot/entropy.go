package plot

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/swagwrap/swagwrap/calibrate"
)

// HistogramPair holds the entropies, or another measure of uncertainty, of one method's predictions in and out of
// domain, with the same edges. Each histogram is drawn as shares of its own total, with the values below and above
// the edges at the ends. Positive edges that span more than two decades give a logarithmic axis.
type HistogramPair struct {
	Name    string // the method
	In, Out calibrate.Histogram
	Note    string // such as AUROC and symmetrised KL
	Label   string // of the axis, unless the values are entropies
}

// sharesOf returns the counts of a histogram as parts of its total, with the values below and above it at the ends.
func sharesOf(h *calibrate.Histogram) []float64 {
	counts := append(append([]int{h.Below}, h.Counts...), h.Above)
	total := 0
	for i, n := range counts {
		counts[i] = max(n, 0)
		total += counts[i]
	}
	out := make([]float64, len(counts))
	for i, n := range counts {
		out[i] = float64(n) / float64(max(total, 1))
	}
	return out
}

// drawable reports whether the edges fit the counts of both histograms.
func (p *HistogramPair) drawable() bool {
	n := len(p.In.Counts)
	return n > 0 && len(p.In.Edges) == n+1 && len(p.Out.Counts) == n && ascending(p.In.Edges) && slices.Equal(p.In.Edges, p.Out.Edges)
}

// maxLarge is the largest number of figures of one kind that are large.
const maxLarge = 2

// DrawEntropies returns a figure for each pair. They share their axes as far as possible, so that readers can compare
// them.
func DrawEntropies(all []HistogramPair) []*Figure {
	var pairs []HistogramPair
	var below, above bool
	highest := 0.0
	for _, p := range all {
		if !p.drawable() {
			continue
		}
		pairs = append(pairs, p)
		highest = max(highest, slices.Max(sharesOf(&p.In)), slices.Max(sharesOf(&p.Out)))
		below, above = below || p.In.Below+p.Out.Below > 0, above || p.In.Above+p.Out.Above > 0
	}
	figures := make([]*Figure, len(pairs))
	for i, p := range pairs {
		figures[i] = p.draw(cmp.Or(highest, 1), below, above, len(pairs) > maxLarge)
	}
	return figures
}

// draw draws the pair. The argument highest is the largest share in all figures; below and above reserve places for
// the values outside the edges.
func (p *HistogramPair) draw(highest float64, below, above, small bool) *Figure {
	width, height := chartWidth, chartHeight*0.8
	if small {
		width, height = smallWidth, smallHeight*0.8
	}
	x, edges := p.axis(below, above)
	y := axis{label: "share of images", max: highest * 1.05, percent: true}
	f := newFigure(p.title()+": "+p.Name, "Two histograms as shares of images: in domain and out of domain.", width, height, x, y)
	f.Name, f.Note, f.Small = fileName("entropy", p.Name), p.Note, small
	in := f.steps(edges, sharesOf(&p.In))
	in.Color, in.LineStyle = tint{seriesRole, 0.3}, pen(seriesRole, 1.8, 0)
	out := f.steps(edges, sharesOf(&p.Out))
	out.Color, out.LineStyle = tint{seriesRole + 1, 0.15}, pen(seriesRole+1, 1.8, 1)
	f.key("in domain", in)
	f.key("out of domain", out)
	return f.finish()
}

func (p *HistogramPair) title() string {
	if p.Label != "" {
		return "Uncertainty"
	}
	return "Entropy"
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
	var ends []Tick
	numbers := a.ticks(6)
	const place = 0.06 // of the span
	if below {
		a.min = wider(first, -place)
		ends = append(ends, Tick{wider(first, -place/2), "< " + shortNumber(first)})
	}
	if above {
		a.max = wider(last, place)
		ends = append(ends, Tick{wider(last, place/2), "> " + shortNumber(last)})
	}
	a.named = append(ends, numbers...) // numbers that would touch an end are dropped
	return a, slices.Concat([]float64{wider(first, -place)}, edges, []float64{wider(last, place)})
}

// steps adds the outline of a histogram without empty bins at its ends.
func (f *Figure) steps(edges, shares []float64) *plotter.Polygon {
	for len(shares) > 0 && shares[0] == 0 {
		edges, shares = edges[1:], shares[1:]
	}
	for len(shares) > 0 && shares[len(shares)-1] == 0 {
		edges, shares = edges[:len(shares)], shares[:len(shares)-1]
	}
	p := &plotter.Polygon{}
	if len(shares) > 0 {
		ring := plotter.XYs{{X: edges[0]}}
		for i, share := range shares {
			ring = append(ring, plotter.XY{X: edges[i], Y: share}, plotter.XY{X: edges[i+1], Y: share})
		}
		p.XYs = []plotter.XYs{append(ring, plotter.XY{X: edges[len(edges)-1]})}
	}
	f.add(p)
	return p
}
