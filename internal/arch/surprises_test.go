package arch

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// Every row of docs/surprises.md names a test that exists, or says that it is open. The scripts of findings that it names exist.
func TestSurprises(t *testing.T) {
	root := os.DirFS("../..")
	page, err := fs.ReadFile(root, "docs/surprises.md")
	if err != nil {
		t.Fatal(err)
	}
	there := testNames(t, root)
	script := regexp.MustCompile(`findings/([a-z0-9-]+\.sh)`)
	for _, m := range script.FindAllStringSubmatch(string(page), -1) {
		if _, err := fs.Stat(root, "findings/"+m[1]); err != nil {
			t.Errorf("there is no findings/%s", m[1])
		}
	}
	name := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what happens |") {
			continue
		}
		rows++
		if len(cells) != 5 {
			t.Errorf("%d cells, want 5: %s", len(cells), line)
			continue
		}
		held := name.FindAllStringSubmatch(cells[4], -1)
		if len(held) == 0 && !strings.HasPrefix(cells[3], "open: ") {
			t.Errorf("no test, and not open: %s", line)
		}
		for _, m := range held {
			if !there[m[1]] {
				t.Errorf("there is no test %s: %s", m[1], line)
			}
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows were read", rows)
	}
}

// testNames returns the names of all tests as docs/surprises.md writes them: Go tests behind their package, scripts and files of pytest.
func testNames(t *testing.T, root fs.FS) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	clause := regexp.MustCompile(`(?m)^package (\w+)`)
	names := map[string]bool{}
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		base := path.Base(file)
		switch {
		case err != nil || d.IsDir():
			return err
		case path.Ext(base) == ".txtar", strings.HasPrefix(base, "test_") && path.Ext(base) == ".py":
			names[base] = true
		case strings.HasSuffix(base, "_test.go"):
			raw, err := fs.ReadFile(root, file)
			if err != nil {
				return err
			}
			in := strings.TrimSuffix(string(clause.FindSubmatch(raw)[1]), "_test")
			for _, m := range function.FindAllSubmatch(raw, -1) {
				names[in+"."+string(m[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
