package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// library are functions that urfave/cli calls with a context of its own.
var library = map[string]bool{"onUsageError": true, "unknownCommand": true}

// TestDoor: the command line is read at the door. Outside of package flags only functions whose names begin with "read" take
// a cli.Context, and no struct holds one. They fill the options of a command; whatever runs gets these.
func TestDoor(t *testing.T) {
	err := filepath.WalkDir("../../cmd", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(filepath.ToSlash(path), "/internal/flags/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if takesContext(d.Type.Params) && !strings.HasPrefix(name, "read") && !library[name] {
					t.Errorf("%s: %s takes a cli.Context: read the flags in a function read…, and pass the options", path, name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						if fields, ok := s.Type.(*ast.StructType); ok && takesContext(fields.Fields) {
							t.Errorf("%s: %s holds a cli.Context: hold the options", path, s.Name.Name)
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// takesContext reports whether one of the parameters or fields is a *cli.Context.
func takesContext(list *ast.FieldList) bool {
	for _, field := range list.List {
		if star, ok := field.Type.(*ast.StarExpr); ok {
			if of, ok := star.X.(*ast.SelectorExpr); ok && of.Sel.Name == "Context" {
				if pkg, ok := of.X.(*ast.Ident); ok && pkg.Name == "cli" {
					return true
				}
			}
		}
	}
	return false
}
