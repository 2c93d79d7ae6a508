package listing

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

func TestSplitSpace(t *testing.T) {
	for line, want := range map[string]string{
		"a.jpg":             "a.jpg",
		"a.jpg 3":           "a.jpg|3",
		"a b.JPG 3":         "a b.JPG|3",
		"a b.jpg":           "a b.jpg",
		"x.png copy.png":    "x.png copy.png",
		"a.png wolf hound":  "a.png|wolf hound",
		"photo":             "photo",
		"photo 3":           "photo 3", // no extension: a path
		"d.x/photo.tiff  0": "d.x/photo.tiff|0",
	} {
		in := plainLines{in: bufio.NewScanner(strings.NewReader(line)), ext: ".txt"}
		fields, _, err := in.next()
		if got := strings.Join(fields, "|"); got != want || err != nil {
			t.Errorf("%q: %s, %v, want %s", line, got, err, want)
		}
	}
}

// A list may be what score wrote, where names that a spreadsheet would compute have a
// quote before them.
func TestGuardedList(t *testing.T) {
	var got []string
	row := func(path, label string) { got = append(got, path+"|"+label) }
	const list = "path,label,name\n'=a.png,1,'+x\n\"'-b,c.png\",'@cat,\n''=d.png,2,\n'e.png,3,\n"
	if err := parseList(strings.NewReader(list), ".csv", newListing(true, false).headOf, row); err != nil {
		t.Fatal(err)
	}
	if want := []string{"=a.png|1", "-b,c.png|@cat", "'=d.png|2", "'e.png|3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = nil
	if err := parseList(strings.NewReader("'=a.png"), ".txt", newListing(true, false).headOf, row); err != nil || !slices.Equal(got, []string{"'=a.png|"}) {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzList(f *testing.F) {
	for _, ext := range ListExtensions {
		for _, s := range []string{"a.jpg 3\nb c.png\n", "path,label\n\"a, b.png\",1\n", "# x\n\nimage\tclass\nq.png\tcat\n", "\ufeff\"", "a.jpg,\"\"\"\"\n"} {
			f.Add([]byte(s), ext)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, ext string) {
		reliability.Heap(t, len(b), func() {
			parseList(bytes.NewReader(b), ext, newListing(true, false).headOf, func(path, label string) {
				if path == "" || len(path)+len(label) > maxLine || strings.ContainsRune(path, 0) {
					t.Fatalf("path %q, label %q", path, label)
				}
			})
		})
	})
}
