package arch

import (
	"bytes"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/report"
)

var (
	aClaim     = regexp.MustCompile(`^\| ([0-9]+) \|`)
	aTest      = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	aShortMode = regexp.MustCompile(`\btesting\.Short\(\)`)
	inTests    = regexp.MustCompile("((?:`(?:Test|Fuzz)[A-Za-z0-9_]+`(?:, | and )?)+) in ([a-z/]+)")
)

// Each guarantee of docs/reliability.md has tests in fixtures/reliability/README.md. They must exist, and run as often as it says.
func TestReliability(t *testing.T) {
	var page []byte
	for _, path := range []string{"../../docs/reliability.md", "../../fixtures/reliability/README.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page = append(page, text...)
	}
	claims, tested := 0, 0
	for row := range strings.Lines(string(page)) {
		if m := aClaim.FindStringSubmatch(row); m != nil && aTest.MatchString(row) {
			if tested++; m[1] != strconv.Itoa(tested) {
				t.Errorf("tests of promise %s, want of %d", m[1], tested)
			}
		} else if m != nil {
			if claims++; m[1] != strconv.Itoa(claims) {
				t.Errorf("promise %s, want %d", m[1], claims)
			}
		}
		named := 0
		for _, m := range inTests.FindAllStringSubmatch(row, -1) {
			for _, test := range aTest.FindAllStringSubmatch(m[1], -1) {
				named++
				figures, ok := figuresOf(t, filepath.Join("../..", m[2]), test[1])
				if !ok {
					t.Errorf("%s: no %s there", m[2], test[1])
				}
				for _, n := range figures {
					if !regexp.MustCompile(`(^|[^0-9,])` + report.Thousands(n) + `($|[^0-9,])`).MatchString(row) {
						t.Errorf("%s is run %d times, the page does not say so: %s", test[1], n, row)
					}
				}
			}
		}
		if all := len(aTest.FindAllString(row, -1)); all != named {
			t.Errorf("%d of %d tests have no folder: %s", all-named, all, row)
		}
	}
	if claims != 27 || tested != 27 {
		t.Errorf("%d promises, %d of them with tests, want 27", claims, tested)
	}
}

// The Makefile names tests and packages. Each test that the race detector leaves out must exist, and each package whose
// tests call reliability.Figure must run every night. In CI, a test of a concurrent package that does less under the race detector
// runs without it too.
func TestMakefile(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + ` = ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
		if m == nil {
			t.Fatalf("the Makefile does not set %s", name)
		}
		return string(m[1])
	}
	nightly := strings.Fields(value("FIGURES"))
	var tests strings.Builder
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		folder := "./" + filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../../"))
		if called := bytes.Contains(source, []byte("reliability.Figure(")); called && folder != "./internal/arch" && !slices.Contains(nightly, folder) {
			t.Errorf("%s calls reliability.Figure: its package is not in FIGURES", path)
		}
		tests.Write(source)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := func(of string) []string { return regexp.MustCompile(`Test\w+`).FindAllString(value(of), -1) }
	for _, name := range slices.Concat(names("LONG"), names("SHORTENED")) {
		if !strings.Contains(tests.String(), "func "+name+"(") {
			t.Errorf("the Makefile names %s, which is no test", name)
		}
	}
	for function := range strings.SplitSeq(tests.String(), "\nfunc ") {
		name, body, _ := strings.Cut(function, "(")
		if aShortMode.MatchString(body) && !slices.Contains(names("SHORTENED"), name) {
			t.Errorf("%s does less in short mode, and is not in SHORTENED: CI would never run it whole", name)
		}
	}
}

// figuresOf finds a test in a folder, and the numbers that it passes to reliability.Figure.
func figuresOf(t *testing.T, folder, test string) (figures []int, ok bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parse(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, isFunc := d.(*ast.FuncDecl)
			if !isFunc || f.Name.Name != test || f.Recv != nil {
				continue
			}
			ok = true
			ast.Inspect(f, func(n ast.Node) bool {
				if call, isCall := n.(*ast.CallExpr); isCall {
					if s, isSelector := call.Fun.(*ast.SelectorExpr); isSelector && s.Sel.Name == "Figure" {
						for _, arg := range call.Args {
							if lit, isLit := arg.(*ast.BasicLit); isLit {
								v, err := strconv.Atoi(strings.ReplaceAll(lit.Value, "_", ""))
								if err != nil {
									t.Fatal(err)
								}
								figures = append(figures, v)
							}
						}
					}
				}
				return true
			})
		}
	}
	return figures, ok
}
