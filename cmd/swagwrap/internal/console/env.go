// Package console is what a command has of its surroundings: messages and hints, exit codes, outputs, standard output and
// progress. It knows no flags.
package console

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/weights"
)

// Env holds the standard streams of one run of the program.
type Env struct {
	Stdout  *Stdout
	Stderr  io.Writer
	Program string // the word that started the program
	// Do, if not nil, returns the commands that the page of a study shows instead of the result's own.
	Do func(*study.Document) []string
	// Shown, if not nil, gets the result of a study after it was printed. Then no command prints what to run next.
	Shown func(*study.Document)
	// Refit, if not nil, gets what validation data found about averages of the checkpoints, and the flag of fit that takes the one which
	// they prefer. Its error ends the command. Chosen says that they have chosen.
	Refit  func(found, flag, value string) error
	Chosen bool
	// Brief leaves out messages except with -v. Progress is shown.
	Brief bool
	// Warned, if not nil, gets the warnings in place of standard error, and LeftOut the messages that Brief leaves out.
	Warned, LeftOut func(string)
	// Rest says where all figures of a study will be. The screen has a few.
	Rest string
	// Between is the folder beside a report for files that the commands after it need, and nobody later. "" means the same folder.
	Between string
	// Usage is the name of the command, and what its arguments are.
	Usage string
	// Quiet leaves out all messages but errors, and Verbose prints more.
	Quiet, Verbose bool

	// Streamed says that the result goes to standard output. Then no command prints what to run next with it.
	Streamed bool
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

// Logf prints a message about the work on standard error, unless -q is given.
func (a *Env) Logf(format string, args ...any) {
	switch text := fmt.Sprintf(format, args...); {
	case a.Brief && !a.Verbose && a.LeftOut != nil:
		a.LeftOut(text)
	case !a.Quiet && (!a.Brief || a.Verbose):
		say(a.Stderr, file.Named(text))
	}
}

// Debugf is like [Env.Logf], but prints only with -v.
func (a *Env) Debugf(format string, args ...any) {
	if a.Verbose {
		a.Logf(format, args...)
	}
}

// Warnf is like [Env.Logf], with "warning: " in front.
func (a *Env) Warnf(format string, args ...any) {
	if a.Warned != nil {
		a.Warned(fmt.Sprintf(format, args...))
		return
	}
	a.Logf("warning: "+format, args...)
}

// Next prints the commands to run next, in their order, on standard error. All commands end with it. A result on
// standard output has no name that another command could read, so nothing is printed.
func (a *Env) Next(commands ...string) {
	if a.Streamed || a.Shown != nil {
		return
	}
	for i, line := range a.typed(commands) {
		a.Logf("%s%s", []string{"next: ", "      "}[min(i, 1)], line)
	}
}

// Screen returns what tables and verdicts are printed for.
func (a *Env) Screen() report.Screen {
	return report.Screen{Width: widthOf(a.Stdout.to), Terminal: a.Stdout.terminal, Verbose: a.Verbose}
}

// Messages returns what messages on standard error are printed for.
func (a *Env) Messages() report.Screen {
	s := report.Screen{Verbose: true}
	if s.Terminal = isTerminal(a.Stderr); s.Terminal {
		s.Width = widthOf(a.Stderr)
	}
	return s
}

// WarnLong is like [Env.Warnf], for a text of several lines.
func (a *Env) WarnLong(what string) {
	if a.Warned != nil {
		a.Warnf("%s", what)
		return
	}
	for _, line := range a.Messages().Hang("warning: ", what) {
		a.Logf("%s", line)
	}
}
