package report

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compareTable is the table of design.md, section 5.
func compareTable() *Table {
	t := NewTable(
		Column{Header: "method"},
		Column{Header: "accuracy", Align: Decimal},
		Column{Header: "NLL", Align: Decimal},
		Column{Header: "NLL − NLL(SWA-Temp)", Align: Decimal},
		Column{Header: "[95 %]", Align: Decimal, Empty: " "},
		Column{Empty: " "},
	)
	t.Row("your network", Percent(0.954, 1), Fixed(0.1448, 4), Signed(0.0012, 4), Interval(-0.0031, 0.0049, 4))
	t.Row("SWA, stale BN", Percent(0.162, 1), Fixed(15.637, 3), Signed(15.49, 2), Interval(15.2, 15.8, 1), "!")
	t.Row("SWA-Temp (T = 1.20)", Percent(0.951, 1), Fixed(0.1436, 4))
	t.Row("größte Zahl", Percent(1, 0), Thousands(1234567), Signed(-0.0002, 4), "", "")
	t.Note("! batch-norm statistics do not belong to these weights: recompute them (--bn-data)")
	return t
}

func TestGolden(t *testing.T) {
	for file, write := range map[string]func(*Table, *strings.Builder) error{
		"testdata/compare.txt": func(t *Table, b *strings.Builder) error { return t.WriteText(b, Screen{Verbose: true}) },
		"testdata/compare.md":  func(t *Table, b *strings.Builder) error { return t.WriteMarkdown(b) },
	} {
		var b strings.Builder
		if err := write(compareTable(), &b); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s:\n%s\ngot\n%s", file, diff, b.String())
		}
	}
}

func TestTableEdges(t *testing.T) {
	for _, tt := range []struct {
		name string
		cols []Column
		rows [][]string
		want string
	}{
		{"no rows", []Column{{Header: "a"}, {Header: "b", Align: Decimal}}, nil, "a  b\n"},
		{"no columns", nil, nil, "\n"},
		{"control characters", []Column{{Header: "path"}}, [][]string{{"a\x1b[2J\nb"}}, "path\na�[2J�b\n"},
		{"right", []Column{{Header: "n", Align: Right}}, [][]string{{"1.5 s"}, {"10 s"}}, "    n\n1.5 s\n 10 s\n"},
		{"units", []Column{{Header: "n", Align: Decimal}}, [][]string{{"1.25 %"}, {"10 %"}, {""}, {"NaN"}},
			"       n\n  1.25 %\n 10 %\n  —\nNaN\n"},
		{"wide header", []Column{{Header: "wide header", Align: Decimal}, {Header: "x"}}, [][]string{{"1.25", "a"}, {"10", "b"}},
			"wide header  x\n       1.25  a\n      10     b\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tab := NewTable(tt.cols...)
			for _, r := range tt.rows {
				tab.Row(r...)
			}
			var b strings.Builder
			if err := tab.WriteText(&b, Screen{Verbose: true}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for too many cells")
		}
	}()
	NewTable(Column{}).Row("a", "b")
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteError(t *testing.T) {
	if err := compareTable().WriteText(brokenWriter{}, Screen{}); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	if err := compareTable().WriteMarkdown(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Fixed(0.14484, 4), "0.1448"},
		{Fixed(-1.5, 1), "−1.5"},
		{Fixed(-0.00001, 4), "0.0000"},
		{Fixed(math.Copysign(0, -1), 0), "0"},
		{Fixed(math.NaN(), 2), "NaN"},
		{Fixed(math.Inf(-1), 2), "−Inf"},
		{Percent(0.95449, 1), "95.4 %"},
		{Percent(1, 0), "100 %"},
		{Percent(math.NaN(), 1), "NaN %"},
		{Signed(0.0012, 4), "+0.0012"},
		{Signed(-0.0031, 4), "−0.0031"},
		{Signed(0.00001, 4), "0.0000"},
		{Signed(-0.00001, 4), "0.0000"},
		{Signed(0, 0), "0"},
		{Signed(math.Inf(1), 1), "+Inf"},
		{Signed(math.Inf(-1), 1), "−Inf"},
		{Signed(math.NaN(), 1), "NaN"},
		{Interval(-0.0031, 0.0049, 4), "[−0.0031, +0.0049]"},
		{InsteadOf(0.5, 0.4, Fixed, 1), "0.5 instead of 0.4"},
		{InsteadOf(5.263e-5, 5.2588e-5, Significant, 3), "5.263e-05 instead of 5.259e-05"},
		{InsteadOf(5.26e-5, 5.26e-5, Significant, 3), "5.26e-05 in both"},
		{InsteadOf(0.95441, 0.95449, Percent, 1), "95.44 % instead of 95.45 %"},
		{InsteadOf(1, math.Nextafter(1, 2), Significant, 3), "1 instead of 1.0000000000000002"},
		{InsteadOf(1e-20, 2e-20, Fixed, 4), "9.9999999999999995e-21 instead of 1.9999999999999999e-20"},
		{InsteadOf(math.NaN(), math.NaN(), Fixed, 4), "NaN in both"},
		{InsteadOf(math.Inf(1), 1, Fixed, 2), "+Inf instead of 1.00"},
		{Thousands(0), "0"},
		{Thousands(999), "999"},
		{Thousands(5000), "5,000"},
		{Thousands(-123456), "−123,456"},
		{Thousands(math.MinInt64), "−9,223,372,036,854,775,808"},
		{Plural(1, "member"), "1 member"},
		{Plural(2000, "example"), "2,000 examples"},
		{Bytes(0), "0 B"},
		{Bytes(999), "999 B"},
		{Bytes(1000), "1.0 kB"},
		{Bytes(1_200_000), "1.2 MB"},
		{Bytes(999_949), "999.9 kB"},
		{Bytes(999_950), "1.0 MB"},
		{Bytes(-2500), "−2.5 kB"},
		{Bytes(math.MaxInt64), "9.2 EB"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
