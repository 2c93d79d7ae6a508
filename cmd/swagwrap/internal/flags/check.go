package flags

import (
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
