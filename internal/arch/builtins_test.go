package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuiltinNames refuses a variable, parameter or function that has the name of one of Go's own. A reader takes error, len or
// make for what they always are. Fields and methods stand behind a dot, so they may have such names.
func TestBuiltinNames(t *testing.T) {
	for path, f := range sources(t) {
		name := func(id *ast.Ident) {
			if types.Universe.Lookup(id.Name) != nil && id.Name != "_" {
				t.Errorf("%s: %s: the name of a builtin", path, id.Name)
			}
		}
		fields := func(l *ast.FieldList) {
			if l == nil {
				return
			}
			for _, field := range l.List {
				for _, id := range field.Names {
					name(id)
				}
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					if id, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
						name(id)
					}
				}
			case *ast.ValueSpec:
				for _, id := range n.Names {
					name(id)
				}
			case *ast.FuncType:
				fields(n.Params)
				fields(n.Results)
			case *ast.FuncDecl:
				if n.Recv == nil {
					name(n.Name)
				}
			}
			return true
		})
	}
}

// sources parses the product's files.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files[filepath.ToSlash(strings.TrimPrefix(path, "../../"))], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
