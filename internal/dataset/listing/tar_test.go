package listing

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// tarOf makes a tar of files, given as name, content, name, content ...
func tarOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		h := &tar.Header{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o644, Typeflag: tar.TypeReg}
		if strings.HasSuffix(files[i], "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(files[i+1]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// index returns what indexTar finds: name, label and content. A minus precedes the names of pictures that are left out.
func index(b []byte) (string, error) {
	var out []string
	rows, left, err := indexTar(bytes.NewReader(b), int64(len(b)), true)
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%s=%s:%s", r.name, r.label, b[r.off:r.off+r.size]))
	}
	for _, kind := range slices.Sorted(maps.Keys(left)) {
		for _, name := range left[kind] {
			out = append(out, "-"+name)
		}
	}
	return strings.Join(out, " "), err
}

func TestIndexTar(t *testing.T) {
	long := strings.Repeat("d/", 200) + "k.jpg"
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{"class first", []string{"k.cls", "3\n", "k.jpg", "J"}, "k.jpg=3:J"},
		{"class last", []string{"k.jpg", "J", "k.cls", "3"}, "k.jpg=3:J"},
		{"json", []string{"k.json", `{"label":12}`, "k.jpeg", "J", "l.json", `{"label":"cat"}`, "l.png", "P"}, "k.jpeg=12:J l.png=cat:P"},
		{"cls before json", []string{"k.json", `{"label":1}`, "k.jpg", "J", "k.cls", "2"}, "k.jpg=2:J"},
		{"json without label", []string{"k.json", `{"caption":"x","label":null}`, "k.jpg", "J"}, "k.jpg=:J"},
		{"other files", []string{"k.txt", "x", "k.jpg", "J", "k.seg.png", "S", "l.txt", "none", "m.WebP", "W"}, "k.jpg=:J m.WebP=:W -k.seg.png"},
		{"folders", []string{"a/", "", "a/k.jpg", "J", "b.c/", "", "b.c/k.jpg", "K"}, "a/k.jpg=:J b.c/k.jpg=:K"},
		{"hidden", []string{"._k.jpg", "mac", "k.jpg", "J", ".png", "x"}, "k.jpg=:J -._k.jpg"},
		{"long name", []string{long, "J"}, long + "=:J"},
		{"key again", []string{"k.jpg", "J", "l.jpg", "L", "k.png", "P"}, "k.jpg=:J l.jpg=:L k.png=:P"},

		// Not written for WebDataset.
		{"dots", []string{"scan.01.png", "A", "scan.01.cls", "1", "scan.02.png", "B", "scan.02.cls", "0"}, "scan.01.png=1:A scan.02.png=0:B"},
		{"some dots", []string{"0.png", "A", "0.cls", "1", "IMG_1.2.jpg", "B", "IMG_1.2.cls", "0", "1.png", "C", "1.cls", "2"}, "0.png=1:A IMG_1.2.jpg=0:B 1.png=2:C"},
		{"dots and json", []string{"a.b.c.json", `{"label":4}`, "a.b.c.png", "A", "a.b.d.png", "B", "a.b.d.json", `{"label":5}`}, "a.b.c.png=4:A a.b.d.png=5:B"},
		{"versions", []string{"0.png", "A", "0.cls", "1", "0.v2.png", "B", "0.v2.cls", "2", "1.png", "C", "1.cls", "0", "1.v2.png", "D", "1.v2.cls", "3"}, "0.png=1:A 0.v2.png=2:B 1.png=0:C 1.v2.png=3:D"},
		{"dots without labels", []string{"scan.01.png", "A", "scan.02.png", "B", "cam.01.png", "C"}, "scan.01.png=:A scan.02.png=:B cam.01.png=:C"},
		{"a folder with dots", []string{"v1.0/scan.01.png", "A", "v1.0/scan.02.png", "B"}, "v1.0/scan.01.png=:A v1.0/scan.02.png=:B"},
		{"a broken label nobody needs", []string{"k.meta.json", "{", "k.jpg", "J", "k.cls", "1"}, "k.jpg=1:J"},
		{"a broken label of a dotted picture", []string{"k.1.json", "{", "k.1.jpg", "J"}, `"k.1.json": unexpected end of JSON input`},
		{"two dotted images", []string{"k.1.jpg", "J", "k.1.png", "P"}, `"k.1.png": a second image of example "k.1", besides "k.1.jpg", want one`},
		// Written for WebDataset.
		{"masks", []string{"0.jpg", "A", "0.seg.png", "a", "0.cls", "1", "1.jpg", "B", "1.seg.png", "b", "1.cls", "2"}, "0.jpg=1:A 1.jpg=2:B -0.seg.png -1.seg.png"},
		{"views", []string{"0.left.png", "A", "0.right.png", "a", "0.cls", "1", "1.left.png", "B", "1.right.png", "b", "1.cls", "2"}, "0.left.png=1:A 0.right.png=1:a 1.left.png=2:B 1.right.png=2:b"},
		{"one picture with a part", []string{"0.rgb.png", "A", "0.cls", "1", "1.rgb.png", "B", "1.cls", "2"}, "0.rgb.png=1:A 1.rgb.png=2:B"},
		{"frames beside a picture", []string{"0.jpg", "A", "0.f1.png", "a", "1.jpg", "B", "1.f1.png", "b"}, "0.jpg=:A 1.jpg=:B -0.f1.png -1.f1.png"},

		{"two images", []string{"k.jpg", "J", "k.png", "P"}, `"k.png": a second image of example "k", besides "k.jpg", want one`},
		{"empty class", []string{"k.jpg", "J", "k.cls", " "}, `"k.cls": empty, want a class`},
		{"long class", []string{"k.jpg", "J", "k.cls", strings.Repeat("1", 300)}, `"k.cls": longer than 256 bytes`},
		{"bad json", []string{"k.jpg", "J", "k.json", "{"}, `"k.json": unexpected end of JSON input`},
		{"list as label", []string{"k.jpg", "J", "k.json", `{"label":[1]}`}, `"k.json": label [1], want a number or a string`},
		{"very long name", []string{strings.Repeat("d/", 2100) + "k.jpg", "J"}, "a name of 4205 bytes, want at most 4096"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := index(tarOf(t, tt.files...))
			if err != nil {
				got = err.Error()
			}
			if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestIndexTarTruncated cuts a tar anywhere, between files too. Of the two empty
// blocks at the end one is enough.
func TestIndexTarTruncated(t *testing.T) {
	b := tarOf(t, "k.jpg", strings.Repeat("J", 700), "k.cls", "1", "l.jpg", "L")
	for n := range len(b) - 512 {
		if got, err := index(b[:n]); err == nil {
			t.Fatalf("cut to %d of %d bytes: no error but %.40s", n, len(b), got)
		}
	}
	for _, n := range []int{len(b) - 512, len(b)} {
		if got, err := index(b[:n]); err != nil || !strings.HasSuffix(got, " l.jpg=:L") {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(b), err)
		}
	}
}

// TestSparse: GNU tar leaves out holes, so the bytes are not in one piece.
func TestSparse(t *testing.T) {
	old := tarOf(t, "k.jpg", "J")
	h := old[:512]
	h[156] = tar.TypeGNUSparse
	copy(h[257:], "ustar  \x00") // GNU's magic
	copy(h[386:], fmt.Sprintf("%011o\x00%011o\x00", 0, 1))
	copy(h[483:], fmt.Sprintf("%011o\x00", 1))
	sum := 0
	copy(h[148:156], "        ")
	for _, v := range h {
		sum += int(v)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	if got, err := index(old); err == nil || !strings.Contains(err.Error(), `"k.jpg": a sparse file`) {
		t.Errorf("%s, %v", got, err)
	}
	// PAX: the names that archive/tar hides.
	if !sparse(&tar.Header{PAXRecords: map[string]string{"GNU.sparse.major": "1"}}) || sparse(&tar.Header{PAXRecords: map[string]string{"path": "x"}}) {
		t.Error("PAX records of a sparse file")
	}
}

func FuzzTar(f *testing.F) {
	b, err := os.ReadFile("../../../fixtures/images/transforms-shard.tar")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(tarOf(f, "k.json", `{"label":"x"}`, "k.jpg", "J", "k.cls", "1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		reliability.Heap(t, len(b), func() {
			rows, _, _ := indexTar(bytes.NewReader(b), int64(len(b)), true)
			for _, r := range rows {
				if r.off < 0 || r.size < 0 || r.off+r.size > int64(len(b)) || r.name == "" || len(r.name) > maxTarName {
					t.Fatalf("%+v, of %d bytes", r, len(b))
				}
			}
		})
	})
}
