package montage

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/task"
)

//go:embed montage.html
var pageText string

var pageTemplate = template.Must(template.New("montage").Funcs(template.FuncMap{
	"clean": text.Clean,
	"short": func(name string) string {
		return text.Shorten(text.Clean(name), func(s string) bool { return utf8.RuneCountInString(s) <= shownRunes })
	},
	"width": func(part float64) string { return fmt.Sprintf("%.1f%%", 100*part) },
}).Parse(pageText))

const (
	// thumbnailSize is the longest side of an image in the page, in pixels. It suffices for screens with two pixels per
	// CSS pixel.
	thumbnailSize = 256
	// shownRunes is the number of runes of a name that a tile shows.
	shownRunes = 40
)

// WriteHTML writes a self-contained file without scripts. The page follows the reader's light or dark setting, fits a
// phone, and prints. Names are escaped.
func (m *Montage) WriteHTML(w io.Writer) error {
	type tile struct {
		task.Tile
		Name, Alt string
		Source    template.URL // empty without an image
		Pixels    bool         // enlarge pixels as squares
		Err       string
	}
	type part struct {
		section
		Tiles []tile
	}
	page := struct {
		Title, Note, Legend string
		Sections            []part
	}{m.Title, m.Note, m.Words.Legend, nil}
	for _, s := range m.shown() {
		to := part{section: s}
		for _, e := range s.examples {
			t := tile{Tile: e.Tile, Name: m.Name(e.index)}
			t.Alt = alt(t.Name, e.Tile)
			img, err := m.image(e.index)
			if err == nil {
				t.Pixels = isPixelArt(img)
				t.Source, err = dataURI(img)
			}
			if err != nil {
				t.Err = err.Error()
			}
			to.Tiles = append(to.Tiles, t)
		}
		page.Sections = append(page.Sections, to)
	}
	return pageTemplate.Execute(w, page)
}

// alt describes a tile in one sentence, for readers who cannot see the image.
func alt(name string, t task.Tile) string {
	var parts []string
	for _, l := range t.Lines {
		parts = append(parts, strings.TrimSpace(l.Text+" "+l.Value))
	}
	if t.Verdict != "" {
		parts = append(parts, t.Verdict)
	}
	return name + ": " + strings.Join(parts, ", ")
}

// dataURI returns the thumbnail of img as the source of an img element. Pixel art is stored exactly, as PNG.
func dataURI(img image.Image) (template.URL, error) {
	var file bytes.Buffer
	kind, err := "png", error(nil)
	if isPixelArt(img) {
		err = png.Encode(&file, img)
	} else {
		if longer(img) > thumbnailSize {
			img = resize(img, thumbnailSize)
		}
		kind, err = "jpeg", jpeg.Encode(&file, img, &jpeg.Options{Quality: 88})
	}
	return template.URL("data:image/" + kind + ";base64," + base64.StdEncoding.EncodeToString(file.Bytes())), err
}
