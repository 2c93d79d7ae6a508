package dataset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// Row numbers of a table are within it, whatever type the input and the array have. Keras
// declares token ids as float32, and casts them.
func TestRowNumbers(t *testing.T) {
	for _, tt := range []struct {
		input, array string
		values       []float64
		err          string
	}{
		{"int64", "<i8", []float64{0, 4, 1, 2}, ""},
		{"int64", "<i8", []float64{0, 1, -1, 2}, "element [0] of example 1 is -1, want 0 to 4"},
		{"int32", "<i2", []float64{0, 5, 1, 2}, "element [1] of example 0 is 5, want 0 to 4"},
		{"float32", "<i8", []float64{0, 1, 2, 5}, "element [1] of example 1 is 5, want 0 to 4"},
		{"float32", "<f4", []float64{0, 4.5, 1, -0.5}, ""}, // a cast cuts the fraction off
		{"float32", "<f4", []float64{0, 1, 2, 5}, "element [1] of example 1 is 5, want 0 to 4"},
		{"float32", "<f8", []float64{0, -1, 2, 3}, "element [1] of example 0 is -1, want 0 to 4"},
	} {
		path := arraysIn(t, filepath.Join(t.TempDir(), "x.npz"), map[string][]byte{"ids": npy(tt.array, tt.values, 2, 2)})
		opts := Options{Fields: []Field{{Name: "ids", Shape: []int64{-1}, Dims: []string{""}, Type: tt.input, Rows: 5}}, Shape: []int64{-1},
			Preprocess: preprocess.Settings{Mean: []float64{7}, Std: []float64{9}}} // ids are never normalised
		d, err := Open([]string{path}, opts)
		var got []float32
		for i := 0; err == nil && i < 2; i++ {
			row := opts.Fields[0]
			row.Shape = []int64{2}
			v := row.Size().Make(1)
			err = d.Read(v, i)
			got = v.Floats
			for _, id := range v.Ints {
				got = append(got, float32(id))
			}
		}
		wantError(t, tt.input+" "+tt.array, err, tt.err)
		if err == nil && !slices.Equal(got, []float32{float32(tt.values[2]), float32(tt.values[3])}) {
			t.Errorf("%s from %s: read %v of %v", tt.input, tt.array, got, tt.values)
		}
	}
}

// The filler of short lists is a row number too.
func TestRowNumbersInTables(t *testing.T) {
	field := []Field{{Name: "ids", Shape: []int64{-1}, Dims: []string{"n"}, Type: "int64", Rows: 5}}
	for _, tt := range []struct {
		rows string
		pad  float64
		err  string
	}{
		{"{\"ids\":[4,0]}\n{\"ids\":[1]}\n", 0, ""},
		{"{\"ids\":[4,0]}\n{\"ids\":[1]}\n", -100, "Pad ids=-100: -100, want 0 to 4: input \"ids\" takes numbers of rows in a table of 5"},
		{"{\"ids\":[4,0]}\n{\"ids\":[1,5]}\n", 0, "row 1, column \"ids\": 5, want 0 to 4"},
		{"{\"ids\":[4,0]}\n{\"ids\":[1,-1]}\n", 0, "row 1, column \"ids\": -1, want 0 to 4"},
	} {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(path, []byte(tt.rows), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Open([]string{path}, Options{Fields: field, Unlabelled: true, Pad: map[string]float64{"ids": tt.pad}})
		wantError(t, tt.rows, err, tt.err)
	}
}

// wantError compares an error with the words that it must have, "" for none at all.
func wantError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", what, err, want)
	}
}
