package arch

import (
	"go/ast"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// unguarded are files whose goroutines read no mapped file. Those of temperatures read logits in float64, which are computed.
var unguarded = []string{"cmd/swagwrap/main.go", "calibrate/passes.go"}

// Every goroutine of the program and its library must run its work in weights.Guarded. It then fails with an error if a
// mapped file is truncated. An unguarded goroutine would crash the process and leave unfinished files behind.
func TestGoroutinesAreGuarded(t *testing.T) {
	found := 0
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "fixtures" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || within(name, unguarded):
			return nil
		}
		file, err := parse(path)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.CallExpr:
				if f, ok := x.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "Go" {
					return true
				}
			case *ast.GoStmt:
			default:
				return true
			}
			if found++; !mentions(n, "Guarded") {
				t.Errorf("%s:%d: a goroutine that is not weights.Guarded", name, positions.Position(n.Pos()).Line)
			}
			return false
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("%d goroutines found: the test shows nothing", found)
	}
}

// mentions reports whether a name occurs anywhere below a node.
func mentions(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}
