// Package flags holds what the commands share: flags, how inputs are opened by them,
// how outputs are written, errors and exit codes, and how the program talks.
package flags

import (
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/weights"
)

// Env is where one run of the program writes to.
type Env struct {
	Stdout, Stderr io.Writer
}

func init() { weights.OnMap = file.Opened }

// Producer is what the files written by this program say about it.
func Producer() string { return "swagwrap " + Version() }

// Version is that of the build.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Positionals checks the number of arguments: names without "..." once each.
func Positionals(c *cli.Context) error {
	want := strings.Fields(c.Command.ArgsUsage)
	least := len(slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s[0] == '[' }))
	many := strings.HasSuffix(c.Command.ArgsUsage, "...")
	if n := c.NArg(); n < least || n > len(want) && !many {
		return Usagef("swagwrap "+c.Command.Name+" --help shows an example", "%d arguments, want %s", n, c.Command.ArgsUsage)
	}
	return nil
}

// Logf tells the user about the work: on standard error, unless -q.
func (a *Env) Logf(c *cli.Context, format string, args ...any) {
	if !c.Bool("quiet") {
		text.Line(a.Stderr, format, args...)
	}
}

// Debugf is Logf with -v only.
func (a *Env) Debugf(c *cli.Context, format string, args ...any) {
	if c.Bool("verbose") {
		a.Logf(c, format, args...)
	}
}

// Warnf is Logf for what the user must see.
func (a *Env) Warnf(c *cli.Context, format string, args ...any) {
	a.Logf(c, "warning: "+format, args...)
}

// WarnLong is Warnf for a text of several lines.
func (a *Env) WarnLong(c *cli.Context, what string) {
	for _, line := range text.Hang("warning: ", what) {
		a.Logf(c, "%s", line)
	}
}
