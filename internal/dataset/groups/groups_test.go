package groups

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/dataset/keys"
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
		group, err := Parse(test.how, keys.Examples{Len: 3})
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
		_, err := Parse(how, keys.Examples{Len: 3})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", how, err, want)
		}
		if bad := (*FormError)(nil); errors.As(err, &bad) == strings.Contains(how, ".csv") {
			t.Errorf("%s: %T", how, err)
		}
	}
	if _, err := Parse(filepath.Join(dir, "rows.csv")+":site", keys.Examples{Len: 4}); err == nil || !strings.Contains(err.Error(), "3 rows for 4 examples") {
		t.Errorf("error %v", err)
	}
}

// A row names an example by the last element of its path, with or without the extension, if that is clear.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "id.csv"), "image_id,site\nb,B\na,A\n")
	write(t, filepath.Join(dir, "file.csv"), "filename,site\nb.png,B\na.png,A\n")
	write(t, filepath.Join(dir, "other.csv"), "id,site\n7,B\n8,A\n")
	parse := func(table string, examples ...string) (string, error) {
		group, err := Parse(filepath.Join(dir, table)+":site", keys.Examples{Len: len(examples), Name: func(i int) string { return examples[i] }})
		if err != nil {
			return "", err
		}
		out := ""
		for i, name := range examples {
			out += group(i, name)
		}
		return out, nil
	}
	for _, tt := range []struct {
		table    string
		examples []string
		want     string
	}{
		{"id.csv", []string{"x/a.png", "x/b.png"}, "AB"},
		{"file.csv", []string{"x/a.png", "x/b.png"}, "AB"},
		{"id.csv", []string{"x/a.png", "x/c.png"}, "no row has the image_id x/c.png"},
		{"id.csv", []string{"x/a.png", "y/a.png"}, `image_id "a" may be x/a.png or y/a.png`},
		{"other.csv", []string{"x.npz[0]", "x.npz[1]"}, "BA"}, // the column names no example: rows are in order
	} {
		got, err := parse(tt.table, tt.examples...)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s, %q: %s, want %s", tt.table, tt.examples, got, tt.want)
		}
	}
}

// FuzzParse: no table and no expression makes a panic, or takes much memory. What Parse returns has a group for each example.
func FuzzParse(f *testing.F) {
	for k, table := range []string{"site,x\nA,1\nB,2\n,3\n", "file\tsite\na.png\tA\n", "{\"path\": \"a\", \"site\": [1, 2]}\n{\"site\": null}\n"} {
		f.Add([]byte(table), "site", uint8(k), "a.png", 3)
	}
	f.Add([]byte("a,b\n1,\"2"), "b", uint8(0), "", 1)
	f.Add([]byte("(p[0-9]+)_"), "", uint8(3), "x/p12_3.png", 2)
	f.Add([]byte("folder:9"), "", uint8(3), "/", 1)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte, column string, k uint8, name string, examples int) {
		examples = min(max(examples, 1), 50)
		how := string(content)
		if ext := []string{".csv", ".tsv", ".jsonl", ""}[k%4]; ext != "" {
			path := filepath.Join(dir, "x"+ext)
			if err := os.WriteFile(path, content, 0o666); err != nil {
				t.Fatal(err)
			}
			how = path + ":" + column
		}
		reliability.Heap(t, 25*len(content), func() {
			group, err := Parse(how, keys.Examples{Len: examples, Name: func(int) string { return name }})
			for i := 0; err == nil && i < examples; i++ {
				group(i, name)
			}
		})
	})
}
