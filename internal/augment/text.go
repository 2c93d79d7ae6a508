package augment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// What is written here is read back by Parse to the same. Arguments that have
// their default are written as "", and left out.

// call writes a transform with its arguments.
func call(name string, arguments ...string) string {
	arguments = slices.DeleteFunc(arguments, func(a string) bool { return a == "" })
	if len(arguments) == 0 {
		return name
	}
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// unless writes an argument that differs from its default.
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

// sizeArg writes height and width; 0 is open.
func sizeArg(to [2]int) string {
	if to[0] == to[1] {
		return unless(to[0], 0, "%d", to[0])
	}
	return fmt.Sprintf("(%d, %d)", to[0], to[1])
}

// number writes x so that it is read back exactly.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// numberList writes numbers with commas between them.
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
