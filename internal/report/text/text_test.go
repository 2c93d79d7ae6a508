package text

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"a bb ccc", []string{"a bb", "ccc"}},
		{"äöü ß", []string{"äöü ß"}},
		{"a muchtoolong b", []string{"a", "muchtoolong", "b"}},
		{"  spread \n out ", []string{"spread", "out"}},
	} {
		if got := Wrap(c.text, 6); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{
		{"abcdefghij", 10, "abcdefghij"},
		{"abcdefghij", 9, "abcd…ghij"},
		{"abcdefghij", 8, "abcd…hij"},
		{"äöüßéàèìò", 4, "äö…ò"},
		{"abcdefghij", 1, "…"},
		{"abcdefghij", 0, "…"}, // no less
		{"", 0, ""},
	} {
		if got := Shorten(tt.s, func(s string) bool { return utf8.RuneCountInString(s) <= tt.n }); got != tt.want {
			t.Errorf("%q to %d: %q, want %q", tt.s, tt.n, got, tt.want)
		}
	}
}

func TestClean(t *testing.T) {
	const bad = "a\x1b[2J\n\u202eb\u2028\ufffe\xffc"
	if got, want := Clean(bad), "a�[2J��b���c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var out strings.Builder
	if err := Line(&out, "name %s,", bad); err != nil || out.String() != "name a�[2J��b���c,\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if Line(&out, "name %s.", strings.Repeat("net.", 1<<20)); !strings.HasPrefix(out.String(), "name net.net.") || !strings.HasSuffix(out.String(), "net..\n") || out.Len() > longText+1 {
		t.Errorf("a line of %d bytes", out.Len())
	}
	if got := Cell(strings.Repeat("é\n", 1<<20)); utf8.RuneCountInString(got) != 200 || !strings.HasPrefix(got, "é�é") {
		t.Errorf("%q", got)
	}
	if got := Hang("! ", "one\nverdict: \x1btwo", 80); !slices.Equal(got, []string{"! one verdict: �two"}) {
		t.Errorf("%q", got)
	}
}

func TestShortenTo(t *testing.T) {
	measured := 0
	width := func(s string) float64 {
		measured = max(measured, len(s))
		return float64(2 * utf8.RuneCountInString(s))
	}
	if got, want := ShortenTo(strings.Repeat("ab", 1<<20), 10, width), "ab…ab"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if measured > longText {
		t.Errorf("a text of %d bytes was measured", measured)
	}
}

func TestHang(t *testing.T) {
	got := Hang("é: ", strings.Repeat("word ", 9), 23)
	if want := []string{"é: word word word word", "   word word word word", "   word"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
