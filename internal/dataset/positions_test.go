package dataset

import (
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Masks of 0 and 255 are those of 0 and 1, in every format of masks. An ignored label that leaves one class is a doubt.
func TestWhiteMasks(t *testing.T) {
	t.Parallel()
	ignored := 255
	drawn := func(white byte) func(i int) image.Image {
		return func(i int) image.Image {
			m := image.NewGray(image.Rect(0, 0, 6, 4))
			for p := range m.Pix {
				if i > 0 && p%3 == 0 { // the first mask is all background
					m.Pix[p] = white
				}
			}
			return m
		}
	}
	arrays := func(dir string, white byte) string { // of all masks in one file
		data := make([]byte, 0, 3*24)
		for i := range 3 {
			data = append(data, drawn(white)(i).(*image.Gray).Pix...)
		}
		path := filepath.Join(dir, "labels.npy")
		if err := os.WriteFile(path, append(numpy.Header("|u1", 3, 4, 6), data...), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, format := range []string{"folder of pictures", "array", "tiles"} {
		for _, tt := range []struct {
			white        byte
			ignore       *int
			second       int // class of white pixels
			note, doubts string
		}{
			{1, nil, 1, "", ""},
			{255, nil, 1, "label 255 is class 1", ""},
			{255, &ignored, target.Unknown, "", "class 0 is the only one that counts"},
			{1, &ignored, 1, "", ""},
		} {
			images, masks := masked(t, 3, "%d.png", drawn(tt.white))
			opts := Options{Labels: masks, Positions: &target.Positions{Width: 1, Classes: 2, Ignore: tt.ignore}, Shape: []int64{3, 4, 6}, Preprocess: plain(6, 4)}
			switch format {
			case "array":
				opts.Labels = arrays(filepath.Dir(images), tt.white)
			case "tiles":
				opts.Tiling, opts.Preprocess = Tiling{Size: 4}, preprocess.Settings{}
				opts.Shape = []int64{3, -1, -1}
			}
			d, err := Open([]string{images}, opts)
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			labels, err := allLabels(d).Load(2)
			if err != nil || !slices.Contains(labels.Classes, tt.second) || slices.Contains(labels.Classes, 255) {
				t.Errorf("%s, white %d: %v, %v", format, tt.white, labels, err)
			}
			notes, doubts := Notes(d)
			if got := strings.Join(notes, ";"); (got == "") != (tt.note == "") || !strings.Contains(got, tt.note) {
				t.Errorf("%s, white %d: notes %q, want %q", format, tt.white, got, tt.note)
			}
			if got := strings.Join(doubts, ";"); (got == "") != (tt.doubts == "") || !strings.Contains(got, tt.doubts) {
				t.Errorf("%s, white %d: doubts %q, want %q", format, tt.white, got, tt.doubts)
			}
		}
	}
	mixed := func(i int) image.Image { return drawn([]byte{0, 1, 255}[i])(i) }
	images, masks := masked(t, 3, "%d.png", mixed)
	d, err := Open([]string{images}, Options{Labels: masks, Positions: &target.Positions{Width: 1, Classes: 2}, Shape: []int64{3, 4, 6}, Preprocess: plain(6, 4)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Labels().Load(2); err == nil || !strings.Contains(err.Error(), "label 255, and other labels are 1") {
		t.Errorf("masks of 1 and of 255: %v", err)
	}
}
