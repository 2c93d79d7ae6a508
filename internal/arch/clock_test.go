package arch

import (
	"go/ast"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clocked are the tests that may look at the clock, with the reason why a slow machine does not make them fail.
var clocked = map[string]string{
	"cmd/swagwrap/combinations_test.go":  "names a line that waits for ever, in the last minute of the time that go test gives",
	"cmd/swagwrap/breed_test.go":         "looks from time to time at the processor time of a mutant",
	"cmd/swagwrap/mutants_test.go":       "tells how long mutants take, and ends one that hangs before go test ends all",
	"internal/infer/queue_test.go":       "a benchmark",
	"internal/ort/install_test.go":       "ends what does not end by itself",
	"internal/ort/session_test.go":       "ends what does not end by itself",
	"fixtures/large/large_test.go":       "tells how long networks above 2 GiB take",
	"cmd/swagwrap/killed_large_test.go":  "kills at random times, and is content with any",
	"cmd/swagwrap/million_large_test.go": "tells how long a million files take",
}

// No test depends on the clock. A busy machine would make it fail without a fault. A test stops a process at a step
// (package internal/step), counts, or measures what other programs do not change (package fixtures/reliability).
func TestNoClock(t *testing.T) {
	forbidden := map[string][]string{
		"time":    {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"},
		"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
	}
	used := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parse(path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if p, ok := s.X.(*ast.Ident); ok && slices.Contains(forbidden[p.Name], s.Sel.Name) {
				if used[name] = true; clocked[name] == "" {
					t.Errorf("%s:%d: %s.%s: a test that depends on the clock", name, positions.Position(n.Pos()).Line, p.Name, s.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range clocked {
		if !used[name] {
			t.Errorf("%s may look at the clock and does not", name)
		}
	}
}
