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

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

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

var decimal = regexp.MustCompile(`^[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?$`)

// Point returns a number such as 1,5 with a point. ok is false for other texts, which it returns unchanged. Spreadsheets that
// separate cells by semicolons write such numbers.
func Point(text string) (number string, ok bool) {
	if !decimal.MatchString(text) {
		return text, false
	}
	return strings.Replace(text, ",", ".", 1), true
}

// A Form is how a file writes numbers: with a decimal comma, or with a point. The zero value has seen none. A file has one form,
// because 1.234 may be a large number beside 1,5.
type Form struct{ comma, point string } // the first number of each kind, with its place

// ErrDecimal is the error for numbers whose comma may stand for a point, or separate thousands.
var ErrDecimal = errors.New("want numbers such as 1.5 or 1,5 throughout, without signs between thousands")

// Number returns a number with a decimal comma as one with a point, and whether it had one. Other texts come back unchanged. where
// returns the place of the text in the file.
func (f *Form) Number(text string, where func() string) (number string, comma bool, err error) {
	number, comma = Point(text)
	_, bad := strconv.ParseFloat(text, 64)
	point := bad == nil && strings.Contains(text, ".")
	if comma && f.comma == "" {
		f.comma = fmt.Sprintf("%.40q (%s)", text, where())
	}
	if point && f.point == "" {
		f.point = fmt.Sprintf("%.40q (%s)", text, where())
	}
	if f.comma != "" && f.point != "" {
		err = fmt.Errorf("some numbers have a decimal comma, such as %s, and others a point, such as %s: %w", f.comma, f.point, ErrDecimal)
	}
	return number, comma, err
}
