package csvsafe

import (
	"regexp"
	"strings"
)

var decimal = regexp.MustCompile(`^[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?$`)

// Point returns a number such as 1,5 with a point. ok is false for other texts, which it returns unchanged. Spreadsheets that
// separate cells by semicolons write such numbers.
func Point(text string) (number string, ok bool) {
	if !decimal.MatchString(text) {
		return text, false
	}
	return strings.Replace(text, ",", ".", 1), true
}
