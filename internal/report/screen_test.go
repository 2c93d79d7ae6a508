package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A table that is too wide breaks its headers and long names first. Then optional columns go, the highest number first,
// and last the names become narrower. A column of nothing is never shown.
func TestScreen(t *testing.T) {
	number := func(header string, optional int) Column {
		return Column{Header: header, Align: Decimal, Optional: optional}
	}
	table := NewTable(Column{Header: "method"}, number("accuracy", 1), number("loss of one image in nats", 0), number("of nothing", 0), number("ECE", 2), number("Brier", 3), Column{Header: " ", Empty: " "})
	table.Row("isotropic noise, equal trace", "95.4 %", "0.1448 [0.1, 0.2]", "", "0.01", "0.20")
	table.Row("SWA", "9.1 %", "15.637", "", "0.1", "0.3")
	table.Warn("* of few images")
	table.Note("accuracy: higher is better")
	for _, tt := range []struct {
		screen Screen
		want   string
	}{
		{Screen{}, `
method                        accuracy  loss of one image in nats   ECE  Brier
isotropic noise, equal trace    95.4 %          0.1448 [0.1, 0.2]  0.01   0.20
SWA                              9.1 %         15.637              0.1    0.3
* of few images
`},
		{Screen{Width: 74, Verbose: true}, `
                                         loss of one image
method                        accuracy             in nats   ECE  Brier
isotropic noise, equal trace    95.4 %   0.1448 [0.1, 0.2]  0.01   0.20
SWA                              9.1 %  15.637              0.1    0.3
* of few images
accuracy: higher is better
`},
		{Screen{Width: 68}, `
                                         loss of one image
method                        accuracy             in nats   ECE
isotropic noise, equal trace    95.4 %   0.1448 [0.1, 0.2]  0.01
SWA                              9.1 %  15.637              0.1
* of few images
not shown for lack of room: Brier. A wider terminal, JSON and pages have them.
`},
		{Screen{Width: 45, Terminal: true}, `
                         loss of one image
method                             in nats
isotropic noise, equal   0.1448 [0.1, 0.2]
trace
SWA                     15.637
* of few images
not shown for lack of room: accuracy, ECE,
Brier. A wider terminal, JSON and pages have
them.
`},
		{Screen{Width: 20}, `
               loss of one image
method                   in nats
isotropic      0.1448 [0.1, 0.2]
noise, equal
trace
SWA           15.637
* of few images
not shown for lack of room: accuracy, ECE, Brier. A wider terminal, JSON and pages have them.
`},
	} {
		var b strings.Builder
		if err := table.WriteText(&b, tt.screen); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), b.String()); diff != "" {
			t.Errorf("%+v:\n%s\ngot\n%s", tt.screen, diff, b.String())
		}
	}
	var b strings.Builder
	if err := table.WriteMarkdown(&b); err != nil || strings.Contains(b.String(), "nothing") || strings.Index(b.String(), "few") > strings.Index(b.String(), "higher") {
		t.Errorf("%v\n%s", err, &b)
	}
}

// A text in a narrow table is broken between words, and what stands in parentheses is kept together.
func TestNarrow(t *testing.T) {
	table := NewTable(Column{Header: "method"}, Column{Header: "good"})
	table.Row("SWAG-MemberTemp (T = 1.16, 1.04)", "10 and more, as a rule")
	var b strings.Builder
	if err := table.WriteText(&b, Screen{Width: 34}); err != nil {
		t.Fatal(err)
	}
	const want = `method            good
SWAG-MemberTemp   10 and more, as
(T = 1.16, 1.04)  a rule
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
