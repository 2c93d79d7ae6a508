package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// allCommands returns the command line of the program.
func allCommands() *cli.App {
	return newApp(&console.Env{Stdout: console.NewStdout(io.Discard), Stderr: io.Discard}, func() {}).cli()
}

// hasSetting reports whether a command has the flag of a setting.
func hasSetting(c *cli.Command, s setting.Setting) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool {
		return slices.ContainsFunc(f.Names(), func(name string) bool { return s.String() == flags.Typed(name) })
	})
}

var declared = regexp.MustCompile(`(?m)^\t(\w+) +(Setting|Command) += "(.+)"$`)

// namedInMessages returns the settings and the commands that messages name, by the names of their constants.
func namedInMessages(t *testing.T) (settings map[string]setting.Setting, commands map[string]setting.Command) {
	t.Helper()
	settings, commands = map[string]setting.Setting{}, map[string]setting.Command{}
	for _, name := range []string{"setting.go", "command.go"} {
		for _, m := range declared.FindAllStringSubmatch(readFile(t, filepath.Join("..", "..", "internal", "setting", name)), -1) {
			if m[2] == "Setting" {
				settings[m[1]] = setting.Setting(m[3])
			} else {
				commands[m[1]] = setting.Command(m[3])
			}
		}
	}
	if len(settings) < 60 || len(commands) < 10 {
		t.Errorf("%d settings and %d commands: does the test find them?", len(settings), len(commands))
	}
	return settings, commands
}

// TestWords holds the names in messages against the command line: each setting is a flag of a command, and each command
// exists. So a hint never names what nobody can type.
func TestWords(t *testing.T) {
	p := allCommands()
	settings, commands := namedInMessages(t)
	for name, s := range settings {
		if !slices.ContainsFunc(p.Commands, func(c *cli.Command) bool { return hasSetting(c, s) }) {
			t.Errorf("%s: no command takes %s", name, s)
		}
	}
	for name, c := range commands {
		if p.Command(c.String()) == nil {
			t.Errorf("%s: there is no command %s", name, c)
		}
	}
	if got, want := setting.Line(setting.Fit.With(setting.State.With("IN=OUT"))), p.Name+" fit --state IN=OUT"; got != want {
		t.Errorf("a line is %q, want %q", got, want)
	}
}

// Where a message names a command with settings, as in setting.Fit.With(setting.State.With("none")), the command takes
// them.
func TestWordsOfCommands(t *testing.T) {
	p, checked := allCommands(), 0
	settings, commands := namedInMessages(t)
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
