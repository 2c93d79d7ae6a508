package report

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
	plotfont "gonum.org/v1/plot/font"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// Sizes of the drawing, in pixels.
const (
	margin      = 40
	tileSide    = 240 // of the square that contains an image
	tileGap     = 24
	sectionGap  = 44 // above a heading
	minColumns  = 3  // fewer would wrap headings too soon
	maxColumns  = 6
	lineHeight  = 22 // of a tile's text
	barHeight   = 4
	barGap      = 9 // below a bar
	captionGap  = 8 // between image and text
	maxPNGSide  = 1 << 16
	maxPNGBytes = 1 << 30 // of the drawing in memory
)

var (
	paper    = color.RGBA{255, 255, 255, 255}
	ground   = color.RGBA{0xee, 0xf1, 0xf4, 255}
	ink      = color.RGBA{0x1b, 0x1f, 0x24, 255}
	soft     = color.RGBA{0x57, 0x60, 0x6a, 255}
	barInk   = color.RGBA{0x2f, 0x6f, 0xb5, 255}
	rightInk = color.RGBA{0x1a, 0x70, 0x37, 255}
	wrongInk = color.RGBA{0xb4, 0x23, 0x18, 255}
)

// WritePNG draws the tiles on white. It can draw Latin, Greek and Cyrillic letters; others appear as boxes, so use
// WriteHTML for them.
func (m *Montage) WritePNG(w io.Writer) error {
	s := newSheet(m)
	height := s.layout(m, nil)
	if height > maxPNGSide || 4*height*s.width > maxPNGBytes {
		return fmt.Errorf("a drawing of %d×%d pixels is too large, want fewer images", s.width, height)
	}
	canvas := image.NewRGBA(image.Rect(0, 0, s.width, height))
	draw.Draw(canvas, canvas.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	s.layout(m, canvas)
	return png.Encode(w, canvas)
}

// sheet holds what the parts of a drawing share.
type sheet struct {
	canvas         *image.RGBA // nil while only the height is computed
	width, columns int

	title, heading, body, strong, small font.Face
}

func newSheet(m *Montage) *sheet {
	s := &sheet{columns: minColumns,
		title: face(font.WeightBold, 30), heading: face(font.WeightBold, 22),
		body: face(font.WeightNormal, 17), strong: face(font.WeightBold, 16), small: face(font.WeightNormal, 14)}
	for _, section := range m.Sections {
		s.columns = max(s.columns, min(len(section.Examples), maxColumns))
	}
	s.width = 2*margin + s.columns*tileSide + (s.columns-1)*tileGap
	return s
}

// face returns gonum's sans-serif font, which figures use too, at a size in pixels. A face is not safe for concurrent
// use.
func face(weight font.Weight, size float64) font.Face {
	f := plotfont.DefaultCache.Lookup(plotfont.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight}, plotfont.Length(size))
	return f.FontFace(72)
}

// layout lays out the sheet from top to bottom and returns its height. It draws if canvas is not nil.
func (s *sheet) layout(m *Montage, canvas *image.RGBA) int {
	s.canvas = canvas
	y := s.paragraph(margin, text.Clean(m.Title), s.title, 38, ink)
	y = s.paragraph(y, text.Clean(m.Note), s.body, 26, ink)
	y = s.paragraph(y, m.legend(), s.body, 26, soft)
	for _, section := range m.Sections {
		y = s.paragraph(y+sectionGap, section.Heading, s.heading, 30, ink)
		y = s.paragraph(y, section.Explanation, s.body, 26, soft) + 14
		y = s.grid(y, m, section.Examples)
	}
	return y + margin
}

// paragraph writes text over the whole width from y on and returns the y below it.
func (s *sheet) paragraph(y int, words string, f font.Face, height int, c color.Color) int {
	room := s.width - 2*margin
	for _, line := range text.WrapTo(words, func(line string) bool { return font.MeasureString(f, line).Ceil() <= room }) {
		s.text(margin, y+height*3/4, s.shorten(line, f, room), f, c)
		y += height
	}
	return y
}

// grid draws the examples of a section from y on and returns the y below them.
func (s *sheet) grid(y int, m *Montage, examples []Example) int {
	bars, labelled := 0, false
	for i := range examples {
		c := m.caption(&examples[i])
		bars, labelled = max(bars, len(c.Bars)), labelled || c.Label != ""
	}
	height := tileSide + captionGap + bars*(lineHeight+barHeight+barGap) + 2*lineHeight
	if labelled {
		height += lineHeight
	}
	for i := range examples {
		if i > 0 && i%s.columns == 0 {
			y += height + tileGap
		}
		if s.canvas != nil {
			s.tile(margin+i%s.columns*(tileSide+tileGap), y, m, &examples[i])
		}
	}
	return y + height
}

// tile draws an example with its upper left corner at x, y.
func (s *sheet) tile(x, y int, m *Montage, e *Example) {
	s.box(x, y, tileSide, tileSide, ground)
	if img, err := m.image(e.Index); err == nil {
		img = fill(img, tileSide)
		b := img.Bounds() // its minimum is 0, 0
		draw.Draw(s.canvas, b.Add(image.Pt(x+(tileSide-b.Dx())/2, y+(tileSide-b.Dy())/2)), img, image.Point{}, draw.Over)
	} else {
		why := s.shorten(err.Error(), s.small, tileSide-16)
		s.text(x+(tileSide-font.MeasureString(s.small, why).Ceil())/2, y+tileSide/2, why, s.small, soft)
	}
	c := m.caption(e)
	y += tileSide + captionGap
	for i, b := range c.Bars {
		f := s.body
		if i == 0 {
			f = s.strong
		}
		s.pair(x, y, b.Class, b.Percent, f, ink)
		y += lineHeight
		if !b.Bar() {
			continue
		}
		s.box(x, y, tileSide, barHeight, ground)
		s.box(x, y, int(b.Part*tileSide+0.5), barHeight, barInk)
		y += barHeight + barGap
	}
	if c.Label != "" {
		colour := rightInk
		if c.Wrong {
			colour = wrongInk
		}
		s.pair(x, y, c.Label, "", s.strong, colour)
		y += lineHeight
	}
	s.pair(x, y, c.Uncertain, c.Disagree, s.small, soft)
	s.pair(x, y+lineHeight, c.Name, "", s.small, soft)
}

// pair writes two texts on the line of a tile below y, one at each end. The left one is shortened to leave room for
// the right one.
func (s *sheet) pair(x, y int, left, right string, f font.Face, c color.Color) {
	room, base := tileSide, y+lineHeight*3/4
	if right != "" {
		width := font.MeasureString(f, right).Ceil()
		s.text(x+tileSide-width, base, right, f, c)
		room -= width + 8
	}
	s.text(x, base, s.shorten(left, f, room), f, c)
}

func (s *sheet) shorten(long string, f font.Face, room int) string {
	return text.ShortenTo(long, float64(room), func(t string) float64 { return float64(font.MeasureString(f, t).Ceil()) })
}

// text writes a line on a baseline, unless only the height is computed.
func (s *sheet) text(x, base int, line string, f font.Face, c color.Color) {
	if s.canvas != nil {
		d := font.Drawer{Dst: s.canvas, Src: image.NewUniform(c), Face: f, Dot: fixed.P(x, base)}
		d.DrawString(line)
	}
}

func (s *sheet) box(x, y, w, h int, c color.Color) {
	draw.Draw(s.canvas, image.Rect(x, y, x+w, y+h), image.NewUniform(c), image.Point{}, draw.Src)
}
