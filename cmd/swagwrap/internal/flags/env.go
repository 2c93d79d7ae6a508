// Package flags holds the common parts of the commands: flags, outputs, errors and exit codes, and messages. Package
// inputs opens what commands read.
package flags

import (
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/weights"
)

// Env holds the standard streams of one run of the program.
type Env struct {
	Stdout  *Stdout
	Stderr  io.Writer
	Program string // the word that started the program
	// Do, if not nil, returns the commands that the page of a study shows instead of the result's own.
	Do func(study.Result) []string
	// Shown, if not nil, gets the result of a study after it was printed. Then no command prints what to run next.
	Shown func(study.Result)
	// Brief leaves out messages except with -v. Progress is shown.
	Brief bool
}

func init() { weights.OnMap = file.Opened }

// Producer is the name and version of the program in the files that it writes.
func Producer() string { return "swagwrap " + Version() }

// Version returns the version of the build.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Positionals checks the number of arguments against ArgsUsage. A name in brackets may be missing. One with "..." may
// occur several times.
func Positionals(c *cli.Context) error {
	want := strings.Fields(c.Command.ArgsUsage)
	least := len(slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s[0] == '[' }))
	many := strings.Contains(c.Command.ArgsUsage, "...")
	if n := c.NArg(); n < least || n > len(want) && !many {
		return Usagef("swagwrap "+c.Command.Name+" --help shows an example", "%s, want %s", report.Plural(n, "argument"), c.Command.ArgsUsage)
	}
	return nil
}

// Logf prints a message about the work on standard error, unless -q is given.
func (a *Env) Logf(c *cli.Context, format string, args ...any) {
	if !c.Bool("quiet") && (!a.Brief || c.Bool("verbose")) {
		text.Line(a.Stderr, "%s", file.Named(fmt.Sprintf(format, args...)))
	}
}

// Debugf is like [Env.Logf], but prints only with -v.
func (a *Env) Debugf(c *cli.Context, format string, args ...any) {
	if c.Bool("verbose") {
		a.Logf(c, format, args...)
	}
}

// Warnf is like [Env.Logf], with "warning: " in front.
func (a *Env) Warnf(c *cli.Context, format string, args ...any) {
	a.Logf(c, "warning: "+format, args...)
}

// Next prints the commands to run next, in their order, on standard error. All commands end with it. A result on
// standard output has no name that another command could read, so nothing is printed.
func (a *Env) Next(c *cli.Context, commands ...string) {
	if IsStdout(c.String("output")) || a.Shown != nil {
		return
	}
	for i, line := range a.typed(commands) {
		a.Logf(c, "%s%s", []string{"next: ", "      "}[min(i, 1)], line)
	}
}

// Screen returns what tables and verdicts are printed for.
func (a *Env) Screen(c *cli.Context) report.Screen {
	return report.Screen{Width: a.Stdout.width(), Terminal: a.Stdout.terminal, Verbose: c.Bool("verbose")}
}

// WarnLong is like [Env.Warnf], for a text of several lines.
func (a *Env) WarnLong(c *cli.Context, what string) {
	for _, line := range text.Hang("warning: ", what) {
		a.Logf(c, "%s", line)
	}
}
