package dataset

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// A row without a label is one without, in each format, and the other labels are the same numbers. It is counted once.
func TestMissingLabels(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.png", "b.png", "c.png"} {
		writePNG(t, filepath.Join(dir, name), 2, 2, 3, make([]byte, 12))
	}
	var archive bytes.Buffer
	z := numpy.NewArchive(&archive)
	for name, values := range map[string][]float64{"images": {1, 2, 3}, "labels": {10, math.NaN(), 2}} {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		w.Write(npy("<f8", values, map[string][]int{"images": {3, 1}, "labels": {3}}[name]...))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	pictures, table := Options{Shape: []int64{3, 2, 2}}, Options{Fields: []Field{floats("x", 1)}}
	type file struct {
		name string
		of   Options
		text string
	}
	files := []file{{"floats.npz", Options{Shape: []int64{1}}, archive.String()}}
	for _, missing := range []string{"", "NaN", "nan", "NA", "<NA>", "null"} {
		files = append(files,
			file{"list.csv", pictures, "path,label\na.png,10.0\nb.png," + missing + "\nc.png,2.0\n"},
			file{"list.csv", pictures, "path;label\na.png;10\nb.png;" + missing + "\nc.png;02\n"},
			file{"list.tsv", pictures, "path\tlabel\na.png\t10.0\nb.png\t" + missing + "\nc.png\t2.0\n"},
			file{"list.txt", pictures, "a.png 10\nb.png " + missing + "\nc.png 2\n"},
			file{"table.csv", table, "x,label\n1,10.0\n2," + missing + "\n3,2.0\n"},
			file{"table.csv", table, "x;label\n1;10.0\n2;" + missing + "\n3;2.0\n"},
			file{"table.tsv", table, "x\tlabel\n1\t10.0\n2\t" + missing + "\n3\t2.0\n"},
			file{"table.jsonl", table, fmt.Sprintf(`{"x":1,"label":10.0}`+"\n"+`{"x":2,"label":%q}`+"\n"+`{"x":3,"label":"2.0"}`+"\n", missing)},
		)
	}
	files = append(files, file{"table.jsonl", table, `{"x":1,"label":10.0}` + "\n" + `{"x":2,"label":null}` + "\n" + `{"x":3,"label":2.0}` + "\n"})
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		write(t, path, []byte(f.text))
		d, err := Open([]string{path}, f.of)
		if err != nil || !slices.Equal(d.Labels().Classes, []int{10, -1, 2}) {
			t.Errorf("%s %q: %v, %v", f.name, f.text, d, err)
			continue
		}
		if first, n := Bare(d); first != 1 || n != 1 {
			t.Errorf("%s: %d without a label, first %d", f.name, n, first)
		}
		if notes, doubts := Notes(d); !strings.Contains(strings.Join(notes, ";"), "no label: 1 of 3 examples, such as "+d.Name(1)) || len(doubts) > 0 || d.ClassNames() != nil {
			t.Errorf("%s %q: notes %q, doubts %q, names %q", f.name, f.text, notes, doubts, d.ClassNames())
		}
	}
}

// Among names, nan and na are names. So they are where the names of classes have them.
func TestMissingIsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	for _, c := range []struct {
		labels string
		known  []string
		as     names.As
		want   []int
	}{
		{"cat,nan,dog", nil, names.Auto, []int{0, 2, 1}},
		{"1,nan,0", []string{"0", "1", "nan"}, names.Auto, []int{1, 2, 0}},
		{"1,nan,0", nil, names.Names, []int{1, 2, 0}},
		{"cat,,dog", nil, names.Auto, []int{0, -1, 1}},
		{"1,nan,0", []string{"no", "yes"}, names.Auto, []int{1, -1, 0}},
	} {
		l := strings.Split(c.labels, ",")
		write(t, path, fmt.Appendf(nil, "x,label\n1,%s\n2,%s\n3,%s\n", l[0], l[1], l[2]))
		o := Options{Fields: []Field{floats("x", 1)}, LabelsAs: c.as, Named: listing.Columns{}}
		o.Known.Classes = c.known
		d, err := Open([]string{path}, o)
		if err != nil || !slices.Equal(d.Labels().Classes, c.want) {
			t.Errorf("%s: %v, %v", c.labels, d, err)
		}
	}
}
