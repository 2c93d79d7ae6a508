package text

import (
	"strings"
	"unicode/utf8"
)

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

// Hang returns the text as Clean lines of 118 runes. The first line begins with what, and the others are indented by
// its width.
func Hang(what, text string) []string {
	lines := Wrap(what+text, 118)
	for i, line := range lines {
		lines[i] = Clean(line)
		if i > 0 {
			lines[i] = strings.Repeat(" ", utf8.RuneCountInString(what)) + lines[i]
		}
	}
	return lines
}
