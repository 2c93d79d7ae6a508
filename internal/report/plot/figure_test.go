package plot

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

	"gonum.org/v1/plot/plotter"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/report/text"
)

const hostile = "\"><script>alert(1)</script>\x1b[2J\u202egpj.exe\xff' onerror='x"

// hostileFigures have hostile names everywhere and numbers that cannot be drawn.
func hostileFigures() []*Figure {
	nan, inf := math.NaN(), math.Inf(1)
	long := strings.Repeat("very-long-name-", 2000)
	strange := []float64{0, nan, inf, -inf, 1e308, -1e308, 5}
	curves := []Curve{{Title: hostile, Series: []Series{{Name: hostile, X: strange, Y: []float64{nan}}}}, {},
		{Title: hostile, XLabel: hostile, YLabel: long, LogX: true, LogY: true, Note: hostile,
			Marks:  []Tick{{inf, hostile}, {2, hostile}},
			Series: []Series{{Name: long, X: strange, Y: []float64{1, 2, 3, 4, 5, 6, 7}, Lower: strange, Upper: strange}, {Name: "one", X: []float64{1}, Y: []float64{1}}, {}}}}
	bins := []calibrate.ReliabilityBin{{}, {Count: 3, Confidence: nan}, {Count: 5, Confidence: 1.0000001, Accuracy: 1}, {Count: 1, Confidence: 1e-9, Accuracy: 0}, {Count: 2, Confidence: -3, Accuracy: 7}}
	methods := []Method{{Name: hostile, Reliability: bins, RiskCoverage: []calibrate.RiskPoint{{Coverage: nan, Risk: 1}, {Coverage: 0.5, Risk: inf}, {Coverage: 0.6, Risk: 0.1}}},
		{Name: long, Reliability: bins[:2]}, {Name: "saturated", Reliability: []calibrate.ReliabilityBin{{Count: 9, Confidence: 1, Accuracy: 1}}}}
	in := detect.Histogram{Edges: []float64{1e-8, 1e-4, 3}, Counts: []int{0, 4}, Below: 2, Above: 1}
	all := append(DrawCurves("sweep", curves), DrawReliability(methods)...)
	all = append(all, DrawRisk(methods)...)
	all = append(all, DrawOperating([]Method{{Name: hostile, Points: []detect.OperatingPoint{{Threshold: nan}}}, {Name: long, Points: []detect.OperatingPoint{{Threshold: 1, Decisions: detect.Decisions{TruePositives: 3}}}}, {Name: "none"}})...)
	all = append(all, DrawDifferences([]Differences{{Title: hostile, Label: hostile, Baseline: long, Rows: []Difference{{Name: hostile, Value: nan}, {Name: long, Value: 1, Lower: nan, Upper: inf}, {Name: "x", Value: -1e300, Lower: -inf}, {Name: "y"}}}, {Title: "none"}})...)
	all = append(all, DrawEntropies([]HistogramPair{{Name: hostile, In: in, Out: in, Note: hostile},
		{Name: "empty", In: detect.Histogram{Edges: in.Edges, Counts: []int{0, 0}}, Out: in}, {}})...)
	return append(all, DrawSurfaces([]Surface{
		{Title: hostile, XLabel: hostile, YLabel: hostile, ZLabel: long, X: []float64{0, 1, 2}, Y: []float64{0, 1}, Z: [][]float64{{nan, 1, 2}, {3, inf, 1e308}},
			Ellipses: []Ellipse{{XX: -1, YY: 1, Radius: 1}, {XX: nan}, {XX: 1, YY: 1, XY: 5}, {XX: 1e-30, YY: 1e-30, Radius: 1, Label: hostile}, {XX: 1e300, YY: 1e300, Radius: 1}},
			Points:   []PointSet{{Name: hostile, X: strange, Y: strange, Path: true}, {Name: "none"}}},
		{Title: "flat", X: []float64{0, 1}, Y: []float64{0, 1}, Z: [][]float64{{2, 2}, {2, 2}}},
		{Title: "nothing", X: []float64{0, 1}, Y: []float64{0, 1}, Z: [][]float64{{nan, nan}, {nan, nan}}},
	})...)
}

// plainFigures are one of each kind with ordinary numbers.
func plainFigures() []*Figure {
	random := func(n, scale int) []calibrate.ReliabilityBin {
		var bins []calibrate.ReliabilityBin
		for i := range n {
			c := 1 - math.Pow(10, -0.3-0.2*float64(i))
			bins = append(bins, calibrate.ReliabilityBin{Count: 200, Confidence: c, Accuracy: c * (1 - 0.02*float64(scale))})
		}
		return bins
	}
	var methods []Method
	var rows []Difference
	for i, name := range []string{"SWA-Temp", "your network", "SGD, all iterates", "SWA, stale BN", "SWA", "isotropic noise, equal trace", "KFAC-Laplace, last layer", "SWAG"} {
		risk := []calibrate.RiskPoint{{Coverage: 0.1, Risk: 0.01}, {Coverage: 0.5, Risk: 0.02 * float64(i+1)}, {Coverage: 1, Risk: 0.03 * float64(i+1)}}
		methods = append(methods, Method{Name: name, Minor: i%3 == 1, Label: "ECE 0.01", Reliability: random(15, i), RiskCoverage: risk})
		d := 0.0008*float64(i-5) - 0.004
		rows = append(rows, Difference{Name: name, Value: d, Lower: d - 0.002, Upper: d + 0.002})
	}
	rows[3] = Difference{Name: "SWA, stale BN", Value: 15.49, Lower: 15.2, Upper: 15.7}
	var many Series
	for i := range 60 {
		x := float64(i + 1)
		many.X, many.Y, many.Lower, many.Upper = append(many.X, x), append(many.Y, 1/x), append(many.Lower, 0.9/x), append(many.Upper, 1.1/x)
	}
	curves := []Curve{{Title: "Number of members", XLabel: "members", YLabel: "NLL, nats", LogX: true, Marks: []Tick{{30, "default"}}, Series: []Series{many}},
		{Title: "Scale", XLabel: "scale α", YLabel: "NLL, nats", Series: []Series{{Name: "SWAG", X: []float64{0, 1, 2}, Y: []float64{3, 1, 2}}}}}
	s := surfaceOf(11, func(x, y float64) float64 { return x*x + 2*y*y + 0.3*x*y })
	s.Title, s.XLabel, s.YLabel, s.ZLabel = "Plane", "direction 1, distance", "direction 2, distance", "NLL, nats"
	s.Ellipses, s.Points = []Ellipse{{XX: 0.09, YY: 0.03, Radius: 1, Label: "1σ"}, {XX: 0.09, YY: 0.03, Radius: 2, Label: "2σ"}}, []PointSet{{Name: "SWA", X: []float64{0}, Y: []float64{0}}}
	h := detect.Histogram{Edges: []float64{1e-6, 1e-4, 1e-2, 1}, Counts: []int{1, 5, 2}, Below: 2, Above: 1}
	all := append(DrawReliability(methods), DrawRisk(methods)...)
	all = append(all, DrawReliability([]Method{{Name: "of class 1", OfClass1: true, Reliability: []calibrate.ReliabilityBin{{Count: 90, Confidence: 0.02, Accuracy: 0.05}, {Count: 50, Confidence: 0.6, Accuracy: 0.4}, {Count: 70, Confidence: 0.97, Accuracy: 1}}}})...)
	all = append(all, DrawOperating(deciding())...)
	all = append(all, DrawDifferences([]Differences{{Title: "NLL", Label: "NLL − NLL(SWA-Temp), nats", Baseline: "SWA-Temp", Rows: rows}})...)
	all = append(all, DrawEntropies([]HistogramPair{{Name: "SWAG", In: h, Out: h}})...)
	all = append(all, DrawCurves("sweep", curves)...)
	return append(all, DrawSurfaces([]Surface{*s})...)
}

// deciding are methods of one of two classes, of which one is minor.
func deciding() []Method {
	var methods []Method
	for k, name := range []string{"your network", "SWA-Temp", "SWAG"} {
		var in, out []float64
		for i := range 40 {
			in, out = append(in, math.Mod(float64(i)*0.37, 1)*0.8), append(out, 0.2+0.1*float64(k)+math.Mod(float64(i)*0.61, 1)*0.7)
		}
		methods = append(methods, Method{Name: name, Minor: k == 0, Points: detect.OperatingPoints(in, out), Decided: detect.Decide(in, out, 0.5)})
	}
	return methods
}

// The curves end where all examples are taken for class 1, and a step of the precision-recall
// curve has its area: together the average precision.
func TestOperatingPoints(t *testing.T) {
	in, out := []float64{0.1, 0.2, 0.35, 0.8, 0.8}, []float64{0.3, 0.8, 0.9, 0.95}
	points := detect.OperatingPoints(in, out)
	roc, pr := rocPoints(points), recallPoints(points)
	if first, last := roc[0], roc[len(roc)-1]; first.X != 0 || first.Y != 0 || last.X != 1 || last.Y != 1 {
		t.Errorf("from %v to %v", first, last)
	}
	area := func(of plotter.XYs) (sum float64) {
		for i := range of[1:] {
			sum += (of[i+1].X - of[i].X) * (of[i+1].Y + of[i].Y) / 2
		}
		return sum
	}
	if got, want := area(roc), detect.AUROC(in, out); math.Abs(got-want) > 1e-12 { // some roundings
		t.Errorf("the area is %v, want %v", got, want)
	}
	if got, want := area(pr), detect.AUPR(in, out); math.Abs(got-want) > 1e-12 {
		t.Errorf("the area is %v, want %v", got, want)
	}
}

// box is what a label covers.
type box struct{ x0, y0, x1, y1 float64 }

func boxOf(l *label) box {
	up, down := l.height*0.7, l.height*0.2
	if l.upright {
		return box{l.x - up, l.y, l.x + down, l.y + l.width}
	}
	return box{l.x, l.y - down, l.x + l.width, l.y + up}
}

func (a box) overlaps(b box) bool {
	return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1
}

// No label overlaps another or leaves the drawing, nor does a line.
func TestLayout(t *testing.T) {
	for _, f := range append(plainFigures(), hostileFigures()...) {
		for _, titled := range []bool{false, true} {
			d := drawn(f, titled)
			for _, s := range d.shapes {
				for _, p := range s.points {
					if !(p.x >= -1 && p.x <= d.width+1 && p.y >= -1 && p.y <= d.height+1) {
						t.Fatalf("%s: a line goes through %v, outside of %v × %v", f.Name, p, d.width, d.height)
					}
				}
			}
			for i := range d.texts {
				l := &d.texts[i]
				b := boxOf(l)
				if !(b.x0 >= -0.5 && b.y0 >= -0.5 && b.x1 <= d.width+0.5 && b.y1 <= d.height+0.5) {
					t.Errorf("%s: label %.40q at %.1f leaves the drawing, %v × %v", f.Name, l.text, b, d.width, d.height)
				}
				for k := range d.texts[:i] {
					if b.overlaps(boxOf(&d.texts[k])) {
						t.Errorf("%s: labels %.40q and %.40q overlap", f.Name, l.text, d.texts[k].text)
					}
				}
			}
		}
	}
}

// Both forms of SVG are well-formed, no number in them is other than finite, and
// text is text.
func TestSVG(t *testing.T) {
	bad := regexp.MustCompile(`(?:d|x|y|width|height|viewBox|style)="[^"]*(?:NaN|Inf)`)
	for i, f := range append(plainFigures(), hostileFigures()...) {
		var file bytes.Buffer
		if err := f.WriteSVG(&file); err != nil {
			t.Fatal(err)
		}
		inline := f.SVG(fmt.Sprint("f", i))
		if words := f.Words(); words[0] != text.Clean(f.Title) || len(words) < 4+len(f.keys) {
			t.Errorf("%s: words %.200q", f.Name, words)
		}
		for _, svg := range []string{inline, file.String()} {
			d := xml.NewDecoder(strings.NewReader(svg))
			texts := ""
			for {
				token, err := d.Token()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", f.Name, err)
				}
				switch token := token.(type) {
				case xml.CharData:
					texts += string(token)
				case xml.StartElement:
					if token.Name.Local == "script" {
						t.Errorf("%s: a script", f.Name)
					}
				}
			}
			if !strings.Contains(texts, text.Clean(f.Title)) || !strings.Contains(texts, text.Clean(f.desc)) {
				t.Errorf("%s: title or description is missing", f.Name)
			}
			if m := bad.FindString(svg); m != "" {
				t.Errorf("%s: %.80s", f.Name, m)
			}
		}
		// The page gives the colours, but those of a surface.
		if m := regexp.MustCompile(`(?:fill|stroke):#\w+`).FindString(inline); m != "" && !strings.HasPrefix(f.Name, "surface") {
			t.Errorf("%s: %s", f.Name, m)
		}
	}
}

// Every role is found in what vgsvg makes of its colour.
func TestVariable(t *testing.T) {
	for r, p := range palette {
		for _, c := range []color.Color{role(r), tint{role(r), 0.15}, tint{role(r), 0.3}} {
			red, green, blue, alpha := c.RGBA()
			a := 255.0 / float64(alpha) // as vgsvg reckons
			hex := fmt.Sprintf("#%02X%02X%02X", int(float64(red)*a), int(float64(green)*a), int(float64(blue)*a))
			if got, want := variable(hex), "var(--"+p.name+")"; got != want {
				t.Errorf("%s of %s: %s", hex, p.name, got)
			}
		}
	}
	if got := variable("#440154"); got != "#440154" {
		t.Errorf("a colour of surfaces becomes %s", got)
	}
}

// A mark, a rule and paper are where they should be, in three pixels to the
// unit.
func TestPNG(t *testing.T) {
	f := DrawCurves("c", []Curve{{Title: "c", XLabel: "x", YLabel: "y", Series: []Series{{Name: "s", X: []float64{1, 2, 3}, Y: []float64{1, 3, 2}}}}})[0]
	var b bytes.Buffer
	if err := f.WritePNG(&b); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	width, height := f.size(true)
	if size := img.Bounds().Size(); size.X != int(3*width) || math.Abs(float64(size.Y)-3*height.Points()) > 1 {
		t.Errorf("size %v of %v × %v, want three pixels to the unit", size, width, height)
	}
	is := func(p at, want color.Color) {
		t.Helper()
		got := color.RGBAModel.Convert(img.At(int(p.x*3), int((height.Points()-p.y)*3)))
		if got != color.RGBAModel.Convert(want) {
			t.Errorf("at %v: %v, want %v", p, got, want)
		}
	}
	is(at{1, 1}, paper)
	marks := marked(drawn(f, true), seriesRole)
	if len(marks) != 3 {
		t.Fatalf("%d marks", len(marks))
	}
	for _, p := range marks {
		is(p, seriesRole)
		is(at{p.x, p.y - markSize - 2}, paper)
	}
}

func TestFileName(t *testing.T) {
	for in, want := range map[string]string{"SWA, stale BN": "entropy-swa-stale-bn", "模型": "entropy", "../../x": "entropy-x", strings.Repeat("a-", 99): "entropy" + strings.Repeat("-a", 26)} {
		if got := fileName("entropy", in); got != want {
			t.Errorf("fileName(%q) = %q, want %q", in, got, want)
		}
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
	least := map[role]float64{ink: 7, soft: 4.5}
	for c := seriesRole; c < seriesRole+seriesRoles; c++ {
		least[c] = 3
	}
	for c, want := range least {
		light, dark := contrast(palette[c].light, palette[paper].light), contrast(palette[c].dark, palette[paper].dark)
		if light < want || dark < want {
			t.Errorf("%s: contrast %.2f on light and %.2f on dark ground, want %v", palette[c].name, light, dark, want)
		}
	}
	// Eighteen series look different, in more than colour.
	seen := map[string]bool{}
	for i := range seriesRoles * len(dashes) {
		m := seriesMark(i).Shape.(mark)
		seen[fmt.Sprintf("%v %T %v", seriesPen(i).Dashes, m.GlyphDrawer, m.hollow)] = true
	}
	if len(seen) != 18 {
		t.Errorf("%d combinations of dash and marker, want 18", len(seen))
	}
	// The surface palette grows lighter at every step.
	for i, c := range bandColours[1:] {
		if luminance(c) <= luminance(bandColours[i]) {
			t.Errorf("%s after %s is darker", c, bandColours[i])
		}
	}
}
