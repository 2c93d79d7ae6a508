package flags

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/word"
)

// A flag with a number has bounds, which stand where the flag is defined. The library checks them before the command
// begins. So no command sees a number that it would multiply beyond all memory. An error has the form
//
//	--flag N: want 1 to 1000
//
// cmd/swagwrap tests each flag of each command with the numbers around these bounds.

// Numbered is a flag whose value is a number, or a list of numbers.
type Numbered interface {
	cli.Flag
	Want() string // the numbers that it takes, such as "1 to 1000"
}

// want is the part of a flag that says which numbers it takes.
type want string

// Want implements [Numbered].
func (w want) Want() string { return string(w) }

func (w want) refuse(name string, value any) error {
	return console.Usagef("", "--%s %v: want %s", name, value, string(w))
}

func within[N int | float64](n, least, most N) bool { return n >= least && n <= most } // false for NaN

// Int is a flag for whole numbers.
type Int struct {
	*cli.IntFlag
	want
}

// Whole bounds the numbers of a flag.
func Whole(least, most int, f *cli.IntFlag) Int {
	return WholeIf(fmt.Sprintf("%d to %d", least, most), func(n int) bool { return within(n, least, most) }, f)
}

// WholeIf is like [Whole] for other numbers than those of a range. words says which.
func WholeIf(words string, ok func(n int) bool, f *cli.IntFlag) Int {
	w := want(words)
	f.Action = func(_ *cli.Context, n int) error {
		if !ok(n) {
			return w.refuse(f.Name, n)
		}
		return nil
	}
	return Int{f, w}
}

// Float is a flag for a number.
type Float struct {
	*cli.Float64Flag
	want
}

// Real bounds the number of a flag.
func Real(least, most float64, f *cli.Float64Flag) Float {
	w := want(word.Span(least, most))
	f.Action = func(c *cli.Context, v float64) error {
		if !within(v, least, most) {
			return w.refuse(f.Name, v)
		}
		if v == 0 {
			return c.Set(f.Name, "0") // also for -0, which prints its sign
		}
		return nil
	}
	return Float{f, w}
}

// Floats is a flag for numbers, which may be given several times.
type Floats struct {
	*cli.Float64SliceFlag
	want
}

// Reals bounds the numbers of a flag.
func Reals(least, most float64, f *cli.Float64SliceFlag) Floats {
	w := want(word.Span(least, most))
	f.Action = func(_ *cli.Context, list []float64) error {
		for _, v := range list {
			if !within(v, least, most) {
				return w.refuse(f.Name, v)
			}
		}
		return nil
	}
	return Floats{f, w}
}

// Uint is a flag for a number of 64 bits without a sign. All such numbers are seeds.
type Uint struct {
	*cli.Uint64Flag
	want
}

// SeedFlag returns --seed. usage says what for.
func SeedFlag(usage string) Uint {
	return Uint{&cli.Uint64Flag{Name: "seed", Usage: usage, Value: 1}, "0 to 18446744073709551615"}
}

// unparsed is the library's error for a text that is not a number of the flag's type.
var unparsed = regexp.MustCompile(`^invalid value "(.*)" for flag -([\w-]+): `)

// Unparsed returns the error for a value that the library could not parse, or nil for another error. all are the flags of the
// command.
func Unparsed(err error, all []cli.Flag) error {
	m := unparsed.FindStringSubmatch(err.Error())
	if m == nil {
		return nil
	}
	i := slices.IndexFunc(all, func(f cli.Flag) bool { return slices.Contains(f.Names(), m[2]) })
	if i < 0 {
		return nil
	}
	f, ok := all[i].(Numbered)
	if !ok {
		return nil
	}
	hint := "digits, such as 30"
	switch f.(type) {
	case Float, Floats:
		hint = "a number, such as 0.5"
	}
	return console.Usagef(hint, "--%s %q: want %s", f.Names()[0], m[1], f.Want())
}
