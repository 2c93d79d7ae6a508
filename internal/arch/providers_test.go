package arch

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestProvidersAreNotAsked: no code asks which provider computes. What differs between providers is a property of their kind,
// in package ort.
func TestProvidersAreNotAsked(t *testing.T) {
	others := map[string]bool{"OpenVINO": true, "WebGPU": true, "CUDA": true}
	named := 0
	provider := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.Ident:
			return others[e.Name]
		case *ast.SelectorExpr:
			of, ok := e.X.(*ast.Ident)
			return ok && of.Name == "ort" && others[e.Sel.Name]
		}
		return false
	}
	eachFile(t, append([]string{"cmd"}, belowCommands...), func(path string, at func(token.Pos) int, file *ast.File) {
		asks := func(list ...ast.Expr) {
			for _, e := range list {
				if provider(e) {
					t.Errorf("%s:%d: asks which provider computes: give the kind in package ort a property", path, at(e.Pos()))
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					asks(n.X, n.Y)
				}
			case *ast.CaseClause:
				asks(n.List...)
			case ast.Expr:
				if provider(n) {
					named++
				}
			}
			return true
		})
	})
	if named < 5 {
		t.Errorf("providers are named %d times, want 5 or more: does the test find them?", named)
	}
}
