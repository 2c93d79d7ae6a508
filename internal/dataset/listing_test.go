package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
)

// write makes a file, and the folders that it is in.
func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// tree makes empty files below a new folder: names are enough for a listing.
func tree(t testing.TB, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, n := range names {
		write(t, filepath.Join(root, n), nil)
	}
	return root
}

// any24 lists images without looking at them.
var any24 = Options{Shape: []int64{3, 24, 24}}

// rows returns name and label of all examples, names relative to root.
func rows(t testing.TB, d Dataset, root string) []string {
	t.Helper()
	var out []string
	for i := range d.Len() {
		name := strings.TrimPrefix(filepath.ToSlash(d.Name(i)), filepath.ToSlash(root)+"/")
		if !d.Labels().None() {
			name = fmt.Sprintf("%s %d", name, d.Labels().Classes[i])
		}
		out = append(out, name)
	}
	return out
}

// TestImageFolder compares with torchvision.datasets.ImageFolder.
func TestImageFolder(t *testing.T) {
	g := readTransforms(t)
	root := tree(t, g.Tree...)
	d, err := Open([]string{root}, any24)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range g.Samples {
		want = append(want, fmt.Sprintf("%s %v", s[0], s[1]))
	}
	if diff := cmp.Diff(want, rows(t, d, root)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(g.Classes, d.ClassNames()); diff != "" {
		t.Error(diff)
	}
}

// TestShard compares with webdataset's reader, images' bytes included.
func TestShard(t *testing.T) {
	g := readTransforms(t)
	path := filepath.Join(imageFixtures, "transforms-shard.tar")
	d, err := Open([]string{path}, any24)
	if err != nil {
		t.Fatal(err)
	}
	if d.Len() != len(g.Shard) || d.ClassNames() != nil {
		t.Fatalf("%d examples of classes %v, want %d without names", d.Len(), d.ClassNames(), len(g.Shard))
	}
	l, err := listing.Read([]string{path}, listing.Options{})
	if err != nil {
		t.Fatal(err)
	}
	small, err := Open([]string{filepath.Join(imageFixtures, "transforms-24x24.png")}, any24)
	if err != nil {
		t.Fatal(err)
	}
	want, got := make([]byte, 3*24*24), make([]byte, 3*24*24)
	if err := small.(Bytes).Pixels(want, 0); err != nil {
		t.Fatal(err)
	}
	for i, s := range g.Shard {
		f, release, off, size, err := l.Example(i).Open()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, size)
		if _, err := f.ReadAt(b, off); err != nil {
			t.Fatal(err)
		}
		release()
		sum := sha256.Sum256(b)
		ext := filepath.Ext(d.Name(i))
		if d.Name(i) != path+"/"+s[0].(string)+ext || float64(d.Labels().Classes[i]) != s[1] || hex.EncodeToString(sum[:]) != s[2] {
			t.Errorf("%s %d %x, want %v", d.Name(i), d.Labels().Classes[i], sum, s)
		}
		if err := d.(Bytes).Pixels(got, i); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, or other pixels than the file has that went into it", d.Name(i), err)
		}
	}
}

// TestInputs: every way to name images, and mixtures of them.
func TestInputs(t *testing.T) {
	small, err := os.ReadFile(filepath.Join(imageFixtures, "transforms-24x24.png"))
	if err != nil {
		t.Fatal(err)
	}
	root := tree(t, "flat/b.png", "flat/a.jpg", "flat/c.txt", "class/dog/1.png", "class/cat/2.png", "class/cat/1.png",
		"more/emu/1.png", "more/cat/3.png", "one[1].png", "empty/none.txt", "flat2/x.gif", "flat2/sub/readme")
	at := func(names ...string) []string {
		var out []string
		for _, n := range names {
			out = append(out, filepath.Join(root, n))
		}
		return out
	}
	write(t, at("noname")[0], small)
	write(t, at("list.txt")[0], []byte("# images\n\nflat/a.jpg\nflat/b.png\r\n  a name with spaces.png  \n"))
	write(t, at("labels.txt")[0], []byte("flat/a.jpg 3\nflat/b c.png\t0\n"))
	write(t, at("names.txt")[0], []byte("flat/a.jpg wolf hound\nflat/b.png cat\n"))
	write(t, at("h.csv")[0], []byte("\ufeffid,Label,Image,x\n7,dog,\"a, b.png\",1\n8,cat,flat/b.png,2\n"))
	write(t, at("plain.csv")[0], []byte("flat/a.jpg,1\nflat/b.png,0\n"))
	write(t, at("h.tsv")[0], []byte("path\tother\nflat/a.jpg\t\nflat/b.png\t\"\n"))
	write(t, at("abs.txt")[0], []byte(at("flat/a.jpg")[0]+"\n"))
	shard, err := os.ReadFile(filepath.Join(imageFixtures, "transforms-shard.tar"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		write(t, at(fmt.Sprintf("s-%02d.tar", i))[0], shard)
	}

	tests := []struct {
		name    string
		inputs  []string
		names   []string // of classes, given
		want    string   // rows, separated by "; "
		classes string
	}{
		{"flat folder", at("flat"), nil, "flat/a.jpg; flat/b.png", ""},
		{"flat folder with others", at("flat2"), nil, "flat2/x.gif", ""},
		{"class folders", at("class"), nil, "class/cat/1.png 0; class/cat/2.png 0; class/dog/1.png 1", "cat dog"},
		{"two folders", at("more", "class"), nil, "more/cat/3.png 0; more/emu/1.png 2; class/cat/1.png 0; class/cat/2.png 0; class/dog/1.png 1", "cat dog emu"},
		{"given names", at("class"), []string{"ant", "dog", "cat"}, "class/cat/1.png 2; class/cat/2.png 2; class/dog/1.png 1", "ant dog cat"},
		{"one image", at("flat/b.png"), nil, "flat/b.png", ""},
		{"images", at("flat/b.png", "flat/a.jpg"), nil, "flat/b.png; flat/a.jpg", ""},
		{"image without extension", at("noname"), nil, "noname", ""},
		{"wildcard", at("flat/*g"), nil, "flat/a.jpg; flat/b.png", ""},
		{"wildcard in name", at("one[1].png"), nil, "one[1].png", ""},
		{"wildcard folders", at("class/*"), nil, "class/cat/1.png; class/cat/2.png; class/dog/1.png", ""},
		{"list", at("list.txt"), nil, "flat/a.jpg; flat/b.png; a name with spaces.png", ""},
		{"list with numbers", at("labels.txt"), nil, "flat/a.jpg 3; flat/b c.png 0", ""},
		{"list with names", at("names.txt"), nil, "flat/a.jpg 1; flat/b.png 0", "cat wolf hound"},
		{"csv with header", at("h.csv"), nil, "a, b.png 1; flat/b.png 0", "cat dog"},
		{"csv", at("plain.csv"), nil, "flat/a.jpg 1; flat/b.png 0", ""},
		{"csv with given names", at("plain.csv"), []string{"a", "b"}, "flat/a.jpg 1; flat/b.png 0", "a b"},
		{"tsv", at("h.tsv"), nil, "flat/a.jpg; flat/b.png", ""},
		{"absolute path", at("abs.txt"), nil, "flat/a.jpg", ""},
		{"folder and list", at("class", "h.csv"), nil, "class/cat/1.png 0; class/cat/2.png 0; class/dog/1.png 1; a, b.png 1; flat/b.png 0", "cat dog"},
		{"mixture", at("flat", "noname", "list.txt", "class/*/1.png"), nil, "flat/a.jpg; flat/b.png; noname; flat/a.jpg; flat/b.png; a name with spaces.png; class/cat/1.png; class/dog/1.png", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := any24
			opts.Known.Classes = tt.names
			d, err := Open(tt.inputs, opts)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(rows(t, d, root), "; "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := strings.Join(d.ClassNames(), " "); got != tt.classes {
				t.Errorf("classes %q, want %q", got, tt.classes)
			}
			if n := len(d.Sources()); n == 0 || d.Sources()[0].Path != tt.inputs[0] {
				t.Errorf("%d sources, first %v", n, d.Sources()[0])
			}
		})
	}
	for _, c := range [][2]string{
		{"s-{09..11}.tar", "s-09.tar s-10.tar s-11.tar"},
		{"s-0{2..3}.tar", "s-02.tar s-03.tar"},
		{"s-{0..1}{1..1}.tar", "s-01.tar s-11.tar"},
		{"s-{0..1}[3-5].tar", "s-03.tar s-04.tar s-05.tar s-13.tar"}, // the last: it takes a file away
	} {
		pattern, want := c[0], c[1]
		if pattern == "s-{0..1}[3-5].tar" {
			os.Remove(at("s-10.tar")[0])
			write(t, at("s-13.tar")[0], shard)
		}
		d, err := Open(at(pattern), any24)
		if err != nil {
			t.Error(err)
			continue
		}
		var shards []string
		for i := range d.Len() {
			name, _, _ := strings.Cut(strings.TrimPrefix(d.Name(i), root+"/"), "/")
			shards = append(shards, name)
		}
		if got := strings.Join(slices.Compact(shards), " "); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

func TestInputErrors(t *testing.T) {
	root := tree(t, "flat/b.png", "class/dog/1.png", "class/cat/2.png", "empty/none.txt", "hole/cat/1.png", "hole/dog/none.txt",
		"beside/cat/1.png", "beside/x.png", "class10/10/1.png", "file.tar", "x.npy")
	write(t, filepath.Join(root, "x.npy"), []byte("\x93NUMPY"))
	if err := os.Symlink("..", filepath.Join(root, "class10/10/loop")); err != nil {
		t.Fatal(err)
	}
	list := func(name, text string) { write(t, filepath.Join(root, name), []byte(text)) }
	list("number.txt", "a.png 1\n")
	list("half.txt", "a.png 1\n\n\nb.png\n")
	list("negative.txt", "a.png -2\nb.png 2\n")
	list("dog.txt", "a.png dog\n")
	list("empty.csv", "path,label\n")
	list("columns.csv", "a.png,1\nb.png,1,2\n")
	list("quote.csv", "a.png,1\n\"b.png,1\n")
	list("nopath.csv", "a.png,1\n,1\n")
	list("url.txt", "#\nhttps://example.org/a.png\n")
	list("binary.txt", "\x00\x01\x02\n")
	list("long.txt", "a.png\n"+strings.Repeat("x", 64<<10+1))
	shard, err := os.ReadFile(filepath.Join(imageFixtures, "transforms-shard.tar"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "cut.tar"), shard[:1000])
	write(t, filepath.Join(root, "shard.tgz"), gzipped(shard))
	write(t, filepath.Join(root, "none.tar"), tarOf(t, "k.txt", "x"))

	tests := []struct {
		inputs []string
		names  []string
		want   string
	}{
		{[]string{"nothing"}, nil, "nothing: no such file or directory"},
		{[]string{"flat", "nothing"}, nil, "nothing: no such file or directory"},
		{[]string{"*.jpg"}, nil, "*.jpg: no file matches"},
		{[]string{"**/*.png"}, nil, "**/*.png: ** is not understood: name the folder itself"},
		{[]string{"a-{2..1}.tar"}, nil, "a-{2..1}.tar: range {2..1}, want it to go upwards"},
		{[]string{"a-{0..9999}{0..9999}.tar"}, nil, "and to make at most 1048576 names"},
		{[]string{"a-{0..1}.tar"}, nil, "a-0.tar: no such file or directory"},
		{[]string{"empty"}, nil, "empty: no images in this folder, want files named .jpg"},
		{[]string{"hole"}, nil, "hole: no images in class folder dog: fill it, remove it, or give a list of class names"},
		{[]string{"beside"}, nil, "beside: x.png and 0 other images are next to class folders such as cat"},
		{[]string{"x.npy", "flat"}, nil, "x.npy: an array, want it as the only input"},
		{[]string{"flat", "class"}, nil, "flat/b.png: no label, but "},
		{[]string{"half.txt", "flat"}, nil, "b.png: no label, but "},
		{[]string{"class", "number.txt"}, nil, `a.png: class 1, a number, where others have names such as "cat"`},
		{[]string{"class"}, []string{"cat"}, `class/dog/1.png: class "dog" is not among the 1 class names`},
		{[]string{"class"}, []string{"cat", "dog", "dog"}, `class/dog/1.png: two classes are named "dog"`},
		{[]string{"number.txt"}, []string{"cat"}, "a.png: class 1, and there are 1 class names"},
		{[]string{"negative.txt"}, nil, `a.png: label -2, want a class from 0 up, or a name`},
		{[]string{"empty.csv"}, nil, "empty.csv: no images, want some"},
		{[]string{"columns.csv"}, nil, "columns.csv: line 2: 3 columns, want 2"},
		{[]string{"quote.csv"}, nil, "quote.csv: line 2, column "},
		{[]string{"nopath.csv"}, nil, "nopath.csv: line 2: no path"},
		{[]string{"url.txt"}, nil, `url.txt: line 2: "https://example.org/a.png" is a URL, want the path of a file`},
		{[]string{"binary.txt"}, nil, "binary.txt: line 1: "},
		{[]string{"long.txt"}, nil, "long.txt: line 2: longer than 65536 bytes"},
		{[]string{"cut.tar"}, nil, "cut.tar: "},
		{[]string{"shard.tgz"}, nil, "shard.tgz: a compressed tar, and images are read from where they lie in it: unpack it with gunzip"},
		{[]string{"file.tar"}, nil, "file.tar: truncated: it does not end in an empty block"},
		{[]string{"none.tar"}, nil, "none.tar: no images, want some"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.inputs, " "), func(t *testing.T) {
			var inputs []string
			for _, in := range tt.inputs {
				inputs = append(inputs, filepath.Join(root, in))
			}
			opts := any24
			opts.Known.Classes = tt.names
			_, err := Open(inputs, opts)
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), root+"/", "")
			if !strings.Contains(got, tt.want) || !strings.HasPrefix(err.Error(), root) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	if _, err := Open(nil, Options{}); err == nil {
		t.Error("no inputs: no error")
	}
	// An empty class is no error where the names are given.
	opts := any24
	opts.Known.Classes = []string{"dog", "cat"}
	if d, err := Open([]string{filepath.Join(root, "hole")}, opts); err != nil || d.Labels().Classes[0] != 1 {
		t.Error(err)
	}
}

// TestLinks: links to images and folders are followed, a broken one is a row.
func TestLinks(t *testing.T) {
	root := tree(t, "class/cat/1.png", "elsewhere/2.png")
	for name, to := range map[string]string{"cat/link.png": "1.png", "cat/broken.png": "none", "dog": "../elsewhere"} {
		if err := os.Symlink(to, filepath.Join(root, "class", name)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Open([]string{filepath.Join(root, "class")}, any24)
	if err != nil {
		t.Fatal(err)
	}
	want := "class/cat/1.png 0; class/cat/broken.png 0; class/cat/link.png 0; class/dog/2.png 1"
	if got := strings.Join(rows(t, d, root), "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestListingSource: the hash depends on names, sizes and labels, not on where
// the folder lies or when the files were written.
func TestListingSource(t *testing.T) {
	sum := func(names map[string]string, inputs ...string) []Source {
		root := t.TempDir()
		for n, data := range names {
			write(t, filepath.Join(root, n), []byte(data))
		}
		var in []string
		for _, i := range inputs {
			in = append(in, filepath.Join(root, i))
		}
		d, err := Open(in, any24)
		if err != nil {
			t.Fatal(err)
		}
		s := d.Sources()
		for i := range s {
			s[i].Path = strings.TrimPrefix(s[i].Path, root+"/")
		}
		return s
	}
	base := map[string]string{"d/a/1.png": "x", "d/b/2.png": "yy"}
	want := sha256.Sum256([]byte("a/1.png\x001\x00a\nb/2.png\x002\x00b\n"))
	first := sum(base, "d")
	if diff := cmp.Diff([]Source{{Path: "d", Kind: "listing", SHA256: hex.EncodeToString(want[:]), Files: 2}}, first); diff != "" {
		t.Error(diff)
	}
	for name, other := range map[string]map[string]string{
		"size": {"d/a/1.png": "xx", "d/b/2.png": "yy"}, "name": {"d/a/1.png": "x", "d/b/3.png": "yy"},
		"class": {"d/a/1.png": "x", "d/c/2.png": "yy"}, "more": {"d/a/1.png": "x", "d/b/2.png": "yy", "d/b/3.png": ""},
	} {
		if sum(other, "d")[0].SHA256 == first[0].SHA256 {
			t.Errorf("another %s, and the same hash", name)
		}
	}
	// Images given one by one are one source.
	loose := map[string]string{"1.png": "", "2.png": "", "3.png": "", "d/4.png": ""}
	got := sum(loose, "1.png", "2.png", "d", "3.png")
	if len(got) != 3 || got[0].Path != "1.png" || got[0].Files != 2 || got[1].Files != 1 || got[2].Path != "3.png" {
		t.Error(got)
	}
}

// TestLabelsFile: labels of a flat folder from an array.
func TestLabelsFile(t *testing.T) {
	root := tree(t, "1.png", "2.png", "3.png", "4.png", "5.png")
	opts := any24
	opts.Labels = td("y_u1.npy")
	d, err := Open([]string{root}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(labels127, d.Labels().Classes); diff != "" || len(d.Sources()) != 2 {
		t.Error(diff, d.Sources())
	}
	opts.Known.Classes = []string{"a", "b"}
	if _, err := Open([]string{root}, opts); err == nil || !strings.HasSuffix(err.Error(), "y_u1.npy: label 0 is 3, and there are 2 class names") {
		t.Error(err)
	}
	opts.Labels = td("y_short.npy")
	if _, err := Open([]string{root}, opts); err == nil || !strings.Contains(err.Error(), "4 labels for 5 examples") {
		t.Error(err)
	}
}

// TestListingMemory: names are all that is kept of an image.
func TestListingMemory(t *testing.T) {
	const n = 200_000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "n%08d/n%08d_%d.JPEG %d\n", i%1000, i%1000, i, i%1000)
	}
	path := filepath.Join(t.TempDir(), "list.txt")
	write(t, path, []byte(b.String()))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools hold survives one
	runtime.ReadMemStats(&before)
	d, err := Open([]string{path}, any24)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	perImage := float64(after.HeapAlloc-before.HeapAlloc) / n
	t.Logf("%.0f bytes an image", perImage)
	if d.Len() != n || perImage > 130 {
		t.Errorf("%.0f bytes an image, want at most 130: names of 31 characters, 8 bytes of label", perImage)
	}
	runtime.KeepAlive(d)
}

// TestUnlisted: a link back to where it is, and a folder that may not be read, are
// examples with an error, and cost no other its place or label.
func TestUnlisted(t *testing.T) {
	picture, err := os.ReadFile(filepath.Join(imageFixtures, "transforms-24x24.png"))
	if err != nil {
		t.Fatal(err)
	}
	const loop = "a link to a folder that it is in"
	for _, tt := range []struct {
		name  string
		files []string
		links map[string]string
		names []string
		want  []string // path, label, and where it cannot be read why
	}{
		{"flat", []string{"a.png"}, map[string]string{"me": ".", "self.png": "self.png"}, nil,
			[]string{"me: " + loop, "a.png", "self.png: too many levels of symbolic links"}},
		{"in a class", []string{"a/x/1.png", "c/1.png"}, map[string]string{"a/back": "..", "c/x": "../a/x"}, nil,
			[]string{"a/back 0: " + loop, "a/x/1.png 0", "c/1.png 1", "c/x/1.png 1"}},
		{"beside classes, by number", []string{"a/1.png", "c/1.png"}, map[string]string{"b": "."}, nil,
			[]string{"a/1.png 0", "b 1: " + loop, "c/1.png 2"}},
		{"beside classes, by name", []string{"a/1.png", "c/1.png"}, map[string]string{"b": "."}, []string{"c", "a"},
			[]string{"a/1.png 1", "b -1: " + loop, "c/1.png 0"}},
	} {
		root := t.TempDir()
		for _, name := range tt.files {
			write(t, filepath.Join(root, name), picture)
		}
		for name, to := range tt.links {
			if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
		opts := any24
		opts.Known.Classes = tt.names
		d, err := Open([]string{root}, opts)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var got []string
		for i := range d.Len() {
			row := strings.TrimPrefix(d.Name(i), root+"/")
			if !d.Labels().None() {
				row += fmt.Sprint(" ", d.Labels().Classes[i])
			}
			if err := d.Read(Floats(make([]float32, 3*24*24)), i); err != nil {
				row += strings.TrimPrefix(err.Error(), d.Name(i))
			}
			got = append(got, row)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
