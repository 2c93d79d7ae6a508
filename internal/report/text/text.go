// Package text makes texts from outside safe to show and short enough: names of
// files and classes, whatever they hold.
package text

import (
	"strings"
	"unicode"
)

// Printable returns s with control characters as "�": a file name cannot move the
// cursor of a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// Clean is Printable for pages and figures: characters that reverse the direction
// of text, that break lines, and that XML does not know are "�" too.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r == '\ufffe', r == '\uffff':
			return unicode.ReplacementChar
		}
		return r
	}, Printable(s))
}

// Shorten takes out as few runes around the middle of s as fits asks for, and puts
// an ellipsis there: names differ at both ends. A string that fits fewer runes
// must fit, too.
func Shorten(s string, fits func(string) bool) string {
	if fits(s) {
		return s
	}
	r := []rune(s)
	keep := func(n int) string { return string(r[:n-n/2]) + "…" + string(r[len(r)-n/2:]) }
	lo, hi := 0, len(r)-1 // the most runes that fit lie in [lo, hi]
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if fits(keep(mid)) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return keep(lo)
}

// longText is more bytes than fit in any line: measuring a hostile name must not
// take long.
const longText = 4000

// ShortenTo is Shorten to a width, of which measure says how much a text takes.
func ShortenTo(s string, width float64, measure func(string) float64) string {
	return Shorten(s, func(s string) bool { return len(s) <= longText && measure(s) <= width })
}
