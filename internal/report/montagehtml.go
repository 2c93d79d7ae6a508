package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"html/template"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

//go:embed montage.html
var montagePage string

var montageTemplate = template.Must(template.New("montage").Parse(montagePage))

// thumbnailSize is the longest side of an image in the page, in pixels: enough
// for the tiles on a screen with two pixels where one is meant.
const thumbnailSize = 256

// shownRunes is how much of a name a tile of the page shows.
const shownRunes = 40

// WriteHTML writes one file that needs no other: no scripts, nothing from the
// network. It follows the reader's light or dark setting, fits a phone, and
// prints. Names in it are text, whatever they hold.
func (m *Montage) WriteHTML(w io.Writer) error {
	type tile struct {
		caption
		ShortName string
		Source    template.URL // empty without an image
		Pixels    bool         // enlarge pixels as squares
		Err       string
	}
	type section struct {
		Section
		Tiles []tile
	}
	page := struct {
		Title, Note, Legend string
		Sections            []section
	}{text.Clean(m.Title), text.Clean(m.Note), m.legend(), nil}
	for _, s := range m.Sections {
		to := section{Section: s}
		for i := range s.Examples {
			t := tile{caption: m.caption(&s.Examples[i])}
			t.ShortName = text.Shorten(t.Name, func(s string) bool { return utf8.RuneCountInString(s) <= shownRunes })
			img, err := m.image(s.Examples[i].Index)
			if err == nil {
				t.Source, t.Pixels, err = dataURI(img)
			}
			if err != nil {
				t.Err = err.Error()
			}
			to.Tiles = append(to.Tiles, t)
		}
		page.Sections = append(page.Sections, to)
	}
	return montageTemplate.Execute(w, page)
}

// dataURI returns the thumbnail of img as the source of an img element, and
// whether its pixels are to be seen. Such an image is kept exactly, as PNG.
func dataURI(img image.Image) (uri template.URL, pixels bool, err error) {
	b := img.Bounds()
	pixels = max(b.Dx(), b.Dy()) <= pixelArt
	var file bytes.Buffer
	kind := "jpeg"
	if pixels {
		kind = "png"
		err = png.Encode(&file, img)
	} else {
		err = jpeg.Encode(&file, shrink(img, thumbnailSize), &jpeg.Options{Quality: 88})
	}
	return template.URL("data:image/" + kind + ";base64," + base64.StdEncoding.EncodeToString(file.Bytes())), pixels, err
}
