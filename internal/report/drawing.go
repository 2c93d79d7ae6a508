package report

// A drawing is a figure as data: shapes and texts in units of about one pixel on
// a phone, y downwards. It is written as SVG, which follows the colours of the
// page it stands in, or as PNG.
type drawing struct {
	title, desc   string // for those who do not see it
	width, height float64
	shapes        []shape
}

// at is a place in a drawing.
type at struct{ x, y float64 }

// A shape is either a set of paths or a text.
type shape struct {
	paths  [][]at
	closed bool
	pen
	paper bool // the inside has the colour of the paper
	label *label
	tip   string // shown when the pointer rests on it
}

// label is a text whose anchor, from 0 at its left end to 1 at its right end, is
// at a place of the baseline.
type label struct {
	at
	text     string
	anchor   float64
	size     float64
	bold     bool
	vertical bool // read upwards
	halo     bool // outlined with the colour of the paper, to stand on a surface
}

// pen says how paths are drawn.
type pen struct {
	colour colour
	stroke float64 // width of the line, 0 draws none
	fill   float64 // opacity of the inside, 0 draws none
	faint  float64 // what the line lacks of full opacity
	dash   dash
}

type dash int

const (
	unbroken dash = iota
	dashed
	dotted
)

// dashes are lengths of ink and of gaps, for a line about 2 wide.
var dashes = [...][]float64{unbroken: nil, dashed: {6, 3.5}, dotted: {1.8, 3}}

// titled is the drawing with its title above it, for a file of its own.
func (d *drawing) titled() *drawing {
	const size, row = textSize + 1, 18.0
	out := &drawing{title: d.title, desc: d.desc, width: d.width}
	y := edge
	for _, line := range wrapTo(d.title, d.width-2*edge, size) {
		y += row
		out.text(colourInk, label{at: at{edge, y - 5}, text: line, size: size, bold: true})
	}
	out.height = d.height + y
	for _, s := range d.shapes {
		out.shapes = append(out.shapes, s.moved(y))
	}
	return out
}

// moved is the shape further down.
func (s shape) moved(dy float64) shape {
	if s.label != nil {
		l := *s.label
		l.y += dy
		s.label = &l
	}
	paths := make([][]at, len(s.paths))
	for i, path := range s.paths {
		for _, p := range path {
			paths[i] = append(paths[i], at{p.x, p.y + dy})
		}
	}
	s.paths = paths
	return s
}

func (d *drawing) line(in pen, points ...at) {
	if len(points) > 1 {
		d.shapes = append(d.shapes, shape{paths: [][]at{points}, pen: in})
	}
}

func (d *drawing) area(in pen, points ...at) *shape {
	d.shapes = append(d.shapes, shape{paths: [][]at{points}, closed: true, pen: in})
	return &d.shapes[len(d.shapes)-1]
}

func (d *drawing) rect(in pen, x0, y0, x1, y1 float64) *shape {
	return d.area(in, at{x0, y0}, at{x1, y0}, at{x1, y1}, at{x0, y1})
}

func (d *drawing) text(c colour, l label) {
	l.text = cleanText(l.text)
	d.shapes = append(d.shapes, shape{pen: pen{colour: c}, label: &l})
}
