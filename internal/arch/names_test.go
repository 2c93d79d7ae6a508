package arch

import (
	"go/ast"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// declared has what the Go files of the project declare: "weights.Vector", "infer.Scorer.Run", "checkpoints.New".
type declared struct {
	names    map[string]bool // of functions, types, values, methods and fields, below the name of their package
	values   map[string]bool // those of names that are variables and constants, whose methods are not looked up
	packages map[string]bool
	files    map[string]bool // paths, folders, and what stands behind each slash
}

// list returns the files that git has, with those not committed yet.
func list(t *testing.T, patterns ...string) []string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", "../..", "ls-files", "--cached", "--others", "--exclude-standard"}, patterns...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

func (d *declared) read(t *testing.T) {
	d.names, d.values, d.packages, d.files = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, file := range list(t) {
		for dir := file; dir != "."; dir = path.Dir(dir) {
			for tail := dir; ; {
				d.files[tail] = true
				_, after, ok := strings.Cut(tail, "/")
				if !ok {
					break
				}
				tail = after
			}
		}
	}
	for _, file := range list(t, "*.go") {
		f, err := parse("../../" + file)
		if os.IsNotExist(err) {
			continue // removed, not committed
		}
		if err != nil {
			t.Fatal(err)
		}
		pkg := strings.TrimSuffix(f.Name.Name, "_test")
		d.packages[pkg] = true
		for _, decl := range f.Decls {
			d.add(pkg, decl)
		}
	}
}

func (d *declared) add(pkg string, decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		name := decl.Name.Name
		if decl.Recv != nil {
			ast.Inspect(decl.Recv.List[0].Type, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					d.names[pkg+"."+id.Name+"."+name] = true
					return false
				}
				return true
			})
			return
		}
		d.names[pkg+"."+name] = true
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					d.names[pkg+"."+id.Name], d.values[pkg+"."+id.Name] = true, true
				}
			case *ast.TypeSpec:
				d.names[pkg+"."+spec.Name.Name] = true
				ast.Inspect(spec.Type, func(n ast.Node) bool {
					if field, ok := n.(*ast.Field); ok {
						for _, id := range field.Names {
							d.names[pkg+"."+spec.Name.Name+"."+id.Name] = true
						}
					}
					return true
				})
			}
		}
	}
}

var (
	// goFiles matches names of Go files, and folders of the module.
	goFiles = regexp.MustCompile("(?m)(?:^|[\\s(`])((?:[\\w-]+/)*[\\w-]+\\.go|(?:internal|cmd/swagwrap)/[a-z/0-9]*[a-z])(?:$|[^\\w/.]|[.,]?\\s)")
	// docLink matches links of comments: [Name], [Type.Method], [pkg.Name].
	docLink = regexp.MustCompile(`\[\*?([A-Za-z]\w*(?:\.[A-Za-z]\w*)*)\](?:$|[^(\w\[])`)
	// qualified matches names with their package: `swag.Fit`, `infer.Scorer.Run`.
	qualified = regexp.MustCompile(`\b([a-z][a-z0-9]+)((?:\.[A-Za-z]\w*)+)`)
	firstWord = regexp.MustCompile(`^\w+`)
	quoted    = regexp.MustCompile("`[^`\n]+`")
)

// TestNamesExist holds that a page for developers and a comment name only files, folders and functions that are there.
func TestNamesExist(t *testing.T) {
	t.Parallel()
	var d declared
	d.read(t)
	checked := 0
	for _, page := range []string{"docs/architecture.md", "CONTRIBUTING.md", "docs/go.md", "SECURITY.md", "docs/reliability.md"} {
		content, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range quoted.FindAllString(string(content), -1) {
			for _, m := range qualified.FindAllStringSubmatch(code, -1) {
				if d.packages[m[1]] && !strings.HasSuffix(m[0], ".go") && !strings.HasSuffix(m[0], ".json") {
					checked++
					if !d.names[m[0]] && !d.values[strings.TrimSuffix(m[0], path.Ext(m[0]))] {
						t.Errorf("%s: there is no %s", page, m[0])
					}
				}
			}
		}
		checked += d.checkFiles(t, page, string(content))
	}
	for _, file := range list(t, "*.go") {
		f, err := parse("../../" + file)
		if err != nil {
			continue // read has said it
		}
		pkg := strings.TrimSuffix(f.Name.Name, "_test")
		for _, decl := range f.Decls {
			if decl, ok := decl.(*ast.FuncDecl); ok && decl.Doc != nil && !strings.HasSuffix(file, "_test.go") {
				name := decl.Name.Name
				first := firstWord.FindString(decl.Doc.Text())
				if first != name && (ast.IsExported(name) || first != "" && !ast.IsExported(first)) {
					t.Errorf("%s: the comment of %s begins with %q", file, name, first)
				}
			}
		}
		for _, group := range f.Comments {
			text := group.Text()
			checked += d.checkFiles(t, file, text)
			for _, m := range docLink.FindAllStringSubmatch(text, -1) {
				first, _, _ := strings.Cut(m[1], ".")
				other := slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
					return path.Base(strings.Trim(i.Path.Value, `"`)) == first && !strings.Contains(i.Path.Value, module)
				})
				if d.names[pkg+"."+m[1]] || d.names[m[1]] || other || !d.packages[first] && !ast.IsExported(first) ||
					strings.HasPrefix(file, "internal/arch/") {
					continue
				}
				t.Errorf("%s: there is no [%s]", file, m[1])
			}
		}
	}
	if checked < 150 {
		t.Errorf("%d names: the test does not see them", checked)
	}
}

func (d *declared) checkFiles(t *testing.T, in, text string) (checked int) {
	for _, m := range goFiles.FindAllStringSubmatch(text, -1) {
		if checked++; !d.files[m[1]] {
			t.Errorf("%s: there is no %s", in, m[1])
		}
	}
	return checked
}
