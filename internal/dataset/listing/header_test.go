package listing

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/target"
)

// A list whose header is name,y has the paths and the labels in these columns.
func TestBareHeader(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.png", "b.png"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"name,y\na.png,1\nb.png,0\n":          "[1 0]",
		"Name,Label\na.png,2\nb.png,0\n":      "[2 0]",
		"a.png,1\nb.png,0\n":                  "[1 0]",
		"name,y,fold\na.png,1,7\nb.png,0,8\n": "[1 0]",
	} {
		path := filepath.Join(dir, "list.csv")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		l, err := Read([]string{path}, Options{})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		labels, _, err := l.Target(target.Classes, names.Reading{})
		if got := fmt.Sprint(labels.Classes); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}
