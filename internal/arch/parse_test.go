package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"sync"
)

// parsed holds the files that a test has asked for, so that each is parsed once for all tests. positions has their lines.
var (
	parsed    sync.Map
	positions = token.NewFileSet()
)

// parse parses a file with its comments. Nobody changes the result.
func parse(path string) (*ast.File, error) {
	read, _ := parsed.LoadOrStore(filepath.Clean(path), sync.OnceValues(func() (*ast.File, error) {
		return parser.ParseFile(positions, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	}))
	return read.(func() (*ast.File, error))()
}
