package report

import (
	"slices"
	"testing"
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
