package word

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Integer parses a whole number within bounds. An error has the form "x": want 1 to 9.
func Integer(s string, least, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q: want %d to %d", s, least, most)
	}
	return n, nil
}

// Span names a range of numbers with both ends: 0.001 to 1000000, or 1e-06 to 1.
func Span(least, most float64) string { return plain(least) + " to " + plain(most) }

// plain formats a number without an exponent, unless it would be long.
func plain(x float64) string {
	if long := 1e17; math.Abs(x) < long && (x == 0 || math.Abs(x) > 1e-5) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// Real parses a number within bounds. An error says which: "x": want 0 to 1.
func Real(s string, least, most float64) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(v >= least && v <= most) {
		return 0, fmt.Errorf("%q: want %s", s, Span(least, most))
	}
	return v, nil
}

// Share parses a share within bounds, such as 90% or 0.9. An error has the unit of the text.
func Share(s string, least, most float64) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	if !percent {
		return Real(s, least, most)
	}
	const digits = 1e11 // removes what a division of binary fractions adds to decimal ones
	v, err := Real(number, 100*least, 100*most)
	if err != nil {
		bound := func(share float64) string { return strconv.FormatFloat(100*share, 'g', 12, 64) + "%" }
		return 0, fmt.Errorf("%q: want %s to %s", s, bound(least), bound(most))
	}
	return math.Round(v/100*digits) / digits, nil
}

// mostListed bounds the numbers of a list.
const mostListed = 1000

// List parses numbers with commas between. parse reads one of them.
func List[N any](s string, parse func(string) (N, error)) (out []N, err error) {
	for part := range strings.SplitSeq(s, ",") {
		v, err := parse(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if out = append(out, v); len(out) > mostListed {
			return nil, fmt.Errorf("more than %d numbers", mostListed)
		}
	}
	return out, nil
}

// Reals parses numbers within bounds, with commas between.
func Reals(s string, least, most float64) ([]float64, error) {
	return List(s, func(one string) (float64, error) { return Real(one, least, most) })
}
