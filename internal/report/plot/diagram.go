package plot

import "slices"

// A diagram holds a line for each method that has one. A method keeps its colour and mark in all figures.
type diagram struct {
	names []string
	lines [][]seriesPoint
	reach []float64 // largest distance of each from zero
	minor []bool
	// class1 reports that reliability is that of the probability of class 1.
	class1 bool
}

// add adds the line of a method, unless it has no points, and reports whether it did.
func (d *diagram) add(m *Method, points []seriesPoint, reach float64) bool {
	if len(points) == 0 {
		return false
	}
	d.names, d.lines = append(d.names, m.Name), append(d.lines, points)
	d.reach, d.minor = append(d.reach, reach), append(d.minor, m.Minor)
	return true
}

// of returns the methods that are minor, or those that are not.
func (d *diagram) of(minor bool) (which []int) {
	for i, is := range d.minor {
		if is == minor {
			which = append(which, i)
		}
	}
	return which
}

// near returns the methods whose reach is at most farOff times the median.
func (d *diagram) near(some []int, farOff float64) (which []int) {
	var reach []float64
	for _, i := range some {
		reach = append(reach, d.reach[i])
	}
	slices.Sort(reach)
	for _, i := range some {
		if d.reach[i] <= farOff*reach[(len(reach)-1)/2] {
			which = append(which, i)
		}
	}
	return which
}
