// Package csvsafe protects spreadsheets from texts in CSV files that look like formulas.
//
// A spreadsheet computes a cell that begins with = + - or @, and a file name may begin with one of these. Guard
// puts a single quote before such a text, which marks it as text (OWASP, "CSV Injection"), and Bare removes the quote.
// Numbers are never guarded.
//
// # Concurrency
//
// Functions keep no state; they may be called from any number of goroutines.
package csvsafe

import "strings"

// Guard returns the cell for text. Guard adds a quote also if quotes stand before the formula already,
// so that Bare restores every text.
func Guard(text string) string {
	if formula(text) {
		return "'" + text
	}
	return text
}

// Bare returns the text of a cell that Guard wrote.
func Bare(text string) string {
	if strings.HasPrefix(text, "'") && formula(text) {
		return text[1:]
	}
	return text
}

// formula reports whether a spreadsheet may compute the text, ignoring leading quotes.
func formula(text string) bool {
	text = strings.TrimLeft(text, "'")
	return text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0]))
}
