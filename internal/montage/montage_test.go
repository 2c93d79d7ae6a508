package montage

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/image/draw"

	"github.com/swagwrap/swagwrap/internal/task"
)

const hostile = "\"><script>alert(1)</script>\x1b[2J\u202egpj.exe\xff' onerror='x"

// testMontage shows a tiny grey image, a large red one, a flat blue one, and one that cannot be read, with hostile names
// everywhere. The first two are certain, and the third is wrong as well as uncertain.
func testMontage() *Montage {
	red, blue := image.NewRGBA(image.Rect(0, 0, 600, 300)), image.NewNRGBA(image.Rect(7, 9, 107, 109))
	draw.Draw(red, red.Bounds(), image.NewUniform(color.RGBA{200, 0, 0, 255}), image.Point{}, draw.Src)
	draw.Draw(blue, blue.Bounds(), image.NewUniform(color.RGBA{0, 0, 200, 255}), image.Point{}, draw.Src)
	images := []image.Image{&image.Gray{Pix: []byte{0, 255, 100, 50}, Stride: 2, Rect: image.Rect(0, 0, 2, 2)}, red, blue}
	m := New(3)
	m.Title, m.Note = "title "+hostile, "note "+hostile
	m.Words = task.Selection{Legend: "what <this> is", Sections: [4][2]string{{"Sure", "Why & how."}, {"Unsure", "b"}, {"Apart", "c"}, {"Off", "d"}}}
	m.Name = func(i int) string { return fmt.Sprintf("%d %s", i, hostile) }
	m.Image = func(i int) (image.Image, error) {
		if i < len(images) {
			return images[i], nil
		}
		return nil, errors.New("cannot be read: " + hostile)
	}
	for i, t := range []task.Tile{
		{Lines: []task.Line{{Text: "cat", Value: "75.0 %", Part: 0.75}, {Text: "dog " + hostile, Value: "25.0 %", Part: 0.25}}, Verdict: "right", Uncertain: "entropy 0.5", Disagree: "MI 0.1", Uncertainty: 0.5},
		{Lines: []task.Line{{Text: "20.3 ± 0.5", Value: "true 20.1", Part: -1}}, Verdict: "inside <the> interval", Uncertainty: 0.6},
		{Lines: []task.Line{{Text: "none", Part: -1}}, Verdict: "60.0 off", Wrong: true, Uncertainty: 1, Error: 60},
		{Lines: []task.Line{{Text: "all", Value: "100.0 %", Part: 1}}, Uncertainty: 2, Disagreement: 1e-12},
		{Uncertainty: math.NaN()},
		{Error: math.Inf(1)},
	} {
		m.Add(i, t)
	}
	return m
}

func TestSections(t *testing.T) {
	var got []string
	for _, s := range testMontage().shown() {
		text := s.Heading + ":"
		for _, e := range s.examples {
			text += fmt.Sprint(e.index)
		}
		got = append(got, text)
	}
	if want := "Sure:01 Unsure:32 Off:2"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %s", got, want)
	}
	one := New(5)
	one.Add(7, task.Tile{Uncertainty: 1})
	if s := one.shown(); len(s) != 1 || len(s[0].examples) != 1 {
		t.Errorf("one example: %v", s)
	}
}

// The reference sorts everything.
func TestAdd(t *testing.T) {
	const n = 7
	r := rand.New(rand.NewPCG(1, 2))
	tenth := func() float64 { return math.Round(10*r.Float64()) / 10 } // many keys are equal
	tiles := make([]task.Tile, 2000)
	for i := range tiles {
		tiles[i] = task.Tile{Uncertainty: tenth(), Disagreement: max(0, tenth()-0.5), Wrong: r.IntN(2) == 0, Error: tenth()}
	}
	var order []int
	for i := range tiles {
		order = append(order, i)
	}
	sorted := func(keep func(task.Tile) bool, key func(task.Tile) float64) []int {
		all := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return !keep(tiles[i]) })
		slices.SortStableFunc(all, func(a, b int) int {
			switch x, y := key(tiles[a]), key(tiles[b]); {
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return a - b
		})
		return all[:n]
	}
	any := func(task.Tile) bool { return true }
	want := [][]int{
		sorted(any, func(x task.Tile) float64 { return -x.Uncertainty }),
		sorted(any, func(x task.Tile) float64 { return x.Uncertainty }),
		sorted(any, func(x task.Tile) float64 { return x.Disagreement }),
		sorted(func(x task.Tile) bool { return x.Wrong }, func(x task.Tile) float64 { return x.Error }),
	}
	shuffled := slices.Clone(order)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for name, order := range map[string][]int{"in order": order, "shuffled": shuffled} {
		m := New(n)
		for _, i := range order {
			m.Add(i, tiles[i])
		}
		var got [][]int
		for _, s := range m.shown() {
			var indices []int
			for _, e := range s.examples {
				indices = append(indices, e.index)
			}
			got = append(got, indices)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWriteHTML(t *testing.T) {
	var b, again, empty bytes.Buffer
	if err := errors.Join(testMontage().WriteHTML(&b), testMontage().WriteHTML(&again)); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Fatalf("a second page differs, %v", err)
	}
	page := b.String()
	allowed := map[string]string{"html": "lang", "head": "", "meta": "charset name content http-equiv", "title": "", "style": "", "body": "", "header": "", "h1": "",
		"p": "class", "main": "", "section": "aria-labelledby", "h2": "id", "ol": "class", "ul": "class", "li": "", "figure": "", "figcaption": "",
		"div": "class title", "img": "src alt class", "span": "class style", "bdi": ""}
	// What escapes leave of a hostile name shows as an element or an attribute.
	count := map[string]int{}
	for _, e := range regexp.MustCompile(`<([a-zA-Z0-9]+)((?:[^">]|"[^"]*")*)>`).FindAllStringSubmatch(page, -1) {
		count[e[1]]++
		attributes, ok := allowed[e[1]]
		if !ok {
			t.Errorf("element %s", e[0])
		}
		for _, a := range regexp.MustCompile(`([a-z-]+)(?:="[^"]*")?`).FindAllStringSubmatch(e[2], -1) {
			if !slices.Contains(strings.Fields(attributes), a[1]) {
				t.Errorf("element %s has attribute %s", e[1], a[1])
			}
		}
	}
	if count["section"] != 3 || count["figure"] != 5 || count["img"] != 4 {
		t.Errorf("%v", count)
	}
	var sizes []string
	for _, m := range regexp.MustCompile(`src="data:image/(\w+);base64,([^"]*)" alt="([^"]*)"( class="pixels")?`).FindAllStringSubmatch(page, -1) {
		file, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(m[2], "&#43;", "+"))
		if err != nil {
			t.Error(err)
		}
		c, format, err := image.DecodeConfig(bytes.NewReader(file))
		if err != nil || m[1] != format {
			t.Errorf("%s: %s image, %v", m[1], format, err)
		}
		sizes = append(sizes, fmt.Sprintf("%s %d×%d%s", format, c.Width, c.Height, m[4]))
		if !strings.Contains(m[3], "&lt;script&gt;alert(1)&lt;/script&gt;�[2J�gpj.exe�&#39; onerror=&#39;x: ") {
			t.Errorf("alt %q", m[3])
		}
	}
	if diff := cmp.Diff([]string{`png 2×2 class="pixels"`, "jpeg 256×128", "jpeg 100×100", "jpeg 100×100"}, sizes); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"<script", "http://", "https://", "url(", "@import", "ZgotmplZ", "\u202e", "\x1b"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{"Why &amp; how.", "what &lt;this&gt; is", "cannot be read: ", "default-src 'none'", "prefers-color-scheme: dark", "@media print",
		"<bdi>20.3 ± 0.5</bdi><span>true 20.1</span></span></li>", `<bdi>cat</bdi><span>75.0 %</span></span><span class="track"><span style="width:75.0%">`,
		`<div class="verdict right">inside &lt;the&gt; interval</div>`, `<div class="verdict wrong">60.0 off`, "<span>entropy 0.5</span><span>MI 0.1</span>",
		"cat 75.0 %, dog ", ": 20.3 ± 0.5 true 20.1, inside &lt;the&gt; interval"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if err := New(1).WriteHTML(&empty); err != nil || !strings.Contains(empty.String(), "No example could be shown.") {
		t.Errorf("without sections: %v", err)
	}
}

func TestResize(t *testing.T) {
	for _, tt := range []struct{ in, want image.Point }{
		{image.Pt(64, 32), image.Pt(240, 120)}, {image.Pt(1, 1), image.Pt(240, 240)}, {image.Pt(512, 256), image.Pt(240, 120)},
		{image.Pt(3, 3000), image.Pt(1, 240)}, // never without a pixel
	} {
		img := resize(image.NewGray(image.Rectangle{Max: tt.in}.Add(image.Pt(5, 7))), 240)
		if got := img.Bounds().Size(); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.in, got, tt.want)
		}
		if _, ok := img.(*image.Gray); !ok {
			t.Error("a grey image becomes coloured")
		}
	}
}
