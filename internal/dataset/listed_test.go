package dataset

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
)

// makeListing lists the inputs, with paths as they are.
func makeListing(t testing.TB, path string, inputs ...string) {
	t.Helper()
	h, rows, failed, err := listing.List(inputs, listing.ListOptions{Path: func(p string) string { return p }, Pipes: context.Background()})
	if err == nil {
		err = failed
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := filelist.Write(f, h, rows); err != nil {
		t.Fatal(err)
	}
}

// A part of a listing has the names, labels and classes that it has of the images
// themselves, and knows of no other example.
func TestListedPart(t *testing.T) {
	root := tree(t, "cat/1.jpg", "cat/2.jpg", "dog/1.jpg", "eel/1.jpg", "eel/2.jpg")
	direct, err := Open([]string{root}, any24)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "files.parquet")
	makeListing(t, path, root)
	opts := any24
	for _, opts.Parted = range []bool{false, true} {
		d, err := Open([]string{path}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if s, want := d.Sources()[0], direct.Sources()[0]; s.SHA256 != want.SHA256 || s.Files != want.Files || s.Path != path {
			t.Errorf("source %+v, want that of %+v", s, want)
		}
		if diff := cmp.Diff(direct.ClassNames(), d.ClassNames()); diff != "" || d.Len() != 5 {
			t.Errorf("%d examples, classes %s", d.Len(), diff)
		}
		for _, of := range [][2]int{{0, 2}, {3, 5}, {1, 4}, {0, 5}} {
			if err := Load(d, of[0], of[1]); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(rows(t, Part(direct, of[0], of[1]), root), rows(t, Part(d, of[0], of[1]), root)); diff != "" {
				t.Errorf("parted %v, %d: %s", opts.Parted, of, diff)
			}
		}
		if err := Load(d, 2, 4); err != nil {
			t.Fatal(err)
		}
		if err := d.(Bytes).Pixels(make([]byte, 3*24*24), 0); opts.Parted != strings.Contains(fmt.Sprint(err), "not of the part") {
			t.Errorf("parted %v: example 0: %v", opts.Parted, err)
		}
	}
}

// What needs all rows to be refused is refused of a part, with the same words.
func TestListedRefused(t *testing.T) {
	root := tree(t, "classes/cat/1.jpg", "classes/dog/1.jpg", "empty/fish/x.txt", "empty/goat/1.jpg")
	write(t, filepath.Join(root, "list.csv"), []byte("classes/cat/1.jpg,3.5\nclasses/dog/1.jpg,\n"))
	for _, c := range []struct {
		input, want string
		names       []string
	}{
		{"list.csv", "label 3.5, want whole numbers", nil},
		{"classes", "not among the 1 class names", []string{"owl"}},
		{"empty", "no images in class folder", nil},
	} {
		path := filepath.Join(t.TempDir(), "files.parquet")
		makeListing(t, path, filepath.Join(root, c.input))
		opts := any24
		opts.Known.Classes = c.names
		_, whole := Open([]string{path}, opts)
		opts.Parted = true
		_, part := Open([]string{path}, opts)
		if fmt.Sprint(whole) != fmt.Sprint(part) || !strings.Contains(fmt.Sprint(whole), c.want) {
			t.Errorf("%s: %v; of a part: %v; want %s", c.input, whole, part, c.want)
		}
	}
}
