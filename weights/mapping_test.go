package weights

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMapFile(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"some": "content", "empty": ""} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := MapFile(f)
		if err != nil || string(m.Data) != content || m.Path != path {
			t.Errorf("%s: %+v, %v", name, m, err)
			continue
		}
		for range 2 {
			if err := m.Close(); err != nil || m.Data != nil {
				t.Errorf("%s: after Close %+v, %v", name, m, err)
			}
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := MapFile(f); err == nil || !strings.Contains(err.Error(), dir+": not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}
