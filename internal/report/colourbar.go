package report

import (
	"math"
	"slices"
)

// colourBar shows the bands below the chart, with their lower ends.
func (c *chart) colourBar(name string, levels []float64, top float64) {
	y := c.bottom + 8
	width := (c.x1 - c.x0) / float64(len(levels))
	every := 1
	for _, level := range append(slices.Clone(levels), top) {
		every = max(every, int(math.Ceil((textWidth(shortLevel(level), smallText)+6)/width)))
	}
	for i, level := range levels {
		x := c.x0 + float64(i)*width
		c.rect(pen{colour: surfaceColour(float64(i) / max(1, float64(len(levels)-1))), fill: 1, stroke: 0.4}, x, y, x+width, y+10)
		if i == 0 || i%every == 0 && len(levels)-i >= every {
			c.colourTick(x, y, level)
		}
	}
	if top > levels[0] {
		c.colourTick(c.x1, y, top)
	}
	c.bottom = y + 15 + smallText
	c.below(name + " (bands are narrower at low values)")
}

func shortLevel(value float64) string { return significant(value, 3) }

// colourTick names a place of a colour bar whose upper side is at y.
func (c *chart) colourTick(x, y, value float64) {
	c.line(pen{colour: colourSoft, stroke: 1}, at{x, y + 10}, at{x, y + 14})
	text := shortLevel(value)
	middle := min(x, c.width-textWidth(text, smallText)/2-2)
	c.text(colourSoft, label{at: at{middle, y + 15 + smallText}, text: text, anchor: 0.5, size: smallText})
}
