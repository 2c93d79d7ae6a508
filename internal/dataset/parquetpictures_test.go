//go:build !noparquet

package dataset

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// pngOf returns a picture of one grey level.
func pngOf(t *testing.T, level byte) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 4, 4))
	for i := range img.Pix {
		img.Pix[i] = level
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func writeParquet[T any](t *testing.T, path string, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := parquet.NewGenericWriter[T](f, append(options, parquet.MaxRowsPerRowGroup(3))...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Pictures in Parquet have the pixels and labels of the same pictures in files.
func TestParquetPictures(t *testing.T) {
	t.Parallel()
	type picture struct {
		Bytes []byte `parquet:"bytes,optional"`
		Path  string `parquet:"path,optional"`
	}
	type structured struct {
		Image picture `parquet:"image"`
		Label int64   `parquet:"label"`
		Note  string  `parquet:"note"`
	}
	type plainBytes struct {
		Img     []byte `parquet:"img"`
		Species string `parquet:"species"`
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	labels, classes := []int64{2, 0, 1, 2, 0, 1, 0}, []string{"gnu", "cat", "dog"}
	var rows, mixed []structured
	var plain []plainBytes
	for i, label := range labels {
		b, path := pngOf(t, byte(10*i)), ""
		rows = append(rows, structured{picture{b, ""}, label, "x"})
		plain = append(plain, plainBytes{b, classes[label]})
		if i%2 == 1 { // a file of its own
			path = string(rune('a'+i)) + ".png"
			if err := os.WriteFile(at(path), b, 0o666); err != nil {
				t.Fatal(err)
			}
			b = nil
		}
		mixed = append(mixed, structured{picture{b, path}, label, "x"})
	}
	features := parquet.KeyValueMetadata("huggingface", `{"info": {"features": {"image": {"_type": "Image"}, "label": {"names": ["gnu", "cat", "dog"], "_type": "ClassLabel"}}}}`)
	writeParquet(t, at("numbers.parquet"), rows)
	writeParquet(t, at("labels.parquet"), rows, features)
	writeParquet(t, at("compressed.parquet"), rows, features, parquet.Compression(&parquet.Zstd))
	writeParquet(t, at("beside.parquet"), mixed)
	writeParquet(t, at("bytes.parquet"), plain)
	other := []string{"cat", "dog", "gnu"}
	for _, tt := range []struct {
		file  string
		named listing.Columns
		known []string
		as    names.As
		want  []string // names of classes
		order []int    // numbers of gnu, cat and dog
	}{
		{"numbers.parquet", listing.Columns{}, nil, names.Auto, nil, []int{0, 1, 2}},
		{"labels.parquet", listing.Columns{}, nil, names.Auto, classes, []int{0, 1, 2}},
		{"compressed.parquet", listing.Columns{}, nil, names.Auto, classes, []int{0, 1, 2}},
		{"labels.parquet", listing.Columns{}, other, names.Auto, other, []int{2, 0, 1}},
		{"labels.parquet", listing.Columns{}, nil, names.Numbers, nil, []int{0, 1, 2}},
		{"beside.parquet", listing.Columns{}, nil, names.Auto, nil, []int{0, 1, 2}},
		{"bytes.parquet", listing.Columns{Labels: []string{"species"}}, nil, names.Auto, other, []int{2, 0, 1}},
	} {
		opts := Options{Shape: []int64{1, 4, 4}, Preprocess: preprocess.Settings{Image: preprocess.Transform{InputSize: [2]int{4, 4}}}, Named: tt.named, LabelsAs: tt.as}
		opts.Known.Classes = tt.known
		d, err := Open([]string{at(tt.file)}, opts)
		if err != nil || d.Len() != len(labels) {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		if got := d.ClassNames(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: classes %q, want %q", tt.file, got, tt.want)
		}
		for i, label := range labels {
			pix := make([]byte, 16)
			if err := d.(Bytes).Pixels(pix, i); err != nil || pix[5] != byte(10*i) {
				t.Errorf("%s: picture %d: %v, %v", tt.file, i, pix, err)
			}
			if got := d.Labels().Classes[i]; got != tt.order[label] {
				t.Errorf("%s: label %d is %d, want %d", tt.file, i, got, tt.order[label])
			}
		}
		if notes, _ := Notes(d); strings.HasPrefix(tt.file, "labels") && !strings.Contains(strings.Join(notes, ";"), `"note"`) {
			t.Errorf("%s: notes %q", tt.file, notes)
		}
	}
	if _, _, _, err := listing.List([]string{at("numbers.parquet")}, listing.ListOptions{}); err == nil || !strings.Contains(err.Error(), "so a listing cannot point to one") {
		t.Errorf("a listing: %v", err)
	}
	writeParquet(t, at("none.parquet"), []struct{ X int64 }{{1}})
	if _, err := Open([]string{at("none.parquet")}, Options{Shape: []int64{1, 4, 4}}); err == nil || !strings.Contains(err.Error(), "Parquet file of another kind") {
		t.Errorf("no pictures: %v", err)
	}
}
