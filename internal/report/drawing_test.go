package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// figuresOf are all figures of a report.
func figuresOf(r *Report) []figure {
	var all []figure
	for _, p := range r.parts() {
		all = append(all, p.figures...)
	}
	return all
}

// box is what a label covers.
type box struct{ x0, y0, x1, y1 float64 }

// boxOf takes the width that the layout reckons with.
func boxOf(l *label) box {
	w := textWidth(l.text, l.size)
	up, down := l.size*0.7, l.size*0.2
	if l.vertical {
		return box{l.x - up, l.y - w*(1-l.anchor), l.x + down, l.y + w*l.anchor}
	}
	return box{l.x - w*l.anchor, l.y - up, l.x + w*(1-l.anchor), l.y + down}
}

func (a box) overlaps(b box) bool {
	return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1
}

// No label overlaps another or leaves the drawing, nor does a line.
func TestLayout(t *testing.T) {
	for name, r := range map[string]*Report{"1": sampleReport(1), "2": sampleReport(2), "12": sampleReport(12), "hostile": hostileReport()} {
		for _, f := range figuresOf(r) {
			var labels []*label
			for _, d := range []*drawing{f.drawing, f.drawing.titled()} {
				labels = labels[:0]
				for _, s := range d.shapes {
					if s.label != nil {
						labels = append(labels, s.label)
					}
					for _, path := range s.paths {
						for _, p := range path {
							if !(p.x >= 0 && p.x <= d.width && p.y >= 0 && p.y <= d.height) {
								t.Fatalf("%s: %s: a line goes through %v, outside of %v × %v", name, f.name, p, d.width, d.height)
							}
						}
					}
				}
				for i, l := range labels {
					b := boxOf(l)
					if !(b.x0 >= -0.5 && b.y0 >= -0.5 && b.x1 <= d.width+0.5 && b.y1 <= d.height+0.5) {
						t.Errorf("%s: %s: label %.40q at %.1f leaves the drawing, %v × %v", name, f.name, l.text, b, d.width, d.height)
					}
					for _, m := range labels[:i] {
						if b.overlaps(boxOf(m)) {
							t.Errorf("%s: %s: labels %.40q and %.40q overlap", name, f.name, l.text, m.text)
						}
					}
				}
			}
		}
	}
}

// Both forms of SVG are well-formed, and no number in them is other than finite.
func TestSVG(t *testing.T) {
	bad := regexp.MustCompile(`(?:d|x|y|width|height|viewBox|font-size)="[^"]*(?:NaN|Inf)`)
	for _, r := range []*Report{sampleReport(12), hostileReport()} {
		for i, f := range figuresOf(r) {
			for _, svg := range []string{f.svg(fmt.Sprint("f", i)), string(f.titled().file())} {
				d := xml.NewDecoder(strings.NewReader(svg))
				texts := ""
				for {
					token, err := d.Token()
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatalf("%s: %v", f.name, err)
					}
					if data, ok := token.(xml.CharData); ok {
						texts += string(data)
					}
				}
				if !strings.Contains(texts, cleanText(f.title)) || !strings.Contains(texts, cleanText(f.desc)) {
					t.Errorf("%s: title or description is missing", f.name)
				}
				if m := bad.FindString(svg); m != "" {
					t.Errorf("%s: %.80s", f.name, m)
				}
			}
		}
	}
}

func TestHostileTextInSVG(t *testing.T) {
	d := drawing{title: hostile, desc: hostile, width: 10, height: 10}
	d.text(colourInk, label{text: hostile, size: 10})
	d.rect(pen{}, 1, 1, 2, 2).tip = hostile
	svg := d.svg("f")
	if n := strings.Count(svg, "<script"); n != 0 {
		t.Errorf("%d scripts in %s", n, svg)
	}
	if n := strings.Count(svg, "&lt;script&gt;alert(1)"); n != 4 {
		t.Errorf("the text occurs %d times, want 4", n)
	}
}

// A disc, a translucent square, a dashed line and a text are where they are said
// to be.
func TestPNG(t *testing.T) {
	d := drawing{title: "t", width: 100, height: 60}
	d.area(pen{colour: colourSeries, fill: 1}, polygon(at{20, 20}, 8, 16, 0)...)
	d.rect(pen{colour: colourInk, fill: 0.5}, 40, 10, 60, 30)
	d.line(pen{colour: colourSeries + 1, stroke: 4, dash: dashed}, at{10, 40}, at{90, 40})
	d.text(colourInk, label{at: at{90, 20}, text: "M", size: 20, anchor: 1})
	var b bytes.Buffer
	if err := d.writePNG(&b); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size.X != 300 || size.Y != 180 {
		t.Errorf("size %v, want three pixels to the unit", size)
	}
	is := func(x, y float64, want color.RGBA) {
		t.Helper()
		got := color.RGBAModel.Convert(img.At(int(x*pngScale), int(y*pngScale))).(color.RGBA)
		near := func(a, b uint8) bool { return math.Abs(float64(a)-float64(b)) <= 1 }
		if !near(got.R, want.R) || !near(got.G, want.G) || !near(got.B, want.B) {
			t.Errorf("at %v, %v: %v, want %v", x, y, got, want)
		}
	}
	white, blue, orange := color.RGBA{255, 255, 255, 255}, colourSeries.rgba(), (colourSeries + 1).rgba()
	is(20, 20, blue)
	is(20, 13, blue)
	is(20, 11, white)
	is(30, 20, white)
	is(50, 20, color.RGBA{(255 + 0x1b) / 2, (255 + 0x1f) / 2, (255 + 0x24) / 2, 255})
	// Six units of ink, then a gap of three and a half.
	for x := 10.0; x < 89; x += 0.5 {
		phase := math.Mod(x-10, 9.5)
		switch {
		case phase > 0.5 && phase < 5.5:
			is(x, 40, orange)
		case phase > 6.5 && phase < 9:
			is(x, 40, white)
		}
	}
	is(15, 41.5, orange)
	is(15, 42.5, white)
	ink := 0
	for x := 70 * 3; x < 90*3; x++ {
		for y := 5 * 3; y < 20*3; y++ {
			if r, _, _, _ := img.At(x, y).RGBA(); r < 0x8000 {
				ink++
			}
		}
	}
	if ink < 150 || ink > 1500 {
		t.Errorf("%d dark pixels in the letter", ink)
	}
}

func TestPNGTooLarge(t *testing.T) {
	d := drawing{width: 1e5, height: 10}
	var b bytes.Buffer
	if err := d.writePNG(&b); err == nil || b.Len() > 0 {
		t.Errorf("error %v, %d bytes", err, b.Len())
	}
}

// A vertical label reads upwards: its first letter is the lowest.
func TestVerticalText(t *testing.T) {
	d := drawing{width: 60, height: 100}
	d.text(colourInk, label{at: at{40, 50}, text: "M......", size: 20, anchor: 0.5, vertical: true})
	var b bytes.Buffer
	if err := d.writePNG(&b); err != nil {
		t.Fatal(err)
	}
	img, _ := png.Decode(&b)
	lower, upper := 0, 0
	for y := range 300 {
		for x := range 180 {
			if r, _, _, _ := img.At(x, y).RGBA(); r < 0x8000 {
				if x > 40*3+3 {
					t.Fatalf("ink at %d, %d, right of the baseline", x, y)
				}
				if y > 150 {
					lower++
				} else {
					upper++
				}
			}
		}
	}
	if lower <= upper || upper == 0 {
		t.Errorf("%d dark pixels in the lower half, %d in the upper: want M below the dots", lower, upper)
	}
}

// luminance and contrast follow WCAG 2.2.
func luminance(hex string) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, _ := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestPalette(t *testing.T) {
	if c := contrast("#000000", "#ffffff"); math.Abs(c-21) > 1e-9 {
		t.Fatalf("contrast of black and white %v, want 21", c)
	}
	least := map[colour]float64{colourInk: 7, colourSoft: 4.5}
	for c := colourSeries; c < surfaceColours; c++ {
		least[c] = 3
	}
	for c, want := range least {
		light, dark := contrast(palette[c].light, palette[colourPaper].light), contrast(palette[c].dark, palette[colourPaper].dark)
		if light < want || dark < want {
			t.Errorf("%s: contrast %.2f on light and %.2f on dark ground, want %v", c.class(), light, dark, want)
		}
	}
	// Eighteen series look different, in more than colour.
	seen := map[string]bool{}
	for i := range seriesColours * len(dashes) {
		d := drawing{}
		d.marker(i, at{}, 1, "")
		seen[fmt.Sprint(seriesPen(i).dash, d.shapes[0].paths)] = true
		if hollow := d.shapes[0].paper; hollow != (i >= seriesColours) {
			t.Errorf("mark %d: hollow %v", i, hollow)
		}
	}
	if len(seen) != 18 {
		t.Errorf("%d combinations of dash and marker, want 18", len(seen))
	}
	// The surface palette grows lighter at every step.
	for i := 1; i < 256; i++ {
		if a, b := surfaceColour(float64(i-1)/255), surfaceColour(float64(i)/255); luminance(b.hex()) <= luminance(a.hex())-1e-3 {
			t.Errorf("step %d: %s after %s is darker", i, b.hex(), a.hex())
		}
	}
	if a, b := surfaceColour(0).hex(), surfaceColour(1).hex(); a != "#440154" || b != "#fde725" {
		t.Errorf("ends of viridis are %s and %s", a, b)
	}
}
