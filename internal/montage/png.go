package montage

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
	_ "gonum.org/v1/plot" // adds the fonts
	plotfont "gonum.org/v1/plot/font"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// Sizes of the drawing, in pixels.
const (
	columns    = 6
	margin     = 40
	tileSide   = 240 // of the square that contains an image
	tileGap    = 24
	lineHeight = 28 // of a tile's text, with a bar below
	barHeight  = 4
	headHeight = 90 // of the text above the tiles of a section, and of the title
	sheetWidth = 2*margin + columns*(tileSide+tileGap) - tileGap
	maxHeight  = 1 << 16 // 430 MB in memory
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
	sections := m.shown()
	height := margin + headHeight
	for _, p := range sections {
		height += headHeight + p.height()
	}
	if height > maxHeight {
		return fmt.Errorf("a drawing of %d×%d pixels is too large, want fewer images", sheetWidth, height)
	}
	s := &sheet{image.NewRGBA(image.Rect(0, 0, sheetWidth, height)),
		face(font.WeightBold, 22), face(font.WeightBold, 16), face(font.WeightNormal, 16)}
	s.box(0, 0, sheetWidth, height, paper)
	const room = sheetWidth - 2*margin
	s.pair(margin, margin, room, m.Title, m.Note, s.title, ink)
	fits := func(line string) bool { return font.MeasureString(s.body, line).Ceil() <= room }
	for i, line := range text.WrapTo(m.Words.Legend, fits) { // at most two lines
		s.pair(margin, margin+(i+1)*lineHeight, room, line, "", s.body, soft)
	}
	y := margin + headHeight
	for _, p := range sections {
		s.pair(margin, y, room, p.Heading, "", s.title, ink)
		s.pair(margin, y+lineHeight, room, p.Explanation, "", s.body, soft)
		y += headHeight - lineHeight
		for i, e := range p.examples {
			s.tile(margin+i%columns*(tileSide+tileGap), y+i/columns*p.rowHeight(), m, e)
		}
		y += p.height() + lineHeight
	}
	return png.Encode(w, s.RGBA)
}

// rowHeight returns the height of a row of tiles: an image, lines, verdict, uncertainty and name.
func (p section) rowHeight() int {
	lines := 0
	for _, e := range p.examples {
		lines = max(lines, len(e.Lines)+3)
	}
	return tileSide + lines*lineHeight + tileGap
}

func (p section) height() int { return (len(p.examples) + columns - 1) / columns * p.rowHeight() }

// A sheet is a drawing with its fonts.
type sheet struct {
	*image.RGBA
	title, strong, body font.Face
}

// face returns gonum's sans-serif font, which figures use too, at a size in pixels. A face is not safe for concurrent
// use.
func face(weight font.Weight, size float64) font.Face {
	f := plotfont.DefaultCache.Lookup(plotfont.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight}, plotfont.Length(size))
	return f.FontFace(72)
}

// tile draws an example with its upper left corner at x, y.
func (s *sheet) tile(x, y int, m *Montage, e example) {
	s.box(x, y, tileSide, tileSide, ground)
	if img, err := m.image(e.index); err != nil {
		s.pair(x+8, y+tileSide/2, tileSide-16, err.Error(), "", s.body, soft)
	} else {
		by, size := draw.Scaler(draw.CatmullRom), tileSide
		if isPixelArt(img) {
			by, size = draw.NearestNeighbor, tileSide/longer(img)*longer(img) // squares of equal size
		}
		img = resize(by, img, size)
		b := img.Bounds() // its minimum is 0, 0
		draw.Draw(s, b.Add(image.Pt(x+(tileSide-b.Dx())/2, y+(tileSide-b.Dy())/2)), img, image.Point{}, draw.Over)
	}
	y += tileSide
	write := func(left, right string, f font.Face, c color.Color) {
		s.pair(x, y, tileSide, left, right, f, c)
		y += lineHeight
	}
	f := s.strong
	for _, l := range e.Lines {
		write(l.Text, l.Value, f, ink)
		if l.Part >= 0 {
			s.box(x, y-barHeight, tileSide, barHeight, ground)
			s.box(x, y-barHeight, int(l.Part*tileSide+0.5), barHeight, barInk)
		}
		f = s.body
	}
	verdict := rightInk
	if e.Wrong {
		verdict = wrongInk
	}
	write(e.Verdict, "", s.strong, verdict)
	write(e.Uncertain, e.Disagree, s.body, soft)
	write(m.Name(e.index), "", s.body, soft)
}

// pair writes two texts on the line below y, one at each end of the room. The left one is shortened to leave room for
// the right one.
func (s *sheet) pair(x, y, room int, left, right string, f font.Face, c color.Color) {
	measure := func(words string) float64 { return float64(font.MeasureString(f, words).Ceil()) }
	write := func(x int, words string) {
		d := font.Drawer{Dst: s, Src: image.NewUniform(c), Face: f, Dot: fixed.P(x, y+lineHeight*2/3)}
		d.DrawString(words)
	}
	right = text.ShortenTo(text.Clean(right), float64(room)*2/3, measure)
	width := int(measure(right))
	write(x+room-width, right)
	write(x, text.ShortenTo(text.Clean(left), float64(room-width-8), measure))
}

func (s *sheet) box(x, y, w, h int, c color.Color) {
	draw.Draw(s, image.Rect(x, y, x+w, y+h), image.NewUniform(c), image.Point{}, draw.Src)
}
