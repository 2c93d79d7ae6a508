package table

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
)

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".gz") {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write([]byte(content))
		w.Close()
		content = b.String()
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// The parts of a table are read one after the other, their columns by name, and gzip changes nothing.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, at("spark/part-00000.csv"), "a,b\n1,x\n2,y\n")
	writeFile(t, at("spark/part-00001.csv.gz"), "b,a\nz,3\n")
	writeFile(t, at("spark/_SUCCESS"), "")
	writeFile(t, at("spark/.part-00000.csv.crc"), "x")
	for k := range 11 {
		writeFile(t, at(fmt.Sprintf("counted/part-%d.csv", k)), fmt.Sprintf("a,b\n%d,x\n", k))
	}
	writeFile(t, at("splits/part-train-0.csv"), "a\n1\n")
	writeFile(t, at("splits/part-test-0.csv"), "a\n1\n")
	writeFile(t, at("columns/part-0.csv"), "a\n1\n")
	writeFile(t, at("columns/part-1.csv"), "b\n1\n")
	writeFile(t, at("lists/left.csv"), "path\na.png\n")
	writeFile(t, at("mixed/part-0.csv"), "a\n1\n")
	writeFile(t, at("mixed/a.png"), "")
	for _, tt := range []struct {
		path  string
		order fileorder.Order
		want  string // the column a, or a part of the error
		doubt bool
	}{
		{"spark", "", "[1 2 3]", false},
		{"spark/part-00001.csv.gz", "", "[3]", false},
		{"counted", "", "[0 1 10 2 3 4 5 6 7 8 9]", true},
		{"counted", fileorder.Text, "[0 1 10 2 3 4 5 6 7 8 9]", false},
		{"counted", fileorder.Number, "[0 1 2 3 4 5 6 7 8 9 10]", false},
		{"splits", "", "may be of different sets", false},
		{"columns", "", "want the same in all files", false},
	} {
		if !Is(at(tt.path)) {
			t.Errorf("%s: is no table", tt.path)
		}
		in, err := Open(at(tt.path))
		got := fmt.Sprint(err)
		if err == nil {
			doubt := in.Arrange(tt.order)
			columns, err := in.Read([]string{"b"}, []string{"a"})
			if err != nil {
				t.Fatalf("%s: %v", tt.path, err)
			}
			got = fmt.Sprint(columns["a"].Ints)
			if in.Rows != len(columns["b"].Texts) || len(in.SHA256) != 64 {
				t.Errorf("%s: %d rows, sum %q", tt.path, in.Rows, in.SHA256)
			}
			if inDoubt := doubt != nil && doubt() != nil; inDoubt != tt.doubt {
				t.Errorf("%s: in doubt: %v", tt.path, inDoubt)
			}
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.path, got, tt.want)
		}
	}
	for _, path := range []string{"lists", "mixed", "none", "."} {
		if Is(at(path)) {
			t.Errorf("%s: is a table", path)
		}
	}
	writeFile(t, at("cut.csv.gz"), strings.Repeat("a\n", 9999))
	b, err := os.ReadFile(at("cut.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("cut.csv.gz"), b[:len(b)/2], 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(at("cut.csv.gz")); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("a file that is cut off: %v", err)
	}
}
