package report

import "math"

// markerShapes has a shape for each of the series that share a dash.
const markerShapes = 6

// markerSize is half the width of a mark in a chart.
const markerSize = 3.2

// marker draws the mark of the i-th series, about 2·r across. Series with a
// broken line have hollow marks.
func (d *drawing) marker(i int, p at, r float64, tip string) {
	in := seriesPen(i)
	in.dash, in.stroke, in.fill = unbroken, 1.2, 1
	s := d.area(in, markerShape(i%markerShapes, p, r)...)
	s.tip = tip
	if i/seriesColours%len(dashes) != 0 {
		s.paper = true
	}
}

// markerShape is the outline of a mark around p. All have about the same area.
func markerShape(kind int, p at, r float64) []at {
	switch kind {
	case 0:
		return polygon(p, r, 16, 0)
	case 1:
		return polygon(p, r*1.2, 4, math.Pi/4)
	case 2:
		return polygon(p, r*1.3, 3, -math.Pi/2)
	case 3:
		return polygon(p, r*1.25, 4, 0)
	case 4:
		return polygon(p, r*1.3, 3, math.Pi/2)
	}
	return star(p, r*1.45)
}

// polygon is a regular one with n corners, the first at an angle.
func polygon(p at, r float64, n int, angle float64) []at {
	out := make([]at, n)
	for k := range out {
		sin, cos := math.Sincos(angle + 2*math.Pi*float64(k)/float64(n))
		out[k] = at{p.x + r*cos, p.y + r*sin}
	}
	return out
}

// star has five points, one up.
func star(p at, r float64) []at {
	out := make([]at, 10)
	for k := range out {
		length := r
		if k%2 == 1 {
			length = r * 0.45
		}
		sin, cos := math.Sincos(-math.Pi/2 + math.Pi*float64(k)/5)
		out[k] = at{p.x + length*cos, p.y + length*sin}
	}
	return out
}
