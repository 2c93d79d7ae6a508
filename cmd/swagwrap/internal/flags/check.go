package flags

import (
	"strings"

	"github.com/urfave/cli/v2"

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
			return Usagef("", format, f.Name, err)
		}
		return nil
	}
	return f
}

// OneOf refuses all but the given words.
func OneOf(f *cli.StringFlag, words ...string) *cli.StringFlag {
	return Checked(f, func(s string) (string, error) { return s, word.Check(s, words...) })
}

// Refuse returns an error if one of the named flags is given. In the message, --* stands for that flag.
func Refuse(c *cli.Context, hint, message string, names ...string) error {
	for _, name := range names {
		if c.IsSet(name) {
			return Usagef(hint, "%s", strings.Replace(message, "--*", "--"+name, 1))
		}
	}
	return nil
}

// AllowFlag allows what a command refuses by default.
func AllowFlag(what, means string) cli.Flag {
	return OneOf(&cli.StringFlag{Name: "allow", Usage: "`" + what + "`: " + means}, what)
}

// Allows reports whether --allow says it.
func Allows(c *cli.Context, what string) bool { return c.String("allow") == what }
