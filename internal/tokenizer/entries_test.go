package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The longest entry at each place is that of a search for each entry.
func TestEntries(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = "aabc"[r.IntN(4)]
		}
		return string(b)
	}
	for range 2000 {
		list := make([]string, 1+r.IntN(12))
		for i := range list {
			list[i] = word(5)
		}
		e, err := newEntries(list)
		if err != nil {
			t.Fatal(err)
		}
		s := word(30)
		got, want := make([]string, len(s)), make([]string, len(s))
		e.find(s, func(at int, entry int32) { got[at] = list[entry] })
		for at := range s {
			for _, l := range list {
				if strings.HasPrefix(s[at:], l) && len(l) > len(want[at]) {
					want[at] = l
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q in %q: %q, want %q", list, s, got, want)
		}
	}
}
