package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
)

// Help pages stay short: at most ten flags, 100 columns, and an example. All pages together have a limit of names of flags.
// A name has a value in all commands, or in none.
func TestHelp(t *testing.T) {
	const most, names = 11, 124
	a := newApp(&console.Env{Stdout: console.NewStdout(io.Discard), Stderr: io.Discard}, func() {})
	program := a.cli()
	narrow := func(what string, page func(width int) string) {
		for _, width := range []int{flags.HelpWidth + 20, 80, 60} {
			for line := range strings.Lines(page(width)) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > min(width, flags.HelpWidth) && len(strings.Fields(line)) > 1 && !strings.HasPrefix(line, "   swagwrap") {
					t.Errorf("%s: a line of %d columns, want %d: %s", what, n, width, line)
				}
			}
		}
	}
	overview := help(program.Commands, flags.HelpWidth)
	narrow("swagwrap", func(width int) string { return help(program.Commands, width) })
	narrow("swagwrap without arguments", atAGlance)
	if n := strings.Count(atAGlance(80), "\n"); n > 22 { // a terminal has 24
		t.Errorf("swagwrap without arguments prints %d lines, which are more than a screen", n)
	}
	takes := map[string]bool{}
	for _, cmd := range program.VisibleCommands() {
		if !strings.Contains(overview, "\n  "+cmd.Name+" ") {
			t.Errorf("swagwrap --help does not list %s", cmd.Name)
		}
		short, all := flags.Help(cmd, false, flags.HelpWidth), flags.Help(cmd, true, flags.HelpWidth)
		for _, all := range []bool{false, true} {
			narrow(cmd.Name, func(width int) string { return flags.Help(cmd, all, width) })
		}
		for _, line := range lowercase.FindAllString(all, -1) {
			t.Errorf("%s --help-all: the word for a value looks like a value: %s", cmd.Name, line)
		}
		shown := 0
		for _, f := range cmd.Flags {
			name := f.Names()[0]
			if n := strings.Count(all, "--"+name+"\n") + strings.Count(all, " --"+name+" "); n == 0 {
				t.Errorf("%s --help-all does not show --%s", cmd.Name, name)
			}
			if flagShown(short, name) {
				shown++
			}
			takesValue := f.(cli.DocGenerationFlag).TakesValue()
			if was, known := takes[name]; known && was != takesValue {
				t.Errorf("--%s has a value in some commands, and none in %s", name, cmd.Name)
			}
			takes[name] = takesValue
		}
		if shown > most || shown == 0 && len(cmd.Flags) > 2 {
			t.Errorf("%s --help shows %d flags, want 1 to %d", cmd.Name, shown, most)
		}
		if !strings.Contains(short, "\n   swagwrap "+cmd.Name) {
			t.Errorf("%s --help shows no example", cmd.Name)
		}
	}
	if len(takes) > names {
		t.Errorf("%d names of flags, want at most %d", len(takes), names)
	}
	if !slices.Contains(program.VisibleCommands(), program.Command("try")) {
		t.Error("try is not there")
	}
}

// lowercase finds a flag of a help page whose word for its value is in small letters. An extension may follow the word.
var lowercase = regexp.MustCompile(`(?m)^  (-., |    )--[a-z0-9-]+ [^ .]*[a-z].*$`)

// flagShown reports whether a help page has a line for a flag.
func flagShown(page, name string) bool {
	for line := range strings.Lines(page) {
		line = strings.TrimLeft(line, " ")
		if _, after, short := strings.Cut(line, ", "); short && strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "--") {
			line = after
		}
		if rest, ok := strings.CutPrefix(line, "--"+name); ok && (rest == "" || rest[0] == ' ' || rest[0] == '\n') {
			return true
		}
	}
	return false
}
