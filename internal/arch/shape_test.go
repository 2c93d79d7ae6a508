package arch

import (
	"cmp"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// eachFile parses the product code below the folders. at returns the line of a place.
func eachFile(t *testing.T, folders []string, f func(path string, at func(token.Pos) int, file *ast.File)) {
	t.Helper()
	root := os.DirFS("../..")
	for _, top := range folders {
		err := fs.WalkDir(root, top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parse("../../" + path)
			if err == nil {
				f(path, func(p token.Pos) int { return positions.Position(p).Line }, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// belowCommands are the folders of all packages below the program.
var belowCommands = []string{"weights", "onnxio", "swag", "bnupdate", "calibrate", "internal"}

// holding lists the structs that may hold a context, with the reason for each.
var holding = map[string]string{
	// A source may be a command, such as |zcat. It runs when an example is read, and reading is a method of io.Reader.
	"internal/dataset.Options":             pipes,
	"internal/dataset/listing.Options":     pipes,
	"internal/dataset/listing.ListOptions": pipes,
	"internal/dataset/listing.spool":       pipes,
}

const pipes = "it ends the commands of pipes, which run while examples are read"

// A context is an argument of a call. A struct that holds one outlives the call, and then nothing can be stopped.
func TestNoContextIsHeld(t *testing.T) {
	found := map[string]bool{}
	eachFile(t, belowCommands, func(path string, _ func(token.Pos) int, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			ast.Inspect(spec.Type, func(n ast.Node) bool {
				if fields, ok := n.(*ast.StructType); ok && slices.ContainsFunc(fields.Fields.List, isContext) {
					found[filepath.Dir(path)+"."+spec.Name.Name] = true
				}
				return true
			})
			return true
		})
	})
	for name := range found {
		if holding[name] == "" {
			t.Errorf("%s holds a context: pass it as an argument", name)
		}
	}
	for name := range holding {
		if !found[name] {
			t.Errorf("%s holds no context: shorten the list", name)
		}
	}
}

func isContext(f *ast.Field) bool {
	s, ok := f.Type.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := s.X.(*ast.Ident)
	return ok && of.Name == "context" && s.Sel.Name == "Context"
}

// An engine never changes after it is made: its fields are its own, and no code of package infer sets one. Whatever
// differs between calls is an argument of the run.
func TestEngineNeverChanges(t *testing.T) {
	engine, others := map[string]bool{}, map[string]bool{} // names of fields
	eachFile(t, []string{"internal/infer"}, func(path string, _ func(token.Pos) int, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			names := others
			if spec.Name.Name == "Engine" {
				names = engine
			}
			for _, f := range fields.Fields.List {
				for _, name := range f.Names {
					if names[name.Name] = true; spec.Name.Name == "Engine" && name.IsExported() {
						t.Errorf("%s: other packages can set %s of an engine", path, name.Name)
					}
				}
			}
			return true
		})
	})
	if len(engine) == 0 {
		t.Fatal("package infer has no type Engine with fields")
	}
	eachFile(t, []string{"internal/infer"}, func(path string, at func(token.Pos) int, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			var set []ast.Expr
			switch n := n.(type) {
			case *ast.AssignStmt:
				set = n.Lhs
			case *ast.IncDecStmt:
				set = []ast.Expr{n.X}
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					set = []ast.Expr{n.X}
				}
			}
			for _, e := range set {
				if name := setsEngine(e, engine, others); name != "" {
					t.Errorf("%s:%d: sets %s of an engine: make another engine with With", path, at(e.Pos()), name)
				}
			}
			return true
		})
	})
}

// setsEngine returns the field of an engine that an assignment to e changes, such as how for e.how.Threads. Where other
// structs have a field of that name, the engine is known by the name of its variable.
func setsEngine(e ast.Expr, engine, others map[string]bool) string {
	switch s := e.(type) {
	case *ast.IndexExpr:
		return setsEngine(s.X, engine, others)
	case *ast.SelectorExpr:
		if engine[s.Sel.Name] && (!others[s.Sel.Name] || isEngine(s.X)) {
			return s.Sel.Name
		}
		return setsEngine(s.X, engine, others)
	}
	return ""
}

// isEngine reports whether a variable has the name of an engine, or of a run, which embeds one.
func isEngine(e ast.Expr) bool {
	if s, ok := e.(*ast.SelectorExpr); ok {
		e = s.Sel
	}
	name, ok := e.(*ast.Ident)
	return ok && (slices.Contains([]string{"e", "r", "run"}, name.Name) || strings.EqualFold(name.Name, "engine"))
}

// mostMethods is the largest number of methods of a type. A type with more does several things.
const mostMethods = 40

// large lists the types that may have more, with their number and the reason for each.
var large = map[string]struct {
	methods int
	reason  string
}{
	"onnxio.Model":                 {66, "it is the public reader of a file format, and each method reads one part of a graph"},
	"internal/task.regressionTask": {46, "it implements a task, and the further interfaces that only numbers need"},
	"internal/open.Opener":         {43, "it is the door to all files, and each method opens or checks one kind of them"},
}

func TestTypesAreSmall(t *testing.T) {
	methods := map[string]int{}
	eachFile(t, append(slices.Clone(belowCommands), "cmd"), func(path string, _ func(token.Pos) int, file *ast.File) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[filepath.Dir(path)+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	})
	type count struct {
		name string
		n    int
	}
	var counts []count
	for name, n := range methods {
		counts = append(counts, count{name, n})
	}
	slices.SortFunc(counts, func(a, b count) int { return cmp.Or(b.n-a.n, strings.Compare(a.name, b.name)) })
	for i, c := range counts {
		if i < 10 {
			t.Logf("%s has %d methods", c.name, c.n)
		}
		known := large[c.name]
		if most := max(mostMethods, known.methods); c.n > most {
			t.Errorf("%s has %d methods, want at most %d", c.name, c.n, most)
		} else if known.methods > 0 && (c.n < known.methods || known.reason == "") {
			t.Errorf("%s has %d methods, or no reason: shorten the list", c.name, c.n)
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
