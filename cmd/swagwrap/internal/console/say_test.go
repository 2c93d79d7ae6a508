package console

import (
	"slices"
	"strings"
	"testing"
)

// Messages are broken between words, below their own text. Commands stay lines.
func TestBroken(t *testing.T) {
	for message, want := range map[string][]string{
		"warning: one two three four":        {"warning: one two", "         three four"},
		"one two three four five":            {"one two three four", "five"},
		"hint: " + strings.Repeat("long", 9): {"hint: " + strings.Repeat("long", 9)},
	} {
		if got := broken(message, 20); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
	for message, want := range map[string]bool{
		"next: bin/x fit": true, "step 1: /a/swagwrap fit": true, "hint: swagwrap fit --task classes": true, "      swagwrap export": true, "note: one checkpoint": false,
	} {
		if got := holdsCommand(message); got != want {
			t.Errorf("%q: %v", message, got)
		}
	}
}
