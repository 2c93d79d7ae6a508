package arch

import (
	"bytes"
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is the largest width of a line of the product, with tabs of four columns.
const widest = 140

// TestLines holds that no line is wider than a reader's window. Lines of raw strings, and of C, cannot be broken.
func TestLines(t *testing.T) {
	list, err := exec.Command("git", "-C", "../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, path := range strings.Fields(string(list)) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "fixtures/") {
			continue
		}
		src, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		files++
		free := unbreakable(t, path)
		for i, line := range bytes.Split(src, []byte("\n")) {
			if columns := utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t")); columns > widest && !free[i+1] {
				t.Errorf("%s:%d: %d columns, want at most %d", path, i+1, columns, widest)
			}
		}
	}
	if files < 500 {
		t.Errorf("%d files: the list is not that of the product", files)
	}
}

// unbreakable returns the lines that raw strings and C are on.
func unbreakable(t *testing.T, path string) map[int]bool {
	free := make(map[int]bool)
	f, err := parse("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	mark := func(n ast.Node) {
		for line := positions.Position(n.Pos()).Line; line <= positions.Position(n.End()).Line; line++ {
			free[line] = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if strings.HasPrefix(n.Value, "`") {
				mark(n)
			}
		case *ast.GenDecl:
			if n.Doc != nil && n.Tok == token.IMPORT {
				mark(n.Doc)
			}
		}
		return true
	})
	return free
}
