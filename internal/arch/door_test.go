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

// unlabelled are the reads of flags in function literals, which have no name that could begin with "read".
var unlabelled = map[string]int{
	"../../cmd/swagwrap/app.go": 3, // quiet, verbose and memory are of all commands
}

// TestFlagsAreReadAtTheDoor: a flag is read by its name in package flags and in functions whose names begin with "read", and
// nowhere else.
func TestFlagsAreReadAtTheDoor(t *testing.T) {
	found, read := map[string]int{}, 0
	err := filepath.WalkDir("../../cmd", func(path string, d fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/internal/flags/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			n := reads(decl)
			if ok && strings.HasPrefix(f.Name.Name, "read") {
				read += n
			} else if n > 0 {
				found[path] += n
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, n := range found {
		if n != unlabelled[path] {
			t.Errorf("%s reads %d flags outside functions read…, want %d: read them as options", path, n, unlabelled[path])
		}
	}
	if read < 50 {
		t.Errorf("functions read… read %d flags, want 50 or more: does the test find them?", read)
	}
}

// ofFlags are the methods of cli.Context that read a flag by its name.
var ofFlags = map[string]bool{"Bool": true, "String": true, "Int": true, "Int64": true, "Uint": true, "Uint64": true, "Float64": true, "Duration": true,
	"StringSlice": true, "IntSlice": true, "Float64Slice": true, "Value": true, "Generic": true, "Path": true, "IsSet": true, "Count": true, "Set": true}

// reads counts the calls in a declaration that read a flag: those with the flag's name in a string.
func reads(decl ast.Decl) (n int) {
	ast.Inspect(decl, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		_, plain := method.X.(*ast.Ident)
		name, literal := call.Args[0].(*ast.BasicLit)
		if plain && literal && name.Kind == token.STRING && ofFlags[method.Sel.Name] {
			n++
		}
		return true
	})
	return n
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
