package flags

import (
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/word"
)

// The functions below add a check of its value to a flag. The library calls the check before the command begins,
// if the flag was given.

// Checked makes a flag a usage error if its text cannot be parsed. The error begins with the text, as in --task "x": want
// y.
func Checked[T any](f *cli.StringFlag, parse func(string) (T, error)) *cli.StringFlag {
	return checked(f, "--%s %w", parse)
}

// Parsed is like [Checked], for errors that begin with the name of what was read.
func Parsed[T any](f *cli.StringFlag, parse func(string) (T, error)) *cli.StringFlag {
	return checked(f, "--%s: %w", parse)
}

func checked[T any](f *cli.StringFlag, format string, parse func(string) (T, error)) *cli.StringFlag {
	f.Action = func(_ *cli.Context, s string) error {
		if _, err := parse(s); err != nil {
			return console.Usagef("", format, f.Name, err)
		}
		return nil
	}
	return f
}

// OneOf refuses all but the given words.
func OneOf(f *cli.StringFlag, words ...string) *cli.StringFlag {
	return Checked(f, func(s string) (string, error) { return s, word.Check(s, words...) })
}

// AtLeast refuses smaller integers.
func AtLeast(least int, f *cli.IntFlag) *cli.IntFlag {
	f.Action = func(_ *cli.Context, n int) error {
		if n < least {
			return console.Usagef("", "--%s %d: want at least %d", f.Name, n, least)
		}
		return nil
	}
	return f
}

// Positive refuses numbers that are not above 0, or not finite.
func Positive(f *cli.Float64Flag) *cli.Float64Flag {
	return number(f, "a positive number", func(v float64) bool { return v > 0 && !math.IsInf(v, 0) })
}

// NotNegative refuses numbers below 0, or not finite.
func NotNegative(f *cli.Float64Flag) *cli.Float64Flag {
	return number(f, "a finite number of at least 0", func(v float64) bool { return v >= 0 && !math.IsInf(v, 0) })
}

// Share refuses numbers outside of (0, 1].
func Share(f *cli.Float64Flag) *cli.Float64Flag {
	return number(f, "a number above 0 and at most 1", func(v float64) bool { return v > 0 && v <= 1 })
}

func number(f *cli.Float64Flag, want string, ok func(float64) bool) *cli.Float64Flag {
	f.Action = func(_ *cli.Context, v float64) error {
		if !ok(v) {
			return console.Usagef("", "--%s %g: want %s", f.Name, v, want)
		}
		return nil
	}
	return f
}

// FirstOf returns the first of the named flags that was given, such as --rank, or "". A command keeps it for a refusal that
// depends on its files.
func FirstOf(c *cli.Context, names ...string) string {
	for _, name := range names {
		if c.IsSet(name) {
			return "--" + name
		}
	}
	return ""
}

// Refuse returns an error if one of the named flags is given. In the message, --* stands for that flag.
func Refuse(c *cli.Context, hint, message string, names ...string) error {
	return RefuseGiven(FirstOf(c, names...), hint, message)
}

// RefuseGiven is [Refuse] for a flag that [FirstOf] returned.
func RefuseGiven(given, hint, message string) error {
	if given == "" {
		return nil
	}
	return console.Usagef(hint, "%s", strings.Replace(message, "--*", given, 1))
}

// AllowFlag allows what a command refuses by default.
func AllowFlag(what, means string) cli.Flag {
	return OneOf(&cli.StringFlag{Name: "allow", Usage: "`" + what + "`: " + means}, what)
}

// Allows reports whether --allow has the word.
func Allows(c *cli.Context, what string) bool { return c.String("allow") == what }
