package report

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/image/font"
)

const hostile = "\"><script>alert(1)</script>\x1b[2J\u202egpj.exe\xff' onerror='x"

// testMontage shows a tiny grey image, a large red one, a flat blue one, and one
// that cannot be read, with hostile names everywhere.
func testMontage() *Montage {
	red, blue := image.NewRGBA(image.Rect(0, 0, 600, 300)), image.NewNRGBA(image.Rect(7, 9, 107, 109))
	paint := func(img interface {
		image.Image
		Set(x, y int, c color.Color)
	}, c color.Color) {
		for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
			for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
				img.Set(x, y, c)
			}
		}
	}
	paint(red, color.RGBA{200, 0, 0, 255})
	paint(blue, color.NRGBA{0, 0, 200, 255})
	images := []image.Image{&image.Gray{Pix: []byte{0, 255, 100, 50}, Stride: 2, Rect: image.Rect(0, 0, 2, 2)}, red, blue}
	example := func(i, label int, top ...Score) Example {
		return Example{Index: i, Label: label, Top: top, Entropy: 0.6931, MutualInformation: 1e-5}
	}
	return &Montage{
		Title: "title " + hostile, Note: "note " + hostile,
		Classes: []string{"cat", "dog " + hostile},
		Sections: []Section{
			{"First", "Why & how.", []Example{
				example(0, 0, Score{0, 0.75}, Score{1, 0.25}, Score{2, 0}, Score{3, 0}),
				example(1, 1, Score{0, 1}),
				example(2, -1, Score{5, math.NaN()}),
			}},
			{"Second", "", []Example{example(3, 0, Score{1, 1.5})}},
		},
		Name: func(i int) string { return fmt.Sprintf("%d %s", i, hostile) },
		Image: func(i int) (image.Image, error) {
			if i < len(images) {
				return images[i], nil
			}
			return nil, errors.New("cannot be read: " + hostile)
		},
	}
}

func TestCaption(t *testing.T) {
	m := testMontage()
	m.Name = func(int) string { return "a\u202eb\n" }
	got := m.caption(&m.Sections[0].Examples[0])
	want := caption{Name: "a�b�", Label: "right", Entropy: "0.693", MI: "< 0.001", Uncertain: "entropy 0.693", Disagree: "MI < 0.001", Bars: []bar{
		{"cat", "75.0 %", 0.75}, {m.class(1), "25.0 %", 0.25}, {"class 2", "0.0 %", 0}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	m.Classes = []string{"cat", " "} // a blank name is none
	for i, want := range []string{
		"a�b�: predicted cat, 75.0 %, right",
		"a�b�: predicted cat, 100.0 %, wrong, labelled class 1",
		"a�b�: predicted class 5, NaN %",
	} {
		if got := m.caption(&m.Sections[0].Examples[i]).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for x, want := range map[float64]string{0: "0.000", -1e-17: "0.000", 4e-4: "< 0.001", 6e-4: "0.001", 2.3026: "2.303"} {
		if got := nats(x); got != want {
			t.Errorf("nats(%v) = %q, want %q", x, got, want)
		}
	}
}

// element is what the test needs of one in the page.
type element struct {
	name string
	attr map[string]string
	text string // up to the next tag
}

// elements reads the page as a tolerant parser does: a name that got out of its
// place shows as an element, an attribute, or an error.
func elements(t *testing.T, page []byte) []element {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var all []element
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			all = append(all, e)
		case xml.CharData:
			if len(all) > 0 {
				all[len(all)-1].text += string(token)
			}
		}
	}
}

func TestWriteHTML(t *testing.T) {
	var b bytes.Buffer
	if err := testMontage().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	allowed := map[string][]string{
		"html": {"lang"}, "head": nil, "meta": {"charset", "name", "content", "http-equiv"}, "title": nil, "style": nil, "body": nil, "header": nil, "h1": nil,
		"p": {"class"}, "main": nil, "section": {"aria-labelledby"}, "h2": {"id"}, "ol": {"class"}, "ul": {"class"}, "li": nil, "figure": nil, "figcaption": nil,
		"div": {"class", "title"}, "img": {"src", "alt", "class"}, "span": {"class", "style"}, "bdi": nil, "abbr": {"title"},
	}
	count := map[string]int{}
	var sizes []string
	var widths []string
	for _, e := range elements(t, b.Bytes()) {
		count[e.name]++
		attributes, ok := allowed[e.name]
		if !ok {
			t.Errorf("element %s", e.name)
		}
		for name := range e.attr {
			if !slices.Contains(attributes, name) {
				t.Errorf("element %s has attribute %s", e.name, name)
			}
		}
		if style, ok := e.attr["style"]; ok {
			widths = append(widths, style)
		}
		if e.name == "img" {
			kind, data, _ := strings.Cut(e.attr["src"], ";base64,")
			file, err := base64.StdEncoding.DecodeString(data)
			if err != nil {
				t.Error(err)
			}
			c, format, err := image.DecodeConfig(bytes.NewReader(file))
			if err != nil || kind != "data:image/"+format {
				t.Errorf("%s: %s image, %v", kind, format, err)
			}
			sizes = append(sizes, fmt.Sprintf("%s %d×%d %q", format, c.Width, c.Height, e.attr["class"]))
			if !strings.Contains(e.attr["alt"], `"><script>alert(1)</script>�[2J�gpj.exe�' onerror='x: predicted `) {
				t.Errorf("alt %q", e.attr["alt"])
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"section": 2, "h2": 2, "figure": 4, "img": 3, "title": 1, "ol": 2, "ul": 4, "style": 1},
		map[string]int{"section": count["section"], "h2": count["h2"], "figure": count["figure"], "img": count["img"], "title": count["title"], "ol": count["ol"], "ul": count["ul"], "style": count["style"]}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`png 2×2 "pixels"`, `jpeg 256×128 ""`, `jpeg 100×100 ""`}, sizes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"width:75.0%", "width:25.0%", "width:0.0%", "width:100.0%", "width:0.0%", "width:100.0%"}, widths); diff != "" {
		t.Error(diff)
	}
	page := b.String()
	for _, bad := range []string{"<script", "http://", "https://", "url(", "@import", "ZgotmplZ", "\u202e", "\x1b"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{"Why &amp; how.", "cannot be read: ", ">right<", ">wrong, labelled cat<", "entropy 0.693", "default-src 'none'", "prefers-color-scheme: dark", "@media print"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	var again bytes.Buffer
	if err := testMontage().WriteHTML(&again); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("a second page differs, %v", err)
	}
	var empty bytes.Buffer
	if err := (&Montage{}).WriteHTML(&empty); err != nil || !strings.Contains(empty.String(), "No example could be shown.") {
		t.Errorf("without sections: %v", err)
	}
}

func TestWritePNG(t *testing.T) {
	m := testMontage()
	m.Title, m.Note = "title", "" // one line each, to know where tiles are
	var b, again bytes.Buffer
	if err := m.WritePNG(&b); err != nil {
		t.Fatal(err)
	}
	if err := m.WritePNG(&again); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("a second drawing differs, %v", err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	// Three columns. The legend takes two lines at this width, the explanation one.
	const width = 2*margin + 3*tileSide + 2*tileGap
	const top = margin + 38 + 2*26 + sectionGap + 30 + 26 + 14
	const bars = tileSide + captionGap + lineHeight
	tall := func(bars int) int {
		return tileSide + captionGap + bars*(lineHeight+barHeight+barGap) + 3*lineHeight
	}
	second := top + tall(3) + sectionGap + 30 + 14
	if want := image.Rect(0, 0, width, second+tall(1)+margin); img.Bounds() != want {
		t.Fatalf("drawing of %v, want %v", img.Bounds(), want)
	}
	const next = tileSide + tileGap
	for _, tt := range []struct {
		what string
		x, y int
		want color.RGBA
	}{
		{"paper", 1, 1, paper},
		{"tiny image, upper left", margin + 10, top + 10, color.RGBA{0, 0, 0, 255}},
		{"tiny image, upper left at its corner", margin + 119, top + 119, color.RGBA{0, 0, 0, 255}}, // not smoothed
		{"tiny image, upper right", margin + 120, top + 119, color.RGBA{255, 255, 255, 255}},
		{"tiny image, lower left", margin + 10, top + 130, color.RGBA{100, 100, 100, 255}},
		{"wide image, above it", margin + next + 120, top + 30, ground},
		{"wide image", margin + next + 120, top + 120, color.RGBA{200, 0, 0, 255}},
		{"enlarged image", margin + 2*next + 3, top + 3, color.RGBA{0, 0, 200, 255}},
		{"bar of 75 %, its end", margin + 178, top + bars + 1, barInk},
		{"bar of 75 %, behind it", margin + 182, top + bars + 1, ground},
		{"bar of NaN", margin + 2*next + 1, top + bars + 1, ground},
		{"unreadable image", margin + 5, second + 5, ground},
		{"bar above 1, its end", margin + tileSide - 1, second + bars + 1, barInk},
		{"bar above 1, behind it", margin + tileSide, second + bars + 1, paper},
	} {
		if got := color.RGBAModel.Convert(img.At(tt.x, tt.y)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, got, tt.want)
		}
	}
}

// No text leaves its tile: between columns and beside them all is white.
func TestWritePNGKeepsColumns(t *testing.T) {
	m := testMontage()
	m.Title = strings.Repeat("x", 5000) + " " + strings.Repeat("word ", 100)
	m.Classes = []string{strings.Repeat("cat", 2000), strings.Repeat("dog", 2000)}
	m.Name = func(int) string { return strings.Repeat("名", 5000) }
	var b bytes.Buffer
	if err := m.WritePNG(&b); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	height := img.Bounds().Dy()
	second := height - margin - (tileSide + captionGap + lineHeight + barHeight + barGap + 3*lineHeight)
	for y := range height {
		columns := []int{margin / 2, margin + 3*tileSide + 2*tileGap + margin/2}
		if y >= second { // where one tile stands alone
			columns = append(columns, margin+tileSide+tileGap/2)
		}
		for _, x := range columns {
			if got := color.RGBAModel.Convert(img.At(x, y)); got != paper {
				t.Fatalf("pixel %d, %d is %v, want it empty", x, y, got)
			}
		}
	}
}

// A long class name leaves its percentage alone.
func TestWritePNGKeepsPercentages(t *testing.T) {
	s := newSheet(testMontage())
	s.canvas = image.NewRGBA(image.Rect(0, 0, tileSide, lineHeight))
	s.pair(0, 0, strings.Repeat("m", 100), "99.9 %", s.body, ink)
	gap := tileSide - font.MeasureString(s.body, "99.9 %").Ceil()
	for x := gap - 7; x < gap-1; x++ {
		for y := range lineHeight {
			if s.canvas.RGBAAt(x, y) != (color.RGBA{}) {
				t.Fatalf("pixel %d, %d is drawn upon", x, y)
			}
		}
	}
}

func TestWritePNGTooLarge(t *testing.T) {
	m := testMontage()
	m.Sections[0].Examples = slices.Repeat(m.Sections[0].Examples, 1000)
	var b bytes.Buffer
	if err := m.WritePNG(&b); err == nil || !strings.Contains(err.Error(), "too large, want fewer images") || b.Len() > 0 {
		t.Errorf("%v, and %d bytes", err, b.Len())
	}
}

func TestThumbnails(t *testing.T) {
	for _, tt := range []struct{ in, shrunk, filled image.Point }{
		{image.Pt(28, 28), image.Pt(28, 28), image.Pt(224, 224)}, // 8 pixels for each
		{image.Pt(64, 32), image.Pt(64, 32), image.Pt(192, 96)},
		{image.Pt(65, 65), image.Pt(65, 65), image.Pt(240, 240)},
		{image.Pt(1, 1), image.Pt(1, 1), image.Pt(240, 240)},
		{image.Pt(512, 256), image.Pt(256, 128), image.Pt(240, 120)},
		{image.Pt(3, 3000), image.Pt(1, 256), image.Pt(1, 240)}, // never without a pixel
	} {
		img := image.NewGray(image.Rectangle{Max: tt.in}.Add(image.Pt(5, 7)))
		for what, got := range map[string]struct{ img, want any }{
			"shrink": {shrink(img, 256).Bounds().Size(), tt.shrunk},
			"fill":   {fill(img, 240).Bounds().Size(), tt.filled},
		} {
			if got.img != got.want {
				t.Errorf("%s of %v: %v, want %v", what, tt.in, got.img, got.want)
			}
		}
		if _, ok := fill(img, 240).(*image.Gray); !ok {
			t.Error("a grey image becomes coloured")
		}
	}
}
