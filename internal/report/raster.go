package report

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// pngScale is how many pixels of a PNG file stand for a unit of a drawing: enough
// for print at the width of a column.
const pngScale = 3.0

// writePNG draws on white. Letters other than Latin, Greek and Cyrillic are shown
// as boxes, so SVG is for them.
func (d *drawing) writePNG(w io.Writer) error {
	width, height := int(math.Ceil(d.width*pngScale)), int(math.Ceil(d.height*pngScale))
	if width > maxPNGSide || height > maxPNGSide || 4*width*height > maxPNGBytes {
		return fmt.Errorf("a drawing of %d×%d pixels is too large", width, height)
	}
	r := raster{image.NewRGBA(image.Rect(0, 0, width, height))}
	draw.Draw(r.RGBA, r.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	for _, s := range d.shapes {
		if s.label != nil {
			r.text(s.colour.rgba(), s.label)
		} else {
			r.shape(&s)
		}
	}
	return png.Encode(w, r.RGBA)
}

// A raster is what a drawing is painted on. The image itself is passed on: the
// rasterizer is several times as fast on a type that it knows.
type raster struct{ *image.RGBA }

func (r raster) shape(s *shape) {
	c := s.colour.rgba()
	paths := scaled(s.paths)
	switch {
	case s.paper:
		r.fill(paths, paper, 1)
	case s.fill > 0:
		r.fill(paths, c, s.fill)
	}
	if s.stroke > 0 {
		r.stroke(paths, s.closed, s.stroke*pngScale, dashes[s.dash], c, 1-s.faint)
	}
}

func scaled(paths [][]at) [][]at {
	out := make([][]at, len(paths))
	for i, path := range paths {
		for _, p := range path {
			out[i] = append(out[i], at{p.x * pngScale, p.y * pngScale})
		}
	}
	return out
}

// fill paints the inside of closed paths. A place within paths of either
// direction counts, as long as they do not lie upon each other in opposite ones.
func (r raster) fill(paths [][]at, c color.RGBA, opacity float64) {
	bounds := boundsOf(paths).Intersect(r.Bounds())
	if bounds.Empty() {
		return
	}
	// The rasterizer's space begins at the corner of the bounds.
	z := vector.NewRasterizer(bounds.Dx(), bounds.Dy())
	dx, dy := float64(bounds.Min.X), float64(bounds.Min.Y)
	for _, path := range paths {
		for i, p := range path {
			if i == 0 {
				z.MoveTo(float32(p.x-dx), float32(p.y-dy))
			} else {
				z.LineTo(float32(p.x-dx), float32(p.y-dy))
			}
		}
		z.ClosePath()
	}
	alpha := uint8(255*opacity + 0.5)
	z.Draw(r.RGBA, bounds, image.NewUniform(color.NRGBA{c.R, c.G, c.B, alpha}), image.Point{})
}

func boundsOf(paths [][]at) image.Rectangle {
	lo, hi := at{math.Inf(1), math.Inf(1)}, at{math.Inf(-1), math.Inf(-1)}
	for _, path := range paths {
		for _, p := range path {
			lo, hi = at{min(lo.x, p.x), min(lo.y, p.y)}, at{max(hi.x, p.x), max(hi.y, p.y)}
		}
	}
	if lo.x > hi.x {
		return image.Rectangle{}
	}
	return image.Rect(int(math.Floor(lo.x)), int(math.Floor(lo.y)), int(math.Ceil(hi.x)), int(math.Ceil(hi.y)))
}

// stroke paints lines with round joins. A rectangle for each piece and a disc for
// each joint, all in the same direction, add up to it.
func (r raster) stroke(paths [][]at, closed bool, width float64, pattern []float64, c color.RGBA, opacity float64) {
	var pieces [][]at
	for _, path := range paths {
		if closed && len(path) > 0 {
			path = append(path[:len(path):len(path)], path[0])
		}
		for _, run := range cut(path, pattern) {
			for i, p := range run {
				if i > 0 {
					pieces = append(pieces, bar4(run[i-1], p, width))
				}
				if closed || (0 < i && i < len(run)-1) {
					pieces = append(pieces, polygon(p, width/2, 12, 0))
				}
			}
		}
	}
	r.fill(pieces, c, opacity)
}

// bar4 is the rectangle around a line, in the direction of polygon.
func bar4(p, q at, width float64) []at {
	length := math.Hypot(q.x-p.x, q.y-p.y)
	if length == 0 {
		return nil
	}
	nx, ny := -(q.y-p.y)/length*width/2, (q.x-p.x)/length*width/2
	return []at{{p.x - nx, p.y - ny}, {q.x - nx, q.y - ny}, {q.x + nx, q.y + ny}, {p.x + nx, p.y + ny}}
}

// cut returns the pieces of a line that a pattern of ink and gaps leaves.
func cut(path []at, pattern []float64) [][]at {
	if pattern == nil || len(path) < 2 {
		return [][]at{path}
	}
	var runs [][]at
	run := []at{path[0]}
	phase, left := 0, pattern[0]*pngScale
	for i := 1; i < len(path); i++ {
		p, q := path[i-1], path[i]
		length := math.Hypot(q.x-p.x, q.y-p.y)
		done := 0.0
		for length-done > left {
			done += left
			t := done / length
			here := at{p.x + (q.x-p.x)*t, p.y + (q.y-p.y)*t}
			if phase == 0 {
				runs = append(runs, append(run, here))
			}
			run = []at{here}
			phase = 1 - phase
			left = pattern[phase] * pngScale
		}
		left -= length - done
		run = append(run, q)
	}
	if phase == 0 {
		runs = append(runs, run)
	}
	return runs
}

func (r raster) text(c color.RGBA, l *label) {
	regular, medium := fonts()
	if l.bold {
		regular = medium
	}
	f := face(regular, l.size*pngScale)
	text := shortenMiddle(l.text, func(s string) bool { return len(s) <= longText })
	width := float64(font.MeasureString(f, text)) / 64
	if l.vertical {
		r.vertical(c, l, f, text, width)
		return
	}
	x, y := l.x*pngScale-l.anchor*width, l.y*pngScale
	if l.halo {
		for k := range 12 {
			p := polygon(at{x, y}, 1.5*pngScale, 12, 0)[k]
			drawText(r.RGBA, paper, f, text, p.x, p.y)
		}
	}
	drawText(r.RGBA, c, f, text, x, y)
}

func drawText(dst draw.Image, c color.RGBA, f font.Face, text string, x, y float64) {
	d := font.Drawer{Dst: dst, Src: image.NewUniform(c), Face: f,
		Dot: fixed.Point26_6{X: fixed.Int26_6(math.Round(x * 64)), Y: fixed.Int26_6(math.Round(y * 64))}}
	d.DrawString(text)
}

// vertical draws a text lying, then turns it by a quarter.
func (r raster) vertical(c color.RGBA, l *label, f font.Face, text string, width float64) {
	ascent, height := f.Metrics().Ascent.Ceil(), f.Metrics().Ascent.Ceil()+f.Metrics().Descent.Ceil()
	lying := image.NewRGBA(image.Rect(0, 0, int(width)+2, height))
	drawText(lying, c, f, text, 0, float64(ascent))
	turned := image.NewRGBA(image.Rect(0, 0, height, lying.Bounds().Dx()))
	for y := range lying.Bounds().Dy() {
		for x := range lying.Bounds().Dx() {
			turned.SetRGBA(y, lying.Bounds().Dx()-1-x, lying.RGBAAt(x, y))
		}
	}
	// The lying baseline becomes the vertical line through l, its start the lower end.
	left := int(math.Round(l.x*pngScale)) - ascent
	top := int(math.Round(l.y*pngScale+l.anchor*width)) - turned.Bounds().Dy()
	to := turned.Bounds().Add(image.Pt(left, top))
	draw.Draw(r.RGBA, to, turned, image.Point{}, draw.Over)
}
