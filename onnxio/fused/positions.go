package fused

import "github.com/swagwrap/swagwrap/onnxio"

// Positions are scores of several positions of an example, such as pixels: an output with the scores of a position along
// one axis. The operators of a task work on rows, one for each position.
type Positions struct {
	model *Model
	axis  int // the axis of the scores: 1, or −1 for the last
	rank  int // number of axes
	shape string
}

// NewPositions describes outputs of so many axes with the scores along the given axis: 1, or −1 for the last.
func (m *Model) NewPositions(axis, rank int) *Positions {
	m.dense = true
	return &Positions{model: m, axis: axis, rank: rank}
}

// Dense reports whether an example has several rows, such as pixels.
func (m *Model) Dense() bool { return m.dense }

// order returns the order of axes that moves axis from to place to.
func (p *Positions) order(from, to int) (axes []int64) {
	for i := range p.rank {
		if i != from {
			axes = append(axes, int64(i))
		}
	}
	return append(axes[:to:to], append([]int64{int64(from)}, axes[to:]...)...)
}

// Scores is [Model.Scores] with a row for each position of each example: [batch·positions, n].
func (p *Positions) Scores(k int) string {
	m := p.model
	n := m.networks[m.members[k].Network]
	x := m.renaming(k).of(n.output)
	if n.scores != onnxio.Float {
		x = m.Node("Cast", []string{x}, Attribute{Name: "to", Int: int64(onnxio.Float)})
	}
	last := p.rank - 1
	if p.axis == 1 {
		x = m.Node("Transpose", []string{x}, Attribute{Name: "perm", Ints: p.order(1, last)})
	}
	if p.shape == "" { // all members have the same
		p.shape = m.Op("Shape", x)
	}
	return m.Node("Flatten", []string{x}, Attribute{Name: "axis", Int: int64(last)})
}

// lead adds the sizes of batch and positions.
func (p *Positions) lead() string {
	return p.model.Op("Slice", p.shape, p.model.Integers(0), p.model.Integers(int64(p.rank-1)))
}

// Gives is [Model.Gives] for rows of positions. The output has the axes of the scores. It lacks the axis of scores if
// width is 1.
func (p *Positions) Gives(name, rows string, width int64) error {
	return p.gives(name, rows, onnxio.Float, width)
}

// GivesFlags is Gives for true and false.
func (p *Positions) GivesFlags(name, rows string, width int64) error {
	return p.gives(name, rows, onnxio.Bool, width)
}

func (p *Positions) gives(name, rows string, elem onnxio.ElemType, width int64) error {
	m, last := p.model, p.rank-1
	lead := p.lead()
	shape := make([]int64, last)
	for i := range shape {
		shape[i] = -1
	}
	if width == 1 {
		return m.gives(name, m.Op("Reshape", rows, lead), elem, shape)
	}
	x := m.Op("Reshape", rows, m.Node("Concat", []string{lead, m.Integers(width)}, Attribute{Name: "axis"}))
	if p.axis != 1 {
		return m.gives(name, x, elem, append(shape, width))
	}
	x = m.Node("Transpose", []string{x}, Attribute{Name: "perm", Ints: p.order(last, 1)})
	return m.gives(name, x, elem, append([]int64{-1, width}, shape[1:]...))
}
