package plot

import (
	"cmp"
	"slices"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A lineEnd is the right end of a series, with its name.
type lineEnd struct {
	series int
	name   string
	at     plotter.XY
}

// endGap is the distance between the axes and the names, and endRow that between names.
const (
	endGap = 16.0
	endRow = 15.0
)

// nameEnds writes the names of series next to their ends, on the right of the axes. Readers then need no legend. If
// the names do not fit below each other, it puts them into the legend.
func (f *Figure) nameEnds(ends []lineEnd) {
	if float64(len(ends))*endRow > f.height {
		for _, e := range ends {
			f.seriesKey(e.series, e.name)
		}
		return
	}
	widest := 0.0
	ends = slices.Clone(ends)
	for i, e := range ends {
		ends[i].name = fitted(e.name, 0.27*f.width, smallText)
		widest = max(widest, textWidth(ends[i].name, smallText))
		f.named = append(f.named, e.name)
	}
	f.right = endGap + widest
	f.xTicks()
	slices.SortStableFunc(ends, func(a, b lineEnd) int { return cmp.Compare(a.at.Y, b.at.Y) })
	f.add(plotFunc(func(c draw.Canvas, p *gonum.Plot) {
		said := style(ink, smallText, false)
		said.YAlign = draw.YCenter
		from := make([]float64, len(ends))
		for i, e := range ends {
			from[i] = c.Y(p.Y.Norm(e.at.Y)).Points()
		}
		for i, y := range spread(from, endRow, c.Min.Y.Points(), c.Max.Y.Points()) {
			x := c.X(p.X.Norm(ends[i].at.X))
			c.StrokeLine2(pen(line, 1, 0), x+markSize, vg.Length(from[i]), c.Max.X+endGap-3, vg.Length(y))
			c.FillText(said, vg.Point{X: c.Max.X + endGap, Y: vg.Length(y) + said.FontExtents().Descent/2}, ends[i].name)
		}
	}))
}

// spread moves ascending places apart, as little as possible, within low and high. Places that push each other form a
// block whose middle stays (pool adjacent violators).
func spread(places []float64, apart, low, high float64) []float64 {
	type block struct {
		sum float64 // of the places, each minus its required distance from the first
		n   int
	}
	var blocks []block
	for i, p := range places {
		b := block{p - apart*float64(i), 1}
		for k := len(blocks) - 1; k >= 0 && blocks[k].sum*float64(b.n) > b.sum*float64(blocks[k].n); k-- {
			b = block{b.sum + blocks[k].sum, b.n + blocks[k].n}
			blocks = blocks[:k]
		}
		blocks = append(blocks, b)
	}
	var out []float64
	for _, b := range blocks {
		first := min(max(b.sum/float64(b.n), low+apart/2), high-apart/2-apart*float64(len(places)-1))
		for range b.n {
			out = append(out, first+apart*float64(len(out)))
		}
	}
	return out
}
