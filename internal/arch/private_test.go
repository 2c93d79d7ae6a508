package arch

import (
	"bytes"
	"go/ast"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// private matches words that only this project used for a thing of the field. CONTRIBUTING.md has the field's word for
// each: guarantee, target, check of the inputs, and so on.
var private = regexp.MustCompile(`(?i)\b(intakes?|apart|endings?|said|carried|fed|threes|floors?|promise[sd]?|truths?)\b`)

// ordinary are uses of these words in their plain sense, which are names outside of the project, or mathematics.
var ordinary = regexp.MustCompile(`(?i)\bground truth\b|\bfloor\(|\bkeras-nll-floor\b|` + "`[^`]*`" + `|"[^"]*"|\$ENDINGS|new Promise|FLOOR\b`)

// parts matches the words of a name in camel case.
var parts = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

// bare are names that tell nothing of a function. Methods At and Each are usual in Go: an index, and an iteration.
var bare = []string{"of", "at", "each", "whole"}

// TestPrivateWords holds that names, comments and pages use the terms of the field.
func TestPrivateWords(t *testing.T) {
	list, err := exec.Command("git", "-C", "../..", "ls-files", "*.go", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, path := range strings.Fields(string(list)) {
		src, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		files++
		switch {
		case path == "CHANGELOG.md", strings.HasPrefix(path, "internal/arch/"): // history, and this list
		case strings.HasSuffix(path, ".md"):
			for i, line := range bytes.Split(src, []byte("\n")) {
				checkWords(t, path, i+1, string(line))
			}
		default:
			checkSource(t, path)
		}
	}
	if files < 1000 {
		t.Errorf("%d files: the list is not that of the project", files)
	}
}

func checkWords(t *testing.T, path string, line int, text string) {
	if !private.MatchString(text) {
		return
	}
	if word := private.FindString(ordinary.ReplaceAllString(text, "")); word != "" && !strings.HasPrefix(text, "    ") {
		t.Errorf("%s:%d: %q is a private word: CONTRIBUTING.md has the term of the field", path, line, word)
	}
}

func checkSource(t *testing.T, path string) {
	f, err := parse("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			checkWords(t, path, positions.Position(c.Pos()).Line, c.Text)
		}
	}
	for _, i := range f.Imports {
		if i.Name != nil && i.Name.Name != "_" && !slices.Contains(strings.Split(strings.Trim(i.Path.Value, `"`), "/"), i.Name.Name) {
			checkAlias(t, path, i)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "math" { // math.Floor
				return false
			}
		case *ast.FuncDecl:
			name := strings.ToLower(n.Name.Name)
			method := n.Recv != nil && (!n.Name.IsExported() || name == "at" || name == "each")
			if slices.Contains(bare, name) && !method {
				t.Errorf("%s:%d: the function %s has a name that tells nothing", path, positions.Position(n.Pos()).Line, n.Name)
			}
		case *ast.Ident:
			for _, word := range parts.FindAllString(n.Name, -1) {
				if private.MatchString(word) {
					t.Errorf("%s:%d: %s has the private word %q: CONTRIBUTING.md has the term of the field", path, positions.Position(n.Pos()).Line, n.Name, word)
				}
			}
		}
		return true
	})
}

// aliases are those of paths that do not end in the name of their package, or of two packages with one name.
var aliases = map[string]string{
	`"github.com/yalue/onnxruntime_go"`:      "binding",  // its package is called onnxruntime_go
	`"golang.org/x/image/font"`:              "xfont",    // beside gonum's font
	`"gonum.org/v1/plot/text"`:               "plottext", // beside internal/report/text
	`"encoding/binary"`:                      "wire",     // beside the task binary
	`"k8s.io/api/batch/v1"`:                  "batchv1",  // as Kubernetes' own code
	`"k8s.io/api/core/v1"`:                   "corev1",
	`"k8s.io/apimachinery/pkg/apis/meta/v1"`: "metav1",
	`"k8s.io/apimachinery/pkg/util/rand"`:    "utilrand",
	`"k8s.io/apiserver/pkg/util/feature"`:    "utilfeature",
	`"k8s.io/client-go/testing"`:             "ktesting",
}

// checkAlias holds that the name of an import says its package.
func checkAlias(t *testing.T, path string, i *ast.ImportSpec) {
	if want, ok := aliases[i.Path.Value]; !ok || want != i.Name.Name {
		t.Errorf("%s: the import %s %s: an alias says the package", path, i.Name, i.Path.Value)
	}
}

// TestPrivate holds what TestPrivateWords looks for.
func TestPrivate(t *testing.T) {
	for text, want := range map[string]bool{
		"the intake": true, "tell them apart": true, "What was said": true, "a promised set": true, "the truth": true, "in threes": true,
		"ground truth": false, "floor(b·n)": false, "`promise` in JSON": false, "aside": false, "feed": false, "compromise": false,
	} {
		if got := private.MatchString(ordinary.ReplaceAllString(text, "")); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
