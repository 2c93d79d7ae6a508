package console

import (
	"slices"
	"strings"
)

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
