package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program in docs/go.md must compile with the current library.
func TestProgram(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "go.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(page), "\n```go\n")
	program, _, ok := strings.Cut(program, "\n```\n")
	if !ok {
		t.Fatal("docs/go.md shows no program")
	}
	path := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(path, []byte(program+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "vet", path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
