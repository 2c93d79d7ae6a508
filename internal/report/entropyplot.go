package report

import (
	"cmp"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
)

// sharesOf are the counts of a histogram as parts of its total, with what lies
// below and above it at the ends.
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

// drawable reports whether the edges are those of the counts.
func drawableHistogram(h *calibrate.Histogram) bool {
	if len(h.Counts) == 0 || len(h.Edges) != len(h.Counts)+1 {
		return false
	}
	return ascending(h.Edges)
}

func logarithmicHistogram(h *calibrate.Histogram) bool {
	return h.Edges[0] > 0 && h.Edges[len(h.Edges)-1]/h.Edges[0] > 100
}

// maxLarge is the number of figures of one kind that may be large.
const maxLarge = 2

// entropyFigures share their axes as far as they can, so that they compare.
func (r *Report) entropyFigures() []figure {
	var pairs []HistogramPair
	highest := 0.0
	for _, p := range r.Entropies {
		if !drawableHistogram(&p.In) || !drawableHistogram(&p.Out) {
			continue
		}
		pairs = append(pairs, p)
		for _, share := range append(sharesOf(&p.In), sharesOf(&p.Out)...) {
			highest = max(highest, share)
		}
	}
	var below, above bool
	for _, p := range pairs {
		below = below || p.In.Below+p.Out.Below > 0
		above = above || p.In.Above+p.Out.Above > 0
	}
	figures := make([]figure, len(pairs))
	for i, p := range pairs {
		small := len(pairs) > maxLarge
		d := p.draw(cmp.Or(highest, 1), below, above, small)
		figures[i] = figure{name: fileName("entropy", p.Name), drawing: d, note: p.Note, small: small}
	}
	return figures
}

// draw shares the highest part with other figures, and whether there are places
// for what lies below and above the edges.
func (p *HistogramPair) draw(highest float64, below, above, small bool) *drawing {
	inName, outName := cmp.Or(p.InName, "in domain"), cmp.Or(p.OutName, "out of domain")
	width, height := chartWidth, chartHeight*0.8
	if small {
		width, height = smallWidth, smallHeight*0.8
	}
	x, edges := p.axis(below, above)
	y := axis{label: "share of images", max: highest * 1.05, percent: true}
	desc := fmt.Sprintf("Two histograms as shares of images: %s and %s.", inName, outName)
	c := newChart("Entropy: "+p.Name, desc, width, height, x, y)
	in, out := seriesPen(0), seriesPen(1)
	in.fill, out.fill, out.dash = 0.3, 0.15, dashed
	c.steps(in, edges[0], sharesOf(&p.In))
	c.steps(out, edges[1], sharesOf(&p.Out))
	for i, name := range []string{inName, outName} {
		sample := []pen{in, out}[i]
		c.key(name, func(d *drawing, x0, x1, y float64) { d.rect(sample, x0, y-5, x1, y+5) })
	}
	c.legend()
	return &c.drawing
}

// axis returns the horizontal axis and the edges of both histograms, extended by
// a place for what lies below and above, which has a tick of its own.
func (p *HistogramPair) axis(below, above bool) (axis, [2][]float64) {
	h := &p.In
	first, last := min(h.Edges[0], p.Out.Edges[0]), max(h.Edges[len(h.Edges)-1], p.Out.Edges[len(p.Out.Edges)-1])
	a := axis{label: cmp.Or(p.Label, "predictive entropy, nats"), min: first, max: last}
	wider := func(x, by float64) float64 { return x + by*(last-first) }
	if logarithmicHistogram(&p.In) && logarithmicHistogram(&p.Out) {
		a.kind = logarithmic
		wider = func(x, by float64) float64 { return x * math.Pow(last/first, by) }
	}
	a.from, a.to = 0, chartWidth // about: enough to choose ticks
	ticks := a.ticks(6)
	const place = 0.06 // of the span
	if below {
		a.min = wider(first, -place)
		ticks = append([]Tick{{wider(first, -place/2), "< " + shortNumber(first)}}, withoutNear(ticks, &a, first)...)
	}
	if above {
		a.max = wider(last, place)
		ticks = append(withoutNear(ticks, &a, last), Tick{wider(last, place/2), "> " + shortNumber(last)})
	}
	a.named = ticks
	var edges [2][]float64
	for i, e := range [][]float64{h.Edges, p.Out.Edges} {
		edges[i] = append(append([]float64{wider(e[0], -place)}, e...), wider(e[len(e)-1], place))
	}
	return a, edges
}

// withoutNear leaves out ticks that would touch that of the place beyond x.
func withoutNear(ticks []Tick, a *axis, x float64) []Tick {
	var out []Tick
	for _, t := range ticks {
		if d := a.pos(t.At) - a.pos(x); d*d > 40*40 {
			out = append(out, t)
		}
	}
	return out
}

// steps draws the outline of a histogram. What is empty at its ends is left out.
func (c *chart) steps(in pen, edges, shares []float64) {
	for len(shares) > 0 && shares[0] == 0 {
		edges, shares = edges[1:], shares[1:]
	}
	for len(shares) > 0 && shares[len(shares)-1] == 0 {
		edges, shares = edges[:len(shares)], shares[:len(shares)-1]
	}
	if len(shares) == 0 {
		return
	}
	outline := []at{c.place(edges[0], 0)}
	for i, share := range shares {
		outline = append(outline, c.place(edges[i], share), c.place(edges[i+1], share))
	}
	c.area(in, append(outline, c.place(edges[len(edges)-1], 0))...)
}
