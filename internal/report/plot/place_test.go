package plot

import (
	"image/color"
	"math"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/recorder"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
)

// A drawing is what a figure puts on a canvas, in its order.
type drawing struct {
	width, height float64
	within        vg.Rectangle // of the axes
	shapes        []shape
	texts         []label
}

type shape struct {
	filled bool
	colour color.Color
	dashes []vg.Length
	points []at
}

type at struct{ x, y float64 }

// label begins at a place of its baseline; upright ones are read upwards.
type label struct {
	at
	text          string
	width, height float64
	upright       bool
}

func drawn(f *Figure, titled bool) *drawing {
	width, height := f.size(titled)
	d := &drawing{width: width.Points(), height: height.Points()}
	var c recorder.Canvas
	f.draw(&c, titled)
	type state struct {
		colour  color.Color
		dashes  []vg.Length
		upright bool
	}
	var now state
	var pushed []state
	for _, action := range c.Actions {
		switch a := action.(type) {
		case *recorder.SetColor:
			now.colour = a.Color
		case *recorder.SetLineDash:
			now.dashes = a.Dashes
		case *recorder.Rotate:
			now.upright = true
		case *recorder.Push:
			pushed = append(pushed, now)
		case *recorder.Pop:
			now, pushed = pushed[len(pushed)-1], pushed[:len(pushed)-1]
		case *recorder.Fill:
			d.shapes = append(d.shapes, shape{true, now.colour, nil, corners(a.Path)})
		case *recorder.Stroke:
			d.shapes = append(d.shapes, shape{false, now.colour, now.dashes, corners(a.Path)})
		case *recorder.FillString:
			face := style(ink, a.Size.Points(), false)
			l := label{at{a.Point.X.Points(), a.Point.Y.Points()}, a.String, face.Width(a.String).Points(), a.Size.Points(), now.upright}
			if l.upright {
				l.at = at{-l.y, l.x}
			}
			d.texts = append(d.texts, l)
		}
	}
	_, _, bottom := f.legend()
	bottom += edge
	if f.bar != nil {
		bottom += barTop + f.bar.axes()
	}
	d.within = f.within(f.axes()).Add(vg.Point{Y: vg.Length(bottom)})
	return d
}

// corners of a path; a circle has its middle alone.
func corners(path vg.Path) []at {
	var points []at
	if len(path) > 1 && path[1].Type == vg.ArcComp {
		path = path[1:]
	}
	for _, c := range path {
		if c.Type != vg.CloseComp {
			points = append(points, at{c.Pos.X.Points(), c.Pos.Y.Points()})
		}
	}
	return points
}

// ruler reads a drawing as a person does: the places of its ticks, below the x axis
// or left of the y axis, by their labels.
func ruler(t *testing.T, d *drawing, vertical bool, labels ...string) []float64 {
	t.Helper()
	var places []float64
	for _, want := range labels {
		found := math.NaN()
		for _, l := range d.texts {
			left := l.x+l.width <= d.within.Min.X.Points()
			if l.text != want || left != vertical || !vertical && l.y > d.within.Min.Y.Points() {
				continue
			}
			for _, s := range d.shapes {
				if len(s.points) != 2 {
					continue
				}
				p, q := s.points[0], s.points[1]
				if vertical && s.colour == line && p.y == q.y && math.Abs(p.y-l.y-smallText*0.35) < 2 {
					found = p.y
				} else if !vertical && s.colour == soft && p.x == q.x && math.Abs(p.x-l.x-l.width/2) < 0.01 {
					found = p.x
				}
			}
		}
		if math.IsNaN(found) {
			t.Fatalf("no tick %q", want)
		}
		places = append(places, found)
	}
	return places
}

// marked returns the middles of the marks of a colour.
func marked(d *drawing, c color.Color) []at {
	var out []at
	for _, s := range d.shapes {
		if s.colour != c || !s.filled {
			continue
		}
		var sum at
		for _, p := range s.points {
			sum.x, sum.y = sum.x+p.x, sum.y+p.y
		}
		n := float64(len(s.points))
		out = append(out, at{sum.x / n, sum.y / n})
	}
	return out
}

// inside are those within the axes: not of the legend.
func inside(d *drawing, points []at) []at {
	return slices.DeleteFunc(points, func(p at) bool { return p.y < d.within.Min.Y.Points()-1 })
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) < 1e-6) {
		t.Errorf("%s at %v, want %v", what, got, want)
	}
}

// A bin of confidence 0.95 and accuracy 0.9 lies, by the ticks, log10 2 of the
// way from 0.9 to 0.99, and 5 % above zero.
func TestReliabilityPlaces(t *testing.T) {
	methods := []Method{{Name: "a", Reliability: []calibrate.ReliabilityBin{
		{Count: 400, Confidence: 0.3, Accuracy: 0.4}, {}, {Count: 400, Confidence: 0.95, Accuracy: 0.9}, {Count: 400, Confidence: 0.998, Accuracy: 1}, {Count: 400, Confidence: 1, Accuracy: 1},
	}}}
	d := drawn(DrawReliability(methods)[0], false)
	x := ruler(t, d, false, "0.9", "0.99")
	y := ruler(t, d, true, "0 %", "10 %")
	points := inside(d, marked(d, seriesRole))
	if len(points) != 4 {
		t.Fatalf("%d points, want those of the four bins that are not empty", len(points))
	}
	decade := x[1] - x[0]
	near(t, "confidence 0.95", points[1].x, x[0]+math.Log10(2)*decade)
	near(t, "confidence 0.3", points[0].x, x[0]+(math.Log10(1/0.7)-1)*decade)
	near(t, "gap 0.05", points[1].y, (y[0]+y[1])/2)
	near(t, "gap −0.1", points[0].y, y[0]-(y[1]-y[0]))
	// 1 is infinitely far: it stands at the end of the axis, right of all others.
	near(t, "confidence 1", points[3].x, x[0]+(-math.Log10(0.8*0.002)-1)*decade)
}

// Bins that would stand on one place are joined: a mark for all of them, with the bar
// of all their images.
func TestReliabilityPooled(t *testing.T) {
	bins := []calibrate.ReliabilityBin{{Count: 300, Confidence: 0.6, Accuracy: 0.5}, {Count: 100, Confidence: 0.9999991, Accuracy: 1}, {Count: 500, Confidence: 1, Accuracy: 0.8}}
	f := DrawReliability([]Method{{Name: "a", Label: "ECE 0.01", Reliability: bins}})[0]
	d := drawn(f, false)
	if points := inside(d, marked(d, seriesRole)); len(points) != 2 {
		t.Fatalf("%d marks, want 2", len(points))
	}
	y := ruler(t, d, true, "0 %", "10 %")
	last := marked(d, seriesRole)[1]
	near(t, "gap of both", last.y, y[0]+(5.0/6)*0.2*(y[1]-y[0])*10+(1.0/6)*(0.9999991-1)*(y[1]-y[0])*10)
	var bars []float64
	for _, s := range d.shapes {
		if s.filled && s.colour == (tint{seriesRole, 0.3}) {
			for bar := range slices.Chunk(s.points, 4) {
				bars = append(bars, bar[2].y-bar[0].y)
			}
		}
	}
	if len(bars) != 2 {
		t.Fatalf("%d bars, want 2", len(bars))
	}
	near(t, "bar of a third of the images over that of two thirds", bars[0]/bars[1], 0.5)
	if !slices.ContainsFunc(d.texts, func(l label) bool { return l.text == "600 predictions" }) {
		t.Errorf("the largest count is not told: %v", d.texts)
	}
	// The note speaks of what is drawn, and counts the bins as the error has them.
	if want := "Where it says 99.99999 %, it is right in 83 %. Of 3 bins 2 lie off by more than their 95 % interval; chance alone puts 0 there."; f.Note != want {
		t.Errorf("%q, want %q", f.Note, want)
	}
	if f.Title != "a: ECE 0.01" || f.Name != "reliability-a" {
		t.Errorf("%q in a file %q", f.Title, f.Name)
	}
}

// The interval of the accuracy, turned over: its upper end is the lower end of
// confidence − accuracy.
func TestReliabilityIntervals(t *testing.T) {
	g := gapsOf([]calibrate.ReliabilityBin{{Count: 200, Confidence: 0.9, Accuracy: 0.95}})[0]
	near(t, "lower", g.lower, 0.9-0.9726173543992361)
	near(t, "upper", g.upper, 0.9-0.910421851861224)
	near(t, "value", g.Y, -0.05)
}

// Shares are of all values, those below the first edge have a place left of it,
// and bins of equal ratio are equally wide.
func TestEntropyPlaces(t *testing.T) {
	in := detect.Histogram{Edges: []float64{1e-6, 1e-4, 1e-2, 1}, Counts: []int{1, 5, 2}, Below: 2}
	out := detect.Histogram{Edges: in.Edges, Counts: []int{0, 0, 4}}
	d := drawn(DrawEntropies([]HistogramPair{{Name: "a", In: in, Out: out}})[0], false)
	var outlines [][]at
	for _, s := range d.shapes {
		if _, ok := s.colour.(tint); ok && s.filled && len(outlines) < 2 {
			outlines = append(outlines, s.points)
		}
	}
	x := ruler(t, d, false, "0.01", "1")
	y := ruler(t, d, true, "0 %", "100 %")
	full := outlines[0]
	if len(full) != 2+2*4 {
		t.Fatalf("%d corners, want two for each of 4 places and the ends", len(full))
	}
	bin := x[1] - x[0]
	for i, want := range []float64{0.2, 0.1, 0.5, 0.2} {
		near(t, "share", full[1+2*i].y, y[0]+want*(y[1]-y[0]))
		if i > 0 {
			near(t, "left edge", full[1+2*i].x, x[1]-float64(4-i)*bin)
			near(t, "right edge", full[2+2*i].x, x[1]-float64(3-i)*bin)
		}
	}
	if place := full[2].x - full[1].x; place <= 0 || full[0].x >= x[1]-3*bin {
		t.Errorf("what is below has a place of width %v", place)
	}
	// The other histogram has but one bin that is not empty: all of it.
	if last := outlines[1]; len(last) != 4 {
		t.Errorf("%d corners, want 4", len(last))
	} else {
		near(t, "left edge", last[1].x, x[0])
		near(t, "share 1", last[1].y, y[1])
	}
}

func TestRiskPlaces(t *testing.T) {
	curve := []calibrate.RiskPoint{{Coverage: 0.01, Risk: 1}, {Coverage: 0.5, Risk: 0.1}, {Coverage: 1, Risk: 0.2}}
	d := drawn(DrawRisk([]Method{{Name: "a", RiskCoverage: curve}})[0], false)
	y := ruler(t, d, true, "0 %", "20 %")
	points := inside(d, marked(d, seriesRole))
	if len(points) == 0 {
		t.Fatal("no mark at risk 10 %")
	}
	near(t, "risk 0.1", points[0].y, (y[0]+y[1])/2)
	x := ruler(t, d, false, "40 %", "60 %")
	near(t, "coverage 0.5", points[0].x, (x[0]+x[1])/2)
	// Left of 5 % a single error is a cliff: it must not set the scale.
	for _, s := range d.shapes {
		if s.colour == seriesRole && s.points[0].y > d.within.Min.Y.Points() && s.points[0].x < points[0].x-10 {
			t.Error("the point at coverage 0.01 is drawn")
		}
	}
}

func TestCurvePlaces(t *testing.T) {
	cv := Curve{Title: "c", XLabel: "x", YLabel: "y", LogX: true, Marks: []Tick{{10, "ten"}},
		Series: []Series{{Name: "s", X: []float64{1, 100}, Y: []float64{2, 4}, Lower: []float64{1, 3}, Upper: []float64{3, 5}}}}
	d := drawn(cv.draw("c"), false)
	x, y := ruler(t, d, false, "1", "10", "100"), ruler(t, d, true, "2", "4")
	near(t, "10", x[1], (x[0]+x[2])/2)
	points := inside(d, marked(d, seriesRole))
	near(t, "x of the first", points[0].x, x[0])
	near(t, "y of the first", points[0].y, y[0])
	near(t, "x of the second", points[1].x, x[2])
	near(t, "y of the second", points[1].y, y[1])
	marked, bars := false, 0
	for _, s := range d.shapes {
		if len(s.points) != 2 {
			continue
		}
		p, q := s.points[0], s.points[1]
		if slices.Equal(s.dashes, dashes[1]) && p.x == q.x && math.Abs(p.x-x[1]) < 1e-9 {
			marked = true
		}
		// A bar reaches one unit, half the distance of the ticks, either way.
		if s.colour == seriesRole && p.x == q.x {
			near(t, "length of a bar", math.Abs(p.y-q.y), math.Abs(y[1]-y[0]))
			bars++
		}
	}
	if !marked || bars != 2 {
		t.Errorf("marked %v, %d bars, want the line at 10 and 2 bars", marked, bars)
	}
}

func TestDifferencePlaces(t *testing.T) {
	nan := math.NaN()
	ds := Differences{Title: "d", Label: "l", Baseline: "base", Rows: []Difference{
		{"better", -0.02, -0.03, -0.01, false}, {"worse", 0.01, 0.004, 0.016, false}, {"touches", 0.01, 0, 0.02, false}, {"below", -0.01, -0.02, 0, false}, {"far", 15, 14, 16, false}, {"alone", 0.02, nan, nan, false}, {"one of many", 0.014, 0.004, 0.024, true}}}
	d := drawn(ds.draw(), false)
	x := ruler(t, d, false, "0.00", "0.02")
	per := (x[1] - x[0]) / 0.02
	for i, want := range []struct {
		at     float64
		colour role
		hollow bool
	}{
		{-0.02, seriesRole + 2, false}, {0.01, seriesRole + 1, false}, {0.01, soft, true}, {-0.01, soft, true}, {0.02, soft, true}, {0.014, soft, true},
	} {
		row := i
		if i >= 4 {
			row++ // the far one has no mark
		}
		name := ds.Rows[row].Name
		y := math.NaN()
		for _, l := range d.texts {
			if l.text == name {
				y = l.y + textSize*0.35
			}
		}
		points := slices.DeleteFunc(marked(d, want.colour), func(p at) bool { return math.Abs(p.y-y) > 2 })
		if len(points) != 1 {
			t.Fatalf("%s: %d marks", name, len(points))
		}
		near(t, name, points[0].x, x[0]+want.at*per)
		hollow := slices.ContainsFunc(d.shapes, func(s shape) bool {
			return s.filled && s.colour == paper && math.Abs(s.points[0].y-y) < 2 && math.Abs(s.points[0].x-points[0].x) < 6
		})
		if hollow != want.hollow {
			t.Errorf("%s: hollow %v", name, hollow)
		}
	}
	// What is far beyond the others is its value with an arrow.
	if !slices.ContainsFunc(d.texts, func(l label) bool { return l.text == "+15.00 →" && l.x > x[0] }) {
		t.Error("the far one's value is not told")
	}
}

// Every point of the contour is at the radius in the metric of the covariance,
// whose inverse is written out here.
func TestEllipse(t *testing.T) {
	for _, e := range []Ellipse{{X: 1, Y: -2, XX: 4, XY: 0, YY: 1, Radius: 2}, {XX: 0.9, XY: -0.25, YY: 0.3, Radius: 3}, {XX: 1e-8, XY: 0.9e-4, YY: 1, Radius: 1}} {
		det := e.XX*e.YY - e.XY*e.XY
		outline := e.outline()
		if len(outline) != ellipsePoints+1 {
			t.Fatalf("%d points", len(outline))
		}
		reach := 0.0
		for _, p := range outline {
			x, y := p.X-e.X, p.Y-e.Y
			d := math.Sqrt((e.YY*x*x - 2*e.XY*x*y + e.XX*y*y) / det)
			if math.Abs(d-e.Radius) > 1e-9*e.Radius {
				t.Errorf("%+v: %v at a distance of %v", e, p, d)
			}
			reach = max(reach, x)
		}
		if want := e.Radius * math.Sqrt(e.XX); math.Abs(reach-want) > 1e-9*want {
			t.Errorf("%+v reaches %v along x, want %v", e, reach, want)
		}
	}
	for _, e := range []Ellipse{{}, {XX: 1, XY: 2, YY: 1, Radius: 1}, {XX: math.NaN(), YY: 1}, {XX: 1, YY: -1}} {
		if e.outline() != nil {
			t.Errorf("%+v has an outline", e)
		}
	}
}

// shoelace is the area within paths, all of the same direction.
func shoelace(paths []plotter.XYs) float64 {
	sum := 0.0
	for _, path := range paths {
		for i, p := range path {
			q := path[(i+1)%len(path)]
			sum += (p.X*q.Y - q.X*p.Y) / 2
		}
	}
	return math.Abs(sum)
}

// bandShare is the share of a surface's area that is at least at a level.
func bandShare(s *Surface, level float64) float64 {
	return shoelace(s.above(level)) / (s.X[len(s.X)-1] - s.X[0]) / (s.Y[len(s.Y)-1] - s.Y[0])
}

func surfaceOf(n int, f func(x, y float64) float64) *Surface {
	s := &Surface{}
	for i := range n {
		v := -1 + 2*float64(i)/float64(n-1)
		s.X, s.Y = append(s.X, v), append(s.Y, v)
	}
	for _, y := range s.Y {
		var row []float64
		for _, x := range s.X {
			row = append(row, f(x, y))
		}
		s.Z = append(s.Z, row)
	}
	return s
}

func TestBands(t *testing.T) {
	// A plane is linear, so its bands are exact.
	plane := surfaceOf(7, func(x, y float64) float64 { return x + y })
	for _, level := range []float64{-2, -1.3, -0.4, 0, 0.5, 1.9} {
		// The part of the square above the line x + y = level.
		want := (2 - level) * (2 - level) / 8
		if level < 0 {
			want = 1 - (2+level)*(2+level)/8
		}
		near(t, "plane above "+strconv.FormatFloat(level, 'g', -1, 64), bandShare(plane, level), want)
	}
	// Of a bowl, what is above is the square without a disc, up to the error of
	// linear interpolation, h²·max f″/8 in the level.
	bowl := surfaceOf(61, func(x, y float64) float64 { return x*x + y*y })
	for _, r := range []float64{0.3, 0.7, 1} {
		if got, want := bandShare(bowl, r*r), 1-math.Pi*r*r/4; math.Abs(got-want) > 2e-3 {
			t.Errorf("outside of radius %v: %v, want %v", r, got, want)
		}
	}
	// A point that is not finite takes its four cells away.
	plane.Z[3][3] = math.NaN()
	near(t, "plane with a hole", bandShare(plane, -2), 1-4.0/36)
}

func TestLevels(t *testing.T) {
	s := surfaceOf(3, func(x, y float64) float64 { return 5 + 6*(x*x+y*y) })
	levels := s.levels()
	if levels[0] != 5 || len(levels) != len(bandColours) {
		t.Fatalf("%v", levels)
	}
	// Rings of equal width: the roots of the levels' heights are evenly spaced.
	for i := range levels {
		near(t, "root of level", math.Sqrt((levels[i]-5)/12), float64(i)/float64(len(bandColours)))
	}
	if got := surfaceOf(2, func(x, y float64) float64 { return 3 }).levels(); len(got) != 1 || got[0] != 3 {
		t.Errorf("levels of a flat surface: %v", got)
	}
}

func TestSurfacePlaces(t *testing.T) {
	s := surfaceOf(5, func(x, y float64) float64 { return x })
	s.Points = []PointSet{{Name: "SWA", X: []float64{0.5, 7}, Y: []float64{-0.5, 0}}}
	d := drawn(s.draw(), false)
	x, y := ruler(t, d, false, "0.0", "1.0"), ruler(t, d, true, "0.0", "1.0")
	points := inside(d, marked(d, ink))
	if len(points) != 1 {
		t.Fatalf("%d points, want the one inside", len(points))
	}
	near(t, "x of SWA", points[0].x, (x[0]+x[1])/2)
	near(t, "y of SWA", points[0].y, y[0]-(y[1]-y[0])/2)
	// The colour bar names both ends of the values.
	for _, end := range []string{"−1", "1"} {
		if !slices.ContainsFunc(d.texts, func(l label) bool { return l.text == end }) {
			t.Errorf("the colour bar lacks %s", end)
		}
	}
}

func TestOwnTicks(t *testing.T) {
	cv := Curve{Title: "c", XLabel: "scale", YLabel: "y", LogX: true, Series: []Series{
		{Name: "s", X: []float64{0.125, 0.25, 0.5, 1, 2}, Y: []float64{5, 4, 3, 4, 5}}, {Name: "t", X: []float64{0.5, 2}, Y: []float64{1, 2}}}}
	x := ruler(t, drawn(cv.draw("c"), false), false, "0.125", "0.25", "0.5", "1", "2")
	for i := 2; i < len(x); i++ {
		near(t, "doubled", x[i]-x[i-1], x[1]-x[0])
	}
}

// Methods that are far off do not press the others flat: those have a figure of
// their own, with the same colours.
func TestCloseUp(t *testing.T) {
	bins := func(accuracy float64) []calibrate.ReliabilityBin {
		return []calibrate.ReliabilityBin{{Count: 1000, Confidence: 0.9, Accuracy: accuracy}, {Count: 1000, Confidence: 0.99, Accuracy: 0.99}}
	}
	risk := func(r float64) []calibrate.RiskPoint {
		return []calibrate.RiskPoint{{Coverage: 0.5, Risk: r / 2}, {Coverage: 1, Risk: r}}
	}
	var methods []Method
	for _, m := range []struct {
		name           string
		accuracy, risk float64
	}{{"far", 0.1, 0.9}, {"a", 0.89, 0.04}, {"b", 0.92, 0.05}} {
		methods = append(methods, Method{Name: m.name, Reliability: bins(m.accuracy), RiskCoverage: risk(m.risk)})
	}
	for name, want := range map[string][3]int{"reliability-far": {2, 0, 0}, "reliability-a": {0, 2, 0}, "risk-coverage": {4, 4, 4}, "risk-coverage-close": {0, 4, 4}} {
		all := append(DrawReliability(methods), DrawRisk(methods)...)
		f := all[slices.IndexFunc(all, func(f *Figure) bool { return f.Name == name })]
		d := drawn(f, false)
		for i := range methods {
			if got := len(inside(d, marked(d, seriesRole+role(i)))); got != want[i] {
				t.Errorf("%s: %d marks of method %d, want %d", name, got, i, want[i])
			}
		}
	}
	if figures := append(DrawReliability(methods[1:]), DrawRisk(methods[1:])...); len(figures) != 3 {
		t.Errorf("%d figures of two methods that are close, want 3", len(figures))
	}
}
