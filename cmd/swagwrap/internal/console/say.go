package console

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// kinds are the words with which messages begin.
var kinds = []string{"error: ", "hint: ", "warning: ", "note: "}

// say writes a message. On a terminal a long one is broken between words. One with a command stays a line, because a command is
// copied.
func say(w io.Writer, message string) {
	lines := []string{message}
	if isTerminal(w) && utf8.RuneCountInString(message) > widthOf(w) && !holdsCommand(message) {
		lines = broken(message, widthOf(w))
	}
	for _, line := range lines {
		text.Line(w, "%s", line)
	}
}

// holdsCommand reports whether a message has a command, or continues one.
func holdsCommand(message string) bool {
	return strings.Contains(message, "swagwrap ") || strings.HasPrefix(message, "next: ") || strings.HasPrefix(message, "step ") ||
		strings.HasPrefix(message, " ")
}

// broken breaks a message into lines, and indents all but the first below its text.
func broken(message string, width int) []string {
	for _, kind := range kinds {
		if rest, ok := strings.CutPrefix(message, kind); ok {
			return text.Hang(kind, rest, width)
		}
	}
	return text.Wrap(message, width)
}
