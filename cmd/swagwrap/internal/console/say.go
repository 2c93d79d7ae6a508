package console

import (
	"io"
	"slices"
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

// Shell returns a command in the syntax of a shell.
func Shell(args ...string) string {
	words := slices.Clone(args)
	for i, arg := range words {
		if arg == "" || strings.ContainsFunc(arg, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// plain are the characters that need no quotes in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:@%+"
