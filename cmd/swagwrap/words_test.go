package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// allCommands returns the command line of the program.
func allCommands() *cli.App {
	return newApp(&console.Env{Stdout: console.NewStdout(io.Discard), Stderr: io.Discard}, func() {}).cli()
}

// hasSetting reports whether a command has the flag of a setting.
func hasSetting(c *cli.Command, s setting.Setting) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool {
		return slices.ContainsFunc(f.Names(), func(name string) bool { return s.String() == dashed(name) })
	})
}

// dashed returns the name of a flag as a user types it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// TestWords holds the names in messages against the command line: each setting is a flag of a command, and each command
// exists. So a hint never names what nobody can type.
func TestWords(t *testing.T) {
	p := allCommands()
	seen := map[string]bool{}
	for _, s := range setting.All() {
		if !slices.ContainsFunc(p.Commands, func(c *cli.Command) bool { return hasSetting(c, s) }) {
			t.Errorf("%s: no command takes %s", s.GoName(), s)
		}
		if seen[s.String()] {
			t.Errorf("%s: another setting is %s, too", s.GoName(), s)
		}
		seen[s.String()] = true
	}
	for _, c := range setting.AllCommands() {
		if p.Command(c.String()) == nil {
			t.Errorf("%s: there is no command %s", c.GoName(), c)
		}
	}
	if got, want := setting.Line(setting.Fit.With(setting.State.With("IN=OUT"))), p.Name+" fit --state IN=OUT"; got != want {
		t.Errorf("a line is %q, want %q", got, want)
	}
}

// Where a message names a command with settings, as in setting.Fit.With(setting.State.With("none")), the command takes
// them.
func TestWordsOfCommands(t *testing.T) {
	p, settings, commands := allCommands(), map[string]setting.Setting{}, map[string]setting.Command{}
	for _, s := range setting.All() {
		settings[s.GoName()] = s
	}
	for _, c := range setting.AllCommands() {
		commands[c.GoName()] = c
	}
	checked := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			command, ok := commands[phrase(n)]
			if !ok {
				return true
			}
			for _, arg := range n.(*ast.CallExpr).Args {
				ast.Inspect(arg, func(n ast.Node) bool {
					if s, ok := settings[named(n)]; ok {
						checked++
						if !hasSetting(p.Command(command.String()), s) {
							t.Errorf("%s: %s does not take %s", set.Position(n.Pos()), command, s)
						}
					}
					return true
				})
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 20 {
		t.Errorf("%d settings of commands were checked, want 20 or more: does the test find them?", checked)
	}
}

// named returns Name of an expression setting.Name, or "".
func named(n ast.Node) string {
	if s, ok := n.(*ast.SelectorExpr); ok {
		if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "setting" {
			return s.Sel.Name
		}
	}
	return ""
}

// phrase returns Name of a call setting.Name.With(…), or "".
func phrase(n ast.Node) string {
	if call, ok := n.(*ast.CallExpr); ok {
		if with, ok := call.Fun.(*ast.SelectorExpr); ok && with.Sel.Name == "With" {
			return named(with.X)
		}
	}
	return ""
}
