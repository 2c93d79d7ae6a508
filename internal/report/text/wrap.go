package text

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks text between words into lines of at most width runes. A word that
// is longer has a line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Hang breaks a text into lines of 118 runes that are indented as far as what
// stands before it.
func Hang(what, text string) []string {
	lines := Wrap(what+text, 118)
	for i := range lines[1:] {
		lines[i+1] = strings.Repeat(" ", utf8.RuneCountInString(what)) + lines[i+1]
	}
	return lines
}
