package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"flag"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/report/plot"
)

const hostile = "\"><script>alert(1)</script>\x1b[2J\u202egpj.exe\xff' onerror='x"

// outFolder is for the eyes of whoever changes the page.
var outFolder = flag.String("out", "", "write a sample report and its plots to this folder")

func TestSampleReport(t *testing.T) {
	r := sampleReport(12)
	page := pageOf(t, r)
	for _, p := range r.Plots() {
		var svg bytes.Buffer
		if err := p.WriteSVG(&svg); err != nil {
			t.Fatal(err)
		}
		if *outFolder != "" {
			var png bytes.Buffer
			if err := p.WritePNG(&png); err != nil {
				t.Fatal(err)
			}
			writeOut(t, p.Name+".svg", svg.Bytes())
			writeOut(t, p.Name+".png", png.Bytes())
		}
	}
	if *outFolder != "" {
		writeOut(t, "report.html", page)
		writeOut(t, "report-1.html", pageOf(t, sampleReport(1)))
		writeOut(t, "report-hostile.html", pageOf(t, hostileReport()))
	}
}

func writeOut(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(*outFolder, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func pageOf(t *testing.T, r *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// hostileReport has hostile names everywhere and numbers that cannot be drawn.
func hostileReport() *Report {
	nan, inf := math.NaN(), math.Inf(1)
	long := strings.Repeat("very-long-name-", 2000)
	table := NewTable(Column{Header: hostile}, Column{Header: long, Align: Decimal})
	table.Row(hostile, Fixed(nan, 2))
	table.Row(long, Fixed(inf, 2))
	table.Note(hostile)
	strange := []float64{0, nan, inf, -inf, 1e308, -1e308, 5}
	empty := plot.Curve{Title: hostile, Series: []plot.Series{{Name: hostile, X: strange, Y: []float64{nan}}}}
	drawn := plot.Curve{Title: hostile, XLabel: hostile, YLabel: long, LogX: true, LogY: true, Note: hostile,
		Marks:  []plot.Tick{{At: inf, Label: hostile}, {At: 2, Label: hostile}},
		Series: []plot.Series{{Name: long, X: strange, Y: []float64{1, 2, 3, 4, 5, 6, 7}, Lower: strange, Upper: strange}, {Name: "one", X: []float64{1}, Y: []float64{1}}, {}}}
	bins := []calibrate.ReliabilityBin{{}, {Count: 3, Confidence: nan}, {Count: 5, Confidence: 1.0000001, Accuracy: 1}, {Count: 1, Confidence: 1e-9, Accuracy: 0}, {Count: 2, Confidence: -3, Accuracy: 7}}
	in := detect.Histogram{Edges: []float64{1e-8, 1e-4, 3}, Counts: []int{0, 4}, Below: 2, Above: 1}
	return &Report{
		Title: hostile, Verdict: []string{hostile, long}, Do: []string{hostile, long, ""}, Findings: []Finding{{hostile, true}, {long, false}}, Warnings: []string{hostile}, Facts: []Fact{{hostile, long}},
		Tables:      []NamedTable{{Title: hostile, Explanation: hostile, Table: table}, {Title: "none"}},
		Differences: []plot.Differences{{Title: hostile, Label: hostile, Baseline: long, Rows: []plot.Difference{{Name: hostile, Value: nan, Lower: 0, Upper: 0}, {Name: long, Value: 1, Lower: nan, Upper: inf}, {Name: "x", Value: -1e300, Lower: -inf, Upper: 0}, {Name: "y", Value: 0, Lower: 0, Upper: 0}}}, {Title: "none"}},
		Methods: []plot.Method{{Name: hostile, Reliability: bins, RiskCoverage: []calibrate.RiskPoint{{Coverage: nan, Risk: 1}, {Coverage: 0.5, Risk: inf}, {Coverage: 0.6, Risk: 0.1}}},
			{Name: long, Reliability: bins[:2]}, {Name: "saturated", Reliability: []calibrate.ReliabilityBin{{Count: 9, Confidence: 1, Accuracy: 1}}}},
		Entropies: []plot.HistogramPair{{Name: hostile, In: in, Out: in, Note: hostile}, {Name: "empty", In: detect.Histogram{Edges: in.Edges, Counts: []int{0, 0}}, Out: in},
			{}},
		Sweeps:   []plot.Curve{empty, drawn, {}},
		Spectrum: []plot.Curve{empty},
		Lines:    []plot.Curve{drawn},
		Surfaces: []plot.Surface{
			{Title: hostile, XLabel: hostile, YLabel: hostile, ZLabel: long, X: []float64{0, 1, 2}, Y: []float64{0, 1}, Z: [][]float64{{nan, 1, 2}, {3, inf, 1e308}},
				Ellipses: []plot.Ellipse{{XX: -1, YY: 1, Radius: 1}, {XX: nan}, {XX: 1, YY: 1, XY: 5}, {XX: 1e-30, YY: 1e-30, Radius: 1, Label: hostile}, {XX: 1e300, YY: 1e300, Radius: 1}},
				Points:   []plot.PointSet{{Name: hostile, X: strange, Y: strange, Path: true}, {Name: "none"}}},
			{Title: "flat", X: []float64{0, 1}, Y: []float64{0, 1}, Z: [][]float64{{2, 2}, {2, 2}}},
			{Title: "nothing", X: []float64{0, 1}, Y: []float64{0, 1}, Z: [][]float64{{nan, nan}, {nan, nan}}},
		},
		Command: hostile, Program: hostile, Created: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Provenance: []Fact{{hostile, hostile}},
	}
}

func TestReportHTML(t *testing.T) {
	allowed := map[string][]string{
		"html": {"lang"}, "head": nil, "meta": {"charset", "name", "content", "http-equiv"}, "title": {"id"}, "style": nil, "body": nil, "header": nil, "main": nil,
		"nav": {"aria-label"}, "ul": nil, "li": nil, "a": {"href", "class", "title"}, "h1": nil, "h2": {"id"}, "p": {"class", "aria-hidden"}, "span": {"class", "aria-hidden"}, "section": {"class", "aria-labelledby"},
		"div": {"class", "tabindex", "role", "aria-labelledby"}, "dl": {"class"}, "dt": {"id"}, "dd": nil, "table": {"class"}, "thead": nil, "tbody": nil, "tr": nil,
		"details": {"class"}, "summary": {"id"}, "pre": {"class", "tabindex", "role", "aria-labelledby"}, "button": {"type", "class", "hidden"}, "script": nil,
		"th": {"scope", "class"}, "td": {"class", "data-name"}, "figure": nil, "figcaption": nil,
		"svg": {"xmlns", "role", "aria-labelledby", "viewBox", "font-family"}, "desc": {"id"}, "g": {"transform"},
		"path": {"d", "style"}, "text": {"x", "y", "transform", "style", "textLength", "lengthAdjust"},
	}
	// The picture of the steps, which the program brings.
	drawn := []string{"fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "transform", "aria-hidden",
		"text-anchor", "font-weight", "cx", "cy", "r", "rx", "ry", "x", "y", "width", "height"}
	allowed["ol"], allowed["b"] = []string{"class"}, nil
	for _, name := range []string{"svg", "g", "path", "text", "ellipse", "circle", "rect"} {
		allowed[name] = append(allowed[name], drawn...)
	}
	for name, r := range map[string]*Report{"empty": {}, "hostile": hostileReport(), "one method": sampleReport(1), "twelve": sampleReport(12)} {
		page := pageOf(t, r)
		ids := map[string]bool{}
		var wanted []string
		for _, e := range elements(t, page) {
			attributes, ok := allowed[e.name]
			if !ok {
				t.Errorf("%s: element %s", name, e.name)
			}
			if hash := sha256.Sum256([]byte(script)); e.attr["http-equiv"] != "" && !strings.HasSuffix(e.attr["content"], "; script-src 'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"'") {
				t.Errorf("%s: the page does not allow its script: %s", name, e.attr["content"])
			}
			for a := range e.attr {
				if !slices.Contains(attributes, a) {
					t.Errorf("%s: element %s has attribute %s", name, e.name, a)
				}
			}
			if id, ok := e.attr["id"]; ok {
				if ids[id] {
					t.Errorf("%s: id %s occurs twice", name, id)
				}
				ids[id] = true
			}
			wanted = append(wanted, strings.Fields(e.attr["aria-labelledby"])...)
			if href, ok := e.attr["href"]; ok {
				wanted = append(wanted, strings.TrimPrefix(href, "#"))
			}
		}
		for _, id := range wanted {
			if !ids[id] {
				t.Errorf("%s: nothing has the id %s", name, id)
			}
		}
		outside := strings.NewReplacer(`xmlns="http://www.w3.org/2000/svg"`, "", "<script>"+script+"</script>", "").Replace(string(page))
		if m := regexp.MustCompile(`(?i)https?://|url\(|@import|<script|javascript:`).FindString(strings.ReplaceAll(outside, "&lt;script", "")); m != "" {
			t.Errorf("%s: the page holds %q", name, m)
		}
		if m := regexp.MustCompile(`ZgotmplZ|%!|\x1b|\x{202e}`).FindString(string(page)); m != "" {
			t.Errorf("%s: the page holds %q", name, m)
		}
	}
}

func TestReportContents(t *testing.T) {
	page := string(pageOf(t, sampleReport(12)))
	last := -1
	for _, want := range []string{
		"</a> is better than <a class=\"word\" href=\"#word-", "MultiSWAG", "Before you rely on these numbers", ">What to do</h2>", "swagwrap sample", "<figcaption>NLL against temperature scaling", ">Health of the checkpoints</h2>", "validation images", ">Scores</h2>", "Is the difference more than chance?</h2>",
		">Reliability</h2>", "<figcaption>SWAG: ECE 0.0", "<summary>The other 8 methods", "<figcaption>MultiSWAG: ECE 0.0", ">Entropy</h2>", ">Risk and coverage</h2>", ">Scores by setting</h2>", ">Spectrum of the posterior</h2>",
		">Loss along directions</h2>", ">Loss surface and posterior density</h2>", ">More numbers</h2>", ">Hidden numbers</summary>", ">How it was made</h2>", "swagwrap compare --bn-data train.npz", "2026-11-21 12:00 UTC",
		strings.Repeat("9f86d081884c7d65", 4), ">What the words mean</h2>", `<dt id="word-2">NLL</dt>`,
	} {
		at := strings.Index(page[last+1:], want)
		if at < 0 {
			t.Fatalf("%q is missing or too early", want)
		}
		last += 1 + at
	}
	if strings.Contains(page, "<summary>All") {
		t.Error("two hashes are folded away")
	}
	many := sampleReport(1)
	many.Provenance = slices.Repeat(many.Provenance, 30)
	if folded := string(pageOf(t, many)); !strings.Contains(folded, "<summary>All 60 versions and files") || strings.Count(folded, "60303ae22b998861") != 30*4 {
		t.Error("sixty hashes are not folded, or some are missing")
	}
	// A report that says nothing of ensembles explains none of their words.
	table := NewTable(Column{Header: "method"}, Column{Header: "Brier"})
	table.Row("a", "0.1")
	small := string(pageOf(t, &Report{Tables: []NamedTable{{Title: "Scores", Table: table}}}))
	if !strings.Contains(small, ">Brier</dt>") || strings.Contains(small, ">AURC</dt>") || strings.Contains(small, "<nav") {
		t.Errorf("glossary or contents of a small report: %s", small[strings.Index(small, "<body>"):])
	}
}

// A command is broken between its words, and the shell joins it again.
func TestFolded(t *testing.T) {
	const command = `swagwrap sample -o 'a name with '\''quotes'\'' in it.safetensors' --scale 0.5 --antithetic --bn-data /a/long/folder/name/in/front/of/the/train.npz p.safetensors`
	want := []string{"swagwrap sample", `  -o 'a name with '\''quotes'\'' in it.safetensors'`, "  --scale 0.5 --antithetic", "  --bn-data /a/long/folder/name/in/front/of/the/train.npz", "  p.safetensors"}
	got := folded(command)
	if diff := cmp.Diff(want, strings.Split(got, " \\\n")); diff != "" {
		t.Error(diff)
	}
	seen, err := exec.Command("sh", "-c", "set -- "+got+`; printf '%s\n' "$@"`).CombinedOutput()
	if whole, failed := exec.Command("sh", "-c", "set -- "+command+`; printf '%s\n' "$@"`).CombinedOutput(); err != nil || failed != nil || string(seen) != string(whole) {
		t.Errorf("%v: %s", err, seen)
	}
}

// The answer is one sentence.
func TestAnswer(t *testing.T) {
	for seen, want := range map[string][]string{
		"Deploy SWAG: NLL 0.12. It takes 30 networks.": {"Deploy SWAG: NLL 0.12.", "It takes 30 networks.", "More."},
		"One sentence of 0.5 nats.":                    {"One sentence of 0.5 nats.", "More."},
	} {
		answer, rest := (&Report{Verdict: []string{seen, "More."}}).answer()
		if diff := cmp.Diff(want, append([]string{answer}, rest...)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestReportRepeats(t *testing.T) {
	if !bytes.Equal(pageOf(t, sampleReport(5)), pageOf(t, sampleReport(5))) {
		t.Error("the same report gave different bytes")
	}
}

// Decimal points stand below each other: from there on, every cell of a column
// is as long.
func TestTableHTML(t *testing.T) {
	n := sampleReport(12).Tables[0]
	h := n.html()
	for c, col := range n.Table.cols {
		lengths := map[int]bool{}
		for _, row := range h.Rows {
			cell := row[c]
			if cell.Number != (col.Align != Left) {
				t.Errorf("column %s: number %v", col.Header, cell.Number)
			}
			if col.Align == Decimal {
				lengths[len([]rune(tailOf(cell.Text)+cell.Pad))] = true
			} else if cell.Pad != "" {
				t.Errorf("column %s has padding", col.Header)
			}
		}
		if len(lengths) > 1 {
			t.Errorf("column %s: %d different lengths after the number", col.Header, len(lengths))
		}
	}
	if got := h.Rows[0][7]; got.Text != "—" || got.Pad != ".0072" {
		t.Errorf("%+v, want a dash over the units", got)
	}
}

func TestPlotNames(t *testing.T) {
	for _, r := range []*Report{sampleReport(12), hostileReport()} {
		seen := map[string]bool{}
		for _, p := range r.Plots() {
			if seen[p.Name] || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(p.Name) || len(p.Name) > 60+3 {
				t.Errorf("name %q", p.Name)
			}
			seen[p.Name] = true
		}
	}
	twice := sampleReport(1)
	twice.Sweeps = append(twice.Sweeps, twice.Sweeps...)
	var names []string
	for _, p := range twice.Plots() {
		if strings.HasPrefix(p.Name, "sweep") {
			names = append(names, p.Name)
		}
	}
	if got := strings.Join(names, " "); got != "sweep-number-of-members sweep-scale sweep-number-of-members-2 sweep-scale-2" {
		t.Errorf("equal titles give %s", got)
	}
	if n := len(new(Report).Plots()); n != 0 {
		t.Errorf("an empty report has %d plots", n)
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

// The steps of the page are drawn as in the picture of README.md, and every step has a name that this picture has.
func TestSteps(t *testing.T) {
	t.Parallel()
	picture, err := os.ReadFile(filepath.Join("..", "..", "docs", "images", "steps-light.svg"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(pageOf(t, &Report{Steps: true}))
	_, steps, _ := strings.Cut(page, `<ol class="steps">`)
	steps, _, _ = strings.Cut(steps, "</ol>")
	shapes := regexp.MustCompile(` (?:d|cx|cy|rx|ry|r|x|y)="[^"]*"|<b>[^<]*</b>`).FindAllString(steps, -1)
	for _, s := range shapes {
		if s = strings.NewReplacer("<b>", ">", "</b>", "</text>").Replace(s); !strings.Contains(string(picture), s) {
			t.Errorf("the picture has no %s", s)
		}
	}
	if n := strings.Count(steps, "<svg "); n != 6 || len(shapes) < 60 || strings.Contains(string(pageOf(t, &Report{})), `id="steps"`) {
		t.Errorf("%d steps of %d shapes", n, len(shapes))
	}
}
