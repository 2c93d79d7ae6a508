// Package text makes texts from outside, such as names of files and classes, safe and short enough to show.
package text

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean replaces characters of s with "�": control characters, characters that reverse the direction of text or break
// lines, invalid UTF-8, and characters that XML does not allow. So a name from a file can neither move the cursor of
// a terminal nor begin a line.
func Clean(s string) string {
	return strings.Map(clean, s)
}

func clean(r rune) rune {
	switch {
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r == '\ufffe', r == '\uffff':
		return unicode.ReplacementChar
	}
	return r
}

// Line writes a line after Clean, so that text from a file cannot look like a line of the program. A hostile name may be
// a million characters long, so the middle of such a line is left out.
func Line(w io.Writer, format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	_, err := io.WriteString(w, Clean(Shorten(line, func(s string) bool { return len(s) <= longText }))+"\n")
	return err
}

// Shorten replaces as few runes as possible around the middle of s with an ellipsis, until the result fits. Names
// usually differ at both ends. If a string fits, its shorter versions must fit too.
func Shorten(s string, fits func(string) bool) string {
	if fits(s) {
		return s
	}
	r := []rune(s)
	keep := func(n int) string { return string(r[:n-n/2]) + "…" + string(r[len(r)-n/2:]) }
	lo, hi := 0, len(r)-1 // the largest number of runes that fits lies in [lo, hi]
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

// Screen is Clean for a character of what goes to a terminal: line breaks and tabs stay.
func Screen(r rune) rune {
	if r == '\n' || r == '\t' {
		return r
	}
	return clean(r)
}

// Cell is s for a cell of a table: Clean, and of at most 200 characters, since all cells of a column are as wide as
// its longest.
func Cell(s string) string {
	return Clean(Shorten(s, func(s string) bool { return len(s) <= longText && utf8.RuneCountInString(s) <= 200 }))
}

// longText is more bytes than fit in any line. Measuring a hostile name must not take long.
const longText = 4000

// ShortenTo is Shorten to a width; measure returns the width of a text.
func ShortenTo(s string, width float64, measure func(string) float64) string {
	return Shorten(s, func(s string) bool { return len(s) <= longText && measure(s) <= width })
}

// Wrap breaks text between words into lines of at most width runes. A longer word gets its own line.
func Wrap(text string, width int) []string {
	return WrapTo(text, func(line string) bool { return utf8.RuneCountInString(line) <= width })
}

// WrapTo is Wrap with a function that reports whether a line fits.
func WrapTo(text string, fits func(string) bool) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && fits(lines[last]+" "+word) {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// Hang returns the text as Clean lines of at most width runes. The first line begins with what, and the others are indented by
// its width. A longer word gets its own line.
func Hang(what, text string, width int) []string {
	indent := utf8.RuneCountInString(what)
	lines := Wrap(text, width-indent)
	for i, line := range lines {
		lines[i] = what + Clean(line)
		what = strings.Repeat(" ", indent)
	}
	return lines
}
