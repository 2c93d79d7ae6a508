package arch

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ofOpen are the rules that several commands need. Commands reach them through package open alone, so each holds for all
// commands.
var ofOpen = map[string]string{
	"dataset.Open":               "how data is read",
	"task.CheckLabels":           "which labels an example can have",
	"probe.Hold":                 "what is checked of data",
	"batchnorm.ChooseSampleSize": "which examples batch norm takes",
	"swag.NewSampler":            "which members a posterior can give",
}

// TestOpen: no command calls a rule of package open by itself.
func TestOpen(t *testing.T) {
	files, err := filepath.Glob("../../cmd/swagwrap/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var d declared
	d.read(t)
	for name := range ofOpen {
		if !d.names[name] {
			t.Errorf("there is no %s: the test would find nothing", name)
		}
	}
	opened := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parse(path)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := call.X.(*ast.Ident)
			if !ok {
				return true
			}
			if pkg.Name == "open" {
				opened++
			}
			if what := ofOpen[pkg.Name+"."+call.Sel.Name]; what != "" {
				t.Errorf("%s calls %s.%s: package open knows %s", path, pkg.Name, call.Sel.Name, what)
			}
			return true
		})
	}
	if opened < 50 {
		t.Errorf("commands name package open %d times, want 50 or more: does the test find them?", opened)
	}
}

// TestNoShellLines: below the commands nobody writes the line of a shell, and nobody reads one. A study returns
// steps, which are values.
func TestNoShellLines(t *testing.T) {
	const step = "../../internal/study/step.go"
	if _, err := os.Stat(step); err != nil {
		t.Errorf("where are the steps? %v", err)
	}
	eachFile(t, belowCommands, func(path string, at func(token.Pos) int, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok && (name.Name == "Shell" || name.Name == "ShellWords") {
				t.Errorf("%s:%d: %s: the program knows shells, and below it there are values", path, at(name.Pos()), name.Name)
			}
			return true
		})
	})
}
