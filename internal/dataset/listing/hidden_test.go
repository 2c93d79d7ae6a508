package listing

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/names"
)

// Hidden folders, those of systems and the files ._* of macOS are left out and counted, wherever pictures are looked for. What the
// user names is read.
func TestHidden(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	var packed []string
	for _, name := range []string{"d/a/1.png", "d/b/2.png", "d/a/.ipynb_checkpoints/1-checkpoint.png", "d/.git/x.png", "d/__MACOSX/a/1.png", "d/b/@eaDir/2.png", "d/b/._2.png", "d/b/.DS_Store", "flat/._1.png", "flat/1.png"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "d/") {
			packed = append(packed, "./"+name, "x")
		}
	}
	for name, files := range map[string][]string{"d.tar": packed, "hidden.tar": {".d/1.png", "x", ".d/2.png", "x"}} {
		if err := os.WriteFile(at(name), tarOf(t, files...), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for input, want := range map[string]struct {
		files string
		left  int
	}{
		"d": {"1.png 2.png", 2}, "d.tar": {"1.png 2.png", 2}, "d/*": {"1.png 2.png", 2}, "d/b/*.png": {"2.png", 1}, "d/*/*.png": {"1.png 2.png", 2}, "flat": {"1.png", 1},
		"d/a/.ipynb_checkpoints": {"1-checkpoint.png", 0}, "d/.git/*.png": {"x.png", 0}, "hidden.tar": {"1.png 2.png", 0},
	} {
		l, err := Read([]string{at(input)}, Options{Classes: names.Reading{}})
		if err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		var got []string
		for i := range l.Len() {
			got = append(got, filepath.Base(l.Example(i).Path()))
		}
		if slices.Sort(got); strings.Join(got, " ") != want.files || len(l.LeftOut()) != want.left {
			t.Errorf("%s: %q, want %q; left out %q", input, got, want.files, l.LeftOut())
		}
	}
	if got, err := ReadClassNames(at("d")); err != nil || strings.Join(got, " ") != "a b" {
		t.Errorf("classes %q, %v", got, err)
	}
}

// A quoted path of a list may have several lines. Lines may end as on the first Macintosh computers.
func TestLinesOfLists(t *testing.T) {
	for text, want := range map[string]string{
		"path,label\n\"x\ny.png\",1\nz.png,2\n":       "x\ny.png|1 z.png|2",
		"path,label\n\"a \"\"b\"\"\n\nc.png\", 3\r\n": "a \"b\"\n\nc.png|3",
		"path,label\ra.png,1\rb.png,2\r":              "a.png|1 b.png|2",
		"\"x\r\ny.png\"\r\n\"z.png\"":                 "x\ny.png| z.png|",
	} {
		var got []string
		err := parseList(strings.NewReader(text), ".csv", newListing(true, false).headOf, func(path, label string) { got = append(got, path+"|"+label) })
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	err := parseList(strings.NewReader("path\na.png\n\"b.png\nc.png\n"), ".csv", newListing(true, false).headOf, func(string, string) {})
	if err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("an open quote: %v", err)
	}
}
