// Package text makes texts from outside safe to show and short enough: names of
// files and classes, whatever they hold.
package text

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Clean returns s with "�" for control characters, characters that reverse the
// direction of text or break lines, what is not UTF-8 and what XML does not know:
// a name from a file can neither move the cursor of a terminal nor begin a line of
// its own.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r == '\ufffe', r == '\uffff':
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// Line writes a line, Clean whatever stands in it, so that what a file holds
// cannot be taken for a line of the program's own.
func Line(w io.Writer, format string, args ...any) error {
	_, err := io.WriteString(w, Clean(fmt.Sprintf(format, args...))+"\n")
	return err
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
