package augment

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// padMode is the way to fill the area outside a picture.
type padMode string

const (
	constant  padMode = "constant"
	edge      padMode = "edge"
	reflect   padMode = "reflect"   // the pixel at the edge is not repeated
	symmetric padMode = "symmetric" // the pixel at the edge is repeated
)

var padModes = []padMode{constant, edge, reflect, symmetric}

// inside returns the index, among n pixels, of the pixel that position p shows, or −1 for the constant.
func (m padMode) inside(p, n int) int {
	if p >= 0 && p < n {
		return p
	}
	wrap := func(period int) int { return (p%period + period) % period }
	switch {
	case m == constant:
		return -1
	case m == edge || n == 1:
		return max(0, min(p, n-1))
	case m == reflect:
		p = wrap(2 * (n - 1))
		return min(p, 2*(n-1)-p)
	}
	p = wrap(2 * n)
	return min(p, 2*n-1-p)
}

// randomCrop is torchvision's RandomCrop.
type randomCrop struct {
	to       [2]int // height and width; 0 is open
	padding  [4]int // left, top, right, bottom
	ifNeeded bool
	fill     []byte // nil means 0; else 1 or 3 values
	mode     padMode
}

func (*randomCrop) name() string { return "RandomCrop" }

func (o *randomCrop) params() []param {
	return []param{
		sizeParam(&o.to),
		{name: "padding", text: o.paddingText(), read: o.readPadding},
		{name: "pad_if_needed", text: unless(o.ifNeeded, false, "True"), read: func(_ *arguments, v value) string {
			if o.ifNeeded = v.word == "True"; v.kind != 'w' || v.word != "True" && v.word != "False" {
				return "True or False"
			}
			return ""
		}},
		{name: "fill", text: o.fillText(), read: o.readFill},
		{name: "padding_mode", text: unless(o.mode, constant, fmt.Sprintf("'%s'", o.mode)), read: func(_ *arguments, v value) string {
			if o.mode = padMode(v.word); !slices.Contains(padModes, o.mode) {
				return "constant, edge, reflect or symmetric"
			}
			return ""
		}},
	}
}

func (o *randomCrop) paddingText() string {
	p := o.padding
	if p == [4]int{p[0], p[0], p[0], p[0]} {
		return unless(p[0], 0, fmt.Sprint(p[0]))
	}
	return fmt.Sprintf("(%d, %d, %d, %d)", p[0], p[1], p[2], p[3])
}

func (o *randomCrop) readPadding(a *arguments, v value) string {
	n, ok := v.whole(0, picture.MaxSide, 1, 2, 4)
	if !ok {
		return "whole numbers from 0 to 1048576: one, two (left and right, top and bottom) or four (left, top, right, bottom)"
	}
	_, v2 := a.named["padding_mode"]
	switch {
	case len(n) < 4:
		last := n[len(n)-1]
		o.padding = [4]int{n[0], last, n[0], last}
	case a.printed && v2: // version 2 prints another order: left, right, top, bottom
		o.padding = [4]int{n[0], n[2], n[1], n[3]}
	default:
		o.padding = [4]int(n)
	}
	return ""
}

func (o *randomCrop) fillText() string {
	switch f := o.fill; len(f) {
	case 0:
		return ""
	case 1:
		return fmt.Sprint(f[0])
	default:
		return fmt.Sprintf("(%d, %d, %d)", f[0], f[1], f[2])
	}
}

// readFill reads the levels for the area outside a picture, truncated to integers as torchvision does.
func (o *randomCrop) readFill(_ *arguments, v value) string {
	x, ok := v.numbers(1, 3)
	if !ok || slices.Min(x) < 0 || slices.Max(x) > 255 {
		return "levels from 0 to 255: one, or three"
	}
	o.fill = nil
	for _, f := range x {
		o.fill = append(o.fill, byte(f))
	}
	if slices.Max(o.fill) == slices.Min(o.fill) {
		o.fill = o.fill[:1]
	}
	if len(o.fill) == 1 && o.fill[0] == 0 {
		o.fill = nil
	}
	return ""
}

func (o randomCrop) fit(h, w int) op {
	o.to = fitted(o.to, h, w)
	return &o
}

func (o *randomCrop) size(h, w int) (int, int, error) {
	if h == 0 || o.to[0] == 0 {
		return o.to[0], o.to[1], nil
	}
	_, _, err := o.spans(h, w)
	return o.to[0], o.to[1], err
}

// A span is one axis of a crop. The size of the picture is have, and padded after the padding, with before pixels at
// the start. If padded is too small, more pixels are added on both sides. The size of the crop is want.
type span struct {
	have, before, padded, more, want int
}

// spare returns the number of possible positions of the crop, minus one.
func (s span) spare() int { return s.padded + 2*s.more - s.want }

func (o *randomCrop) spans(h, w int) (down, across span, err error) {
	down = span{have: h, before: o.padding[1], padded: h + o.padding[1] + o.padding[3], want: o.to[0]}
	across = span{have: w, before: o.padding[0], padded: w + o.padding[0] + o.padding[2], want: o.to[1]}
	for _, s := range []*span{&down, &across} {
		if o.ifNeeded {
			s.more = max(0, s.want-s.padded)
		}
		if s.spare() < 0 {
			return down, across, fmt.Errorf("a picture of %d×%d pixels is too small: give padding, or pad_if_needed=True", w, h)
		}
	}
	return down, across, nil
}

// draw returns the position of the crop in the padded picture.
func (o *randomCrop) draw(down, across span, r *random) (top, left int) {
	return r.IntN(down.spare() + 1), r.IntN(across.spare() + 1)
}

// from lists the source of each pixel of a crop that begins at start. The second padding mirrors the padded picture.
func (s span) from(start int, m padMode) []int {
	at := make([]int, s.want)
	for i := range at {
		at[i] = m.inside(start+i-s.more, s.padded)
		if at[i] >= 0 {
			at[i] = m.inside(at[i]-s.before, s.have)
		}
	}
	return at
}

func (o *randomCrop) apply(c *canvas, r *random) error {
	if o.to[0] == 0 {
		return errOpen
	}
	down, across, err := o.spans(c.H, c.W)
	if err != nil {
		return err
	}
	if len(o.fill) > 1 && len(o.fill) != c.C {
		return fmt.Errorf("fill has %d values, and the picture has %d channels", len(o.fill), c.C)
	}
	top, left := o.draw(down, across, r)
	c.set(cut(c.Picture, down.from(top, o.mode), across.from(left, o.mode), o.fill))
	return nil
}

// centreCrop is torchvision's CenterCrop.
type centreCrop struct{ to [2]int }

func (*centreCrop) name() string                        { return "CenterCrop" }
func (o *centreCrop) params() []param                   { return []param{sizeParam(&o.to)} }
func (o *centreCrop) fit(h, w int) op                   { return &centreCrop{fitted(o.to, h, w)} }
func (o *centreCrop) size(_, _ int) (h, w int, _ error) { return o.to[0], o.to[1], nil }

func (o *centreCrop) apply(c *canvas, _ *random) error {
	if o.to[0] == 0 {
		return errOpen
	}
	b := picture.CentreCrop(c.W, c.H, o.to[1], o.to[0])
	c.set(part(c.Picture, b.Min.Y, b.Min.X, b.Dy(), b.Dx()))
	return nil
}

// part returns h rows and w columns of src, starting at top and left. The area outside src is black.
func part(src picture.Picture, top, left, h, w int) picture.Picture {
	if left == 0 && w == src.W && top >= 0 && top+h <= src.H {
		return picture.Picture{W: w, H: h, C: src.C, Pix: src.Pix[top*w*src.C : (top+h)*w*src.C]}
	}
	down := span{have: src.H, padded: src.H, want: h}
	across := span{have: src.W, padded: src.W, want: w}
	return cut(src, down.from(top, constant), across.from(left, constant), nil)
}

// cut returns the given rows and columns of src. A row or column of −1 has the colour fill, or black if fill is nil.
func cut(src picture.Picture, rows, columns []int, fill []byte) picture.Picture {
	dst := picture.New(len(columns), len(rows), src.C)
	if fill != nil {
		for i := range dst.Pix {
			dst.Pix[i] = fill[i%src.C%len(fill)]
		}
	}
	// Neighbouring columns that are neighbours in src too are copied together.
	type run struct{ to, from, n int } // counted in bytes
	var runs []run
	for i, at := range columns {
		switch last := len(runs) - 1; {
		case at < 0:
		case last >= 0 && columns[i-1] == at-1:
			runs[last].n += src.C
		default:
			runs = append(runs, run{i * src.C, at * src.C, src.C})
		}
	}
	for y, at := range rows {
		if at < 0 {
			continue
		}
		to, from := dst.Row(y), src.Row(at)
		for _, r := range runs {
			copy(to[r.to:r.to+r.n], from[r.from:])
		}
	}
	return dst
}

// flip is torchvision's RandomHorizontalFlip or RandomVerticalFlip.
type flip struct {
	keepsSize
	vertical bool
	p        float64
}

func (o *flip) name() string {
	if o.vertical {
		return "RandomVerticalFlip"
	}
	return "RandomHorizontalFlip"
}

func (o *flip) params() []param { return []param{probabilityParam(&o.p, 0.5)} }

func (o *flip) apply(c *canvas, r *random) error {
	switch {
	case !r.happens(o.p):
	case o.vertical:
		c.mine()
		flipDown(c.Picture)
	default:
		c.mine()
		flipAcross(c.Picture)
	}
	return nil
}

func flipAcross(p picture.Picture) {
	for y := range p.H {
		row := p.Row(y)
		if p.C == 1 {
			slices.Reverse(row)
			continue
		}
		for i, j := 0, len(row)-3; i < j; i, j = i+3, j-3 {
			a, b := row[i:i+3:i+3], row[j:j+3:j+3]
			a[0], a[1], a[2], b[0], b[1], b[2] = b[0], b[1], b[2], a[0], a[1], a[2]
		}
	}
}

func flipDown(p picture.Picture) {
	for i, j := 0, p.H-1; i < j; i, j = i+1, j-1 {
		a, b := p.Row(i), p.Row(j)
		for k := range a {
			a[k], b[k] = b[k], a[k]
		}
	}
}
