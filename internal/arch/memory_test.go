package arch

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// sizes are the places outside of package memory that may have a constant as large as a cache, or one whose name ends in
// "Bytes". Each has the reason why it is no share of --memory.
var sizes = map[string]string{
	// They decide numbers, so they must not depend on the machine.
	"internal/baseline/groups.go groupBytes":        "decides the groups of members, and so the order of sums",
	"internal/study/sweep/sweep.go groupBytes":      "decides the groups of members, and so the order of sums",
	"internal/baseline/logits.go most":              "decides the tokens to which a temperature is fitted",
	"internal/study/settling/settling.go most":      "decides the examples that choose the rule",
	"internal/infer/engine.go scoreBatchBytes":      "decides the batch, and so the last bits of scores",
	"internal/infer/devicesums.go mostAdded":        "decides what adds up, and so the last bits of sums",
	"internal/predictions/parquet.go rowGroupBytes": "decides the bytes of a file",
	// They refuse what a stranger's file asks for.
	"internal/webpage/inputs/inputs.go mostMemory":    "limits a picture in a browser, where there is no budget",
	"internal/dataset/listing/names.go maxNamesBytes": "limits a file",
	"internal/tokenizer/normalizers.go maxPartBytes":  "limits a part of a file",
	"internal/dataset/text/windows.go MaxTokens":      "limits a text to what 32 bits count",
	"internal/infer/plan.go mostElements":             "keeps products of sizes below 64 bits",
	"internal/numpy/numpy.go freeBytes":               "limits what a packed array expands to",
	"internal/reference/file.go maxBytes":             "limits a file",
	"internal/ort/session.go maxHalves":               "limits the size that a graph declares",
	"internal/predictions/part.go checkSize":          "limits a row",
	"internal/study/summary/sidecar.go MaxSidecar":    "limits a file",
	// They are steps of reading and writing mapped files, whose pages the system takes back.
	"internal/records/file.go Write":  "is the size of a frame of a file",
	"weights/mapping.go releaseBytes": "is when pages are given back",
	"weights/write.go transposeBytes": "belongs to the library, which has no budget",
	"internal/ort/malloc.go keptFree": "is given back when a session is open",
	// They are no memory.
	"internal/ort/checkup.go memoryAtHand":           "is a unit",
	"internal/hub/figures.go maxFigures":             "limits the text of a comparison, which is read whole once",
	"internal/predictions/read.go classNumbers":      "is the largest label",
	"internal/study/shift/documents.go listed":       "is part of a seed",
	"internal/study/shift/tokens.go damageTokens":    "is part of a seed",
	"swag/normal.go zigUnit":                         "scales a random number",
	"swag/normal.go init":                            "scales a random number",
	"weights/plausible.go allPossible":               "is the bits of a float",
	"weights/statefile/safetensors.go isSafetensors": "tells a format by its first bytes",
}

// TestSizes: the sizes of caches stand in package memory, which divides --memory. A constant elsewhere would be memory that
// no limit counts.
func TestSizes(t *testing.T) {
	used := map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "fixtures" || name == "internal/memory" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parse(path)
		if err != nil {
			return err
		}
		for _, n := range cacheSizes(file) {
			key := name + " " + n.in
			if used[key] = true; sizes[key] == "" {
				t.Errorf("%s:%d: a size of memory in %s: take a share of memory.Budget, or say in this test why it is none", name, positions.Position(n.at).Line, n.in)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for key := range sizes {
		if !used[key] {
			t.Errorf("%s may have a size of memory and has none", key)
		}
	}
}

// A found is a size of memory in a file.
type found struct {
	in string // the constant, variable or function that has it
	at token.Pos
}

// cacheSizes returns the sizes in a file: products and shifts of 256 MiB to 1 TiB, and constants of at least 1 MiB whose
// names end in "Bytes".
func cacheSizes(file *ast.File) (all []found) {
	scan := func(in string, of ast.Node) {
		ast.Inspect(of, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.BinaryExpr:
				if v := number(x); v >= 1<<28 && v <= 1<<40 {
					all = append(all, found{in, x.Pos()})
					return false
				}
			case *ast.ValueSpec:
				for i, name := range x.Names {
					if i < len(x.Values) && strings.HasSuffix(strings.ToLower(name.Name), "bytes") && number(x.Values[i]) >= 1<<20 && number(x.Values[i]) < 1<<28 {
						all = append(all, found{in, name.Pos()})
					}
				}
			}
			return true
		})
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			scan(d.Name.Name, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.ValueSpec); ok {
					scan(s.Names[0].Name, s)
				}
			}
		}
	}
	return all
}

// number returns the value of an expression of literals, or 0.
func number(e ast.Expr) int64 {
	n, _ := constant.Int64Val(value(e))
	return n
}

func value(e ast.Expr) constant.Value {
	switch x := e.(type) {
	case *ast.BasicLit:
		if x.Kind == token.INT {
			return constant.MakeFromLiteral(x.Value, x.Kind, 0)
		}
	case *ast.ParenExpr:
		return value(x.X)
	case *ast.BinaryExpr:
		a, b := value(x.X), value(x.Y)
		if a.Kind() != constant.Int || b.Kind() != constant.Int {
			break
		}
		switch n, _ := constant.Uint64Val(b); x.Op {
		case token.SHL:
			return constant.Shift(a, token.SHL, uint(min(n, 64)))
		case token.MUL, token.ADD, token.SUB:
			return constant.BinaryOp(a, x.Op, b)
		}
	}
	return constant.MakeUnknown()
}

// The test finds sizes, however they are written, and nothing else.
func TestCacheSizes(t *testing.T) {
	const head = "package p\n"
	for _, tt := range []struct {
		source string
		want   int
	}{
		{"const cacheBytes = 1 << 30", 1},
		{"const kept = 1024 * 1024 * 1024", 1},
		{"var most = 1 << 29", 1},
		{"func f() { left := int64(1<<30 + 2*g()) }", 1},
		{"func f() { g(256 << 20) }", 1},
		{"const (\n\ta = 1\n\theldBytes = 64 << 20\n)", 1},
		{"func f() { const frameBytes = 1 << 20 }", 1},
		{"const small = 64 << 20", 0},
		{"const rows, bytes = 7, 4096", 0},
		{"const hash = 1 << 63", 0},
		{"func f(n int) int { return n << 30 }", 0},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", head+tt.source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := cacheSizes(file); len(got) != tt.want {
			t.Errorf("%s: %d sizes, want %d", tt.source, len(got), tt.want)
		}
	}
}
