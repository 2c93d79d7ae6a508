package study

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/report"
)

// Text and page show the tables that are for them, each in its order. Where the text leaves one out, it says how to see it.
func TestDocument(t *testing.T) {
	section := func(title string, where Where, order int, instead string) Section {
		return Section{Title: title, Rows: []Row{{Name("key", title, "row of "+title)}}, Where: where, Order: order, Instead: instead}
	}
	drawn := false
	r := &Document{
		Title: "A study", Heading: "12 examples", BatchNorm: &BatchNorm{}, Notes: []string{"a note"}, Verdict: []string{"It works."}, Next: []Step{Export{Output: "model.onnx"}},
		Code:     []string{"x = 1"},
		Sections: []Section{section("first", Everywhere, 0, ""), section("last", OnlyOnPage, 2, "-v shows the last"), section("printed", OnlyPrinted, 0, ""), section("second", Everywhere, 0, "")},
		Figures:  func(*report.Report) { drawn = true }, JSON: Row{},
	}
	var b strings.Builder
	if err := WriteText(&b, report.Screen{}, nil, r); err != nil {
		t.Fatal(err)
	}
	want := "It works.\n\n12 examples\n\nfirst\nrow of first\n-v shows the last\n\nprinted\nrow of printed\n\nsecond\nrow of second\n\n    x = 1\n"
	if got := strings.ReplaceAll(b.String(), " \n", "\n"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Brief, r.Short = []string{"Short."}, Section{Rows: []Row{{Shown("few", "1")}}}
	b.Reset()
	WriteText(&b, report.Screen{Rest: "table.txt"}, nil, r)
	if want := "Short.\n\n12 examples\n\nfew\n  1\nAll methods and figures: table.txt\n\n    x = 1\n"; b.String() != want {
		t.Errorf("%q, want %q", &b, want)
	}
	page := r.Page()
	var titles []string
	for _, table := range page.Tables {
		titles = append(titles, table.Title)
	}
	if !slices.Equal(titles, []string{"first", "second", "last"}) || !drawn || page.Title != "A study" || !slices.Equal(page.Warnings, []string{"a note"}) || !reflect.DeepEqual(r.Next, []Step{Export{Output: "model.onnx"}}) {
		t.Errorf("tables %q of %+v", titles, page)
	}
	// The warning of the text is not on the page.
	var markdown strings.Builder
	if page.Tables[0].Table.WriteMarkdown(&markdown); strings.Contains(markdown.String(), "-v shows") {
		t.Error(markdown.String())
	}
}
