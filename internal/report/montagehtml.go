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

// thumbnailSize is the longest side of an image in the page, in pixels. It suffices for screens with two pixels per
// CSS pixel.
const thumbnailSize = 256

// shownRunes is the number of runes of a name that a tile shows.
const shownRunes = 40

// WriteHTML writes a self-contained file without scripts. The page follows the reader's light or dark setting, fits a
// phone, and prints. Names are escaped.
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

// dataURI returns the thumbnail of img as the source of an img element. It reports whether the image is so small that
// its pixels are shown as squares. Such an image is stored exactly, as PNG.
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
