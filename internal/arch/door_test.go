package arch

import (
	"go/ast"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// library are functions that urfave/cli calls with a context of its own.
var library = map[string]bool{"onUsageError": true, "unknownCommand": true, "start": true}

// TestDoor: the command line is read at the door. Outside of package flags only functions that the library calls take a
// cli.Context, and no struct holds one. The table of a command fills its options; whatever runs gets these.
func TestDoor(t *testing.T) {
	err := filepath.WalkDir("../../cmd", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(filepath.ToSlash(path), "/internal/flags/") {
			return err
		}
		file, err := parse(path)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if takesContext(d.Type.Params) && !library[name] {
					t.Errorf("%s: %s takes a cli.Context: give the command a row in its table, and pass the options", path, name)
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

// ofLibrary are the flags of the library itself in the program's code.
var ofLibrary = map[string]string{
	"../../cmd/swagwrap/app.go":                  "BoolFlag",    // --version, of the program
	"../../cmd/swagwrap/internal/shell/shell.go": "GenericFlag", // a row, for the library's script for fish
}

// TestFlagsAreRows: every flag is a row of a table, which fills, refuses, spells, completes and describes it.
func TestFlagsAreRows(t *testing.T) {
	rows := 0
	eachFile(t, []string{"cmd"}, func(path string, at func(token.Pos) int, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			switch of, _ := literal.Type.(*ast.SelectorExpr); {
			case of == nil:
				if row, ok := literal.Type.(*ast.Ident); ok && row.Name == "Row" {
					rows++
				}
			case of.Sel.Name == "Row":
				rows++
			case strings.HasSuffix(of.Sel.Name, "Flag") && of.Sel.Name != ofLibrary["../../"+path]:
				t.Errorf("%s:%d: %s is a flag of the library: make a row", path, at(n.Pos()), of.Sel.Name)
			}
			return true
		})
	})
	if rows < 100 {
		t.Errorf("%d rows, want 100 or more: does the test find them?", rows)
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
