package groups

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rows.csv"), "site,x\nA,1\nB,2\n,3\n")
	write(t, filepath.Join(dir, "named.csv"), "file,site\na.png,A\nb/c.png,B\n")
	write(t, filepath.Join(dir, "twice.csv"), "path,site\na.png,A\na.png,B\n")
	for _, test := range []struct {
		how, name string
		i         int
		want      string
	}{
		{"folder", "x/y/1.png", 0, "x/y"},
		{"folder:2", "x/y/1.png", 0, "x"},
		{"/(p[0-9]+)_", "x/p12_3.png", 0, "p12"},
		{"/(p[0-9]+)_", "x/q12_3.png", 0, ""},
		{filepath.Join(dir, "rows.csv") + ":site", "any", 1, "B"},
		{filepath.Join(dir, "rows.csv") + ":site", "any", 2, ""},
		{filepath.Join(dir, "named.csv") + ":site", filepath.Join(dir, "b/c.png"), 7, "B"},
		{filepath.Join(dir, "named.csv") + ":site", "./a.png", 7, "A"},
		{filepath.Join(dir, "named.csv") + ":site", filepath.Join(dir, "named.csv") + "[1]", 1, "B"},
	} {
		group, err := Parse(test.how, 3, nil)
		if err != nil {
			t.Errorf("%s: %v", test.how, err)
		} else if got := group(test.i, test.name); got != test.want {
			t.Errorf("%s: %s has the group %q, want %q", test.how, test.name, got, test.want)
		}
	}
	for how, want := range map[string]string{
		"site": "parentheses", "(": "missing closing", "folder:0": "parentheses",
		filepath.Join(dir, "rows.csv") + ":y":     `no column "y"`,
		filepath.Join(dir, "none.csv") + ":site":  "none.csv",
		filepath.Join(dir, "twice.csv") + ":site": "row 1",
	} {
		_, err := Parse(how, 3, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", how, err, want)
		}
		if bad := (*FormError)(nil); errors.As(err, &bad) == strings.Contains(how, ".csv") {
			t.Errorf("%s: %T", how, err)
		}
	}
	if _, err := Parse(filepath.Join(dir, "rows.csv")+":site", 4, nil); err == nil || !strings.Contains(err.Error(), "3 rows for 4 examples") {
		t.Errorf("error %v", err)
	}
}
