package arch

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"testing"
)

// TestBuiltinNames refuses a variable, parameter or function that has the name of one of Go's own. A reader takes error, len or
// make for what they always are. Fields and methods stand behind a dot, so they may have such names.
func TestBuiltinNames(t *testing.T) {
	eachFile(t, append(slices.Clone(belowCommands), "cmd"), func(path string, _ func(token.Pos) int, f *ast.File) {
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
	})
}
