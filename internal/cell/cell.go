// Package cell keeps the texts in CSV files from being taken for formulas.
//
// A spreadsheet computes a cell that begins with = + - or @, and a file's name may
// begin so. [Guard] puts a single quote before such a text, which spreadsheets take
// for the mark of a text, as OWASP's page on CSV injection says; [Bare] takes it off.
// Numbers are no texts, and are never guarded.
//
// # Concurrency
//
// Functions keep no state; they may be called from any number of goroutines.
package cell

import "strings"

// Guard returns a text as it stands in a cell. One that begins with quotes and then
// with what is guarded has a quote more, so that Bare gives back every text.
func Guard(text string) string {
	if formula(text) {
		return "'" + text
	}
	return text
}

// Bare returns the text of a cell that Guard made.
func Bare(text string) string {
	if strings.HasPrefix(text, "'") && formula(text) {
		return text[1:]
	}
	return text
}

// formula says that behind any quotes stands what a spreadsheet may compute.
func formula(text string) bool {
	text = strings.TrimLeft(text, "'")
	return text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0]))
}
