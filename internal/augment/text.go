package augment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// Parse reads the text that these functions write. A default argument is written as "" and left out.

// call returns a transform with its arguments as text.
func call(name string, arguments ...string) string {
	arguments = slices.DeleteFunc(arguments, func(a string) bool { return a == "" })
	if len(arguments) == 0 {
		return name
	}
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// unless returns an argument as text, or "" if it has the default value unset.
func unless[T comparable](value, unset T, format string, args ...any) string {
	if value == unset {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func probabilityArg(p, unset float64) string { return unless(p, unset, "p=%s", number(p)) }

func spanArg(name string, v, unset [2]float64) string {
	return unless(v, unset, "%s=%s", name, tuple(v[:]))
}

func filterArg(f picture.Filter) string { return unless(f, picture.Bilinear, "interpolation='%s'", f) }

// sizeArg returns height and width as text; 0 is open.
func sizeArg(to [2]int) string {
	if to[0] == to[1] {
		return unless(to[0], 0, "%d", to[0])
	}
	return fmt.Sprintf("(%d, %d)", to[0], to[1])
}

// number returns x as text that is read back exactly.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// numberList returns numbers separated by commas.
func numberList(x []float64) string {
	var words []string
	for _, v := range x {
		words = append(words, number(v))
	}
	return strings.Join(words, ", ")
}

func tuple(x []float64) string {
	if len(x) == 1 {
		return "(" + number(x[0]) + ",)"
	}
	return "(" + numberList(x) + ")"
}
