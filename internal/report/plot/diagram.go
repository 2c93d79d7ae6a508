package plot

import (
	"fmt"
	"math"
	"slices"
)

// A diagram holds a line for each method that has one, which keeps its colour and
// mark in all figures.
type diagram struct {
	names []string
	lines [][]seriesPoint
	reach []float64 // how far from zero each is
	dense bool      // a line has so many points that only some are marked
}

func (d *diagram) add(name string, points []seriesPoint, reach float64) {
	if len(points) > 0 {
		d.names, d.lines, d.reach = append(d.names, name), append(d.lines, points), append(d.reach, reach)
	}
}

// farOff is how many times the median a method reaches that is not shown in a
// close-up.
const farOff = 3

// closeOf returns which of the methods reach at most factor times their median.
func (d *diagram) closeOf(factor float64) []int {
	sorted := slices.Sorted(slices.Values(d.reach))
	var which []int
	for i, far := range d.reach {
		if far <= factor*sorted[(len(sorted)-1)/2] || math.IsInf(factor, 1) {
			which = append(which, i)
		}
	}
	return which
}

// overview draws all methods in one figure and, if some are far off, the others in
// a close-up. axes returns a figure without them.
func (d *diagram) overview(name, title, of string, axes func(title string, which []int) *Figure) []*Figure {
	var figures []*Figure
	draw := func(name, title string, which []int) {
		f := axes(title, which)
		f.Name = name
		for _, i := range which {
			f.curve(seriesPen(i), places(d.lines[i]))
		}
		for _, i := range which {
			marked := d.lines[i]
			if d.dense {
				marked = someOf(marked)
			}
			f.marks(seriesMark(i), places(marked))
			f.seriesKey(i, d.names[i])
		}
		figures = append(figures, f.finish())
	}
	all, near := d.closeOf(math.Inf(1)), d.closeOf(farOff)
	if len(all) > 0 {
		draw(name, title, all)
	}
	if len(near) < len(all) {
		draw(name+"-close", fmt.Sprintf("%s, close-up of %d methods", of, len(near)), near)
	}
	return figures
}
