package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Fixed formats x with a fixed number of decimals: "0.1448". Other values are "NaN", "+Inf" and "−Inf". The result is
// never "−0".
func Fixed(x float64, decimals int) string {
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	if digits, neg := strings.CutPrefix(s, "-"); neg {
		if strings.Trim(digits, "0.") == "" {
			return digits
		}
		return "−" + digits
	}
	return s
}

// Significant formats x with a number of significant digits: "0.0526".
func Significant(x float64, digits int) string { return fmt.Sprintf("%.*g", digits, x) }

// Distinguish formats two numbers with so many digits, and with more where these would hide that the numbers differ. format formats
// one with a number of digits.
func Distinguish(a, b float64, format func(x float64, digits int) string, digits int) (string, string) {
	const exact = 17 // significant digits of any float64
	for a != b && digits < exact && format(a, digits) == format(b, digits) {
		digits++
	}
	if a != b && format(a, digits) == format(b, digits) { // such as 1e-20 with decimals
		format = Significant
	}
	return format(a, digits), format(b, digits)
}

// InsteadOf compares two numbers in words: "0.52 instead of 0.48". Digits are as in [Distinguish]. Equal numbers are "0.48 in both".
func InsteadOf(is, was float64, format func(x float64, digits int) string, digits int) string {
	a, b := Distinguish(is, was, format, digits)
	if a == b {
		return a + " in both"
	}
	return a + " instead of " + b
}

// Percent formats a fraction as a percentage: Percent(0.954, 1) is "95.4 %".
func Percent(fraction float64, decimals int) string {
	return Fixed(100*fraction, decimals) + " %"
}

// Signed is Fixed with a sign for differences: "+0.0012". A value that rounds to zero has no sign.
func Signed(x float64, decimals int) string {
	s := Fixed(x, decimals)
	if x > 0 && s[0] != '+' && strings.Trim(s, "0.") != "" {
		return "+" + s
	}
	return s
}

// Interval formats a confidence interval of a difference: "[−0.0031, +0.0049]".
func Interval(lo, hi float64, decimals int) string {
	return "[" + Signed(lo, decimals) + ", " + Signed(hi, decimals) + "]"
}

// Thousands formats n with separators: "5,000".
func Thousands(n int) string {
	s := strconv.Itoa(n)
	s, neg := strings.CutPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		return "−" + s
	}
	return s
}

// Bytes formats a size in decimal units: "1.2 MB" is 1,200,000 bytes.
func Bytes(n int64) string {
	if -1000 < n && n < 1000 {
		return Fixed(float64(n), 0) + " B"
	}
	x, unit := float64(n), 0
	for math.Abs(x) >= 999.95 && unit < 6 { // 999.95 would become 1000.0
		x, unit = x/1000, unit+1
	}
	return fmt.Sprintf("%s %cB", Fixed(x, 1), " kMGTPE"[unit])
}

// Plural returns a number with its noun: "1 member", "2,000 examples".
func Plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Thousands(n) + " " + noun
}

// Some lists the first names, and says how many more there are.
func Some(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
