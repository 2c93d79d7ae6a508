package dataset

import (
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/target"
)

// writePicture writes an image to a file, as PNG or JPEG.
func writePicture(t *testing.T, path string, img image.Image) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if strings.HasSuffix(path, ".jpg") {
		err = jpeg.Encode(f, img, nil)
	} else {
		err = png.Encode(f, img)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// masked makes n pictures of 6×4 pixels in dir/images/a. mask makes the mask of each.
func masked(t *testing.T, n int, name string, mask func(i int) image.Image) (images, masks string) {
	dir := t.TempDir()
	images, masks = filepath.Join(dir, "images"), filepath.Join(dir, "masks")
	for i := range n {
		writePicture(t, filepath.Join(images, "a", fmt.Sprintf("%d.jpg", i)), image.NewRGBA(image.Rect(0, 0, 6, 4)))
		writePicture(t, filepath.Join(masks, "a", fmt.Sprintf(name, i)), mask(i))
	}
	return images, masks
}

// grey is a mask of 6×4 pixels with the number x + 10·i, and 255 at the upper left.
func grey(i int) image.Image {
	m := image.NewGray(image.Rect(0, 0, 6, 4))
	for p := range m.Pix {
		m.Pix[p] = byte(p%6 + 10*i)
	}
	m.Pix[0] = 255
	return m
}

func openMasked(images, masks string, p preprocess.Settings, kind target.Kind) (Dataset, error) {
	ignore := 255
	return Open([]string{images}, Options{Labels: masks, Target: kind, Positions: &target.Positions{Width: 1, Ignore: &ignore}, Shape: []int64{3, -1, -1}, Preprocess: p})
}

func plain(w, h int) preprocess.Settings {
	return preprocess.Settings{Image: preprocess.Transform{InputSize: [2]int{h, w}}}
}

// Masks are paired with pictures by name. Numbers to ignore are unknown.
func TestMasks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"%d.png", "%d_mask.png"} {
		images, masks := masked(t, 3, name, grey)
		d, err := openMasked(images, masks, plain(6, 4), target.Classes)
		if err != nil {
			t.Fatal(err)
		}
		if n := d.Labels().Len(); n != 3 || d.Labels().None() || !d.Labels().Dense() {
			t.Fatalf("labels of %d examples", n)
		}
		one, err := d.Labels().Load(2)
		if err != nil || one.Positions != 24 || !slices.Equal(one.Classes[:8], []int{target.Unknown, 21, 22, 23, 24, 25, 20, 21}) {
			t.Errorf("%s: %v, %v", name, one.Classes, err)
		}
		if part := Part(d, 1, 3).Labels(); part.Len() != 2 || !slices.Equal(part.At(1).Classes, one.Classes) {
			t.Error("a part has other labels")
		}
	}
}

// Colours of a palette are indices, and grey levels of few or many bits are numbers.
func TestMaskFormats(t *testing.T) {
	t.Parallel()
	box := image.Rect(0, 0, 6, 4)
	palette := image.NewPaletted(box, color.Palette{color.Black, color.White, color.RGBA{R: 128, A: 255}})
	palette.Pix[1] = 2
	wide := image.NewGray16(box)
	wide.SetGray16(1, 0, color.Gray16{Y: 300})
	for _, tt := range []struct {
		mask image.Image
		want int // at pixel 1
	}{{palette, 2}, {wide, 300}} {
		images, masks := masked(t, 1, "%d.png", func(int) image.Image { return tt.mask })
		d, err := openMasked(images, masks, plain(6, 4), target.Classes)
		if err != nil {
			t.Fatal(err)
		}
		if one, err := d.Labels().Load(0); err != nil || one.Classes[1] != tt.want || one.Classes[0] != 0 {
			t.Errorf("%T: %v, %v", tt.mask, one.Classes, err)
		}
	}
	images, masks := masked(t, 1, "%d.png", grey)
	os.Remove(filepath.Join(masks, "a", "0.png"))
	depth := append(numpy.Header("<f4", 4, 6), make([]byte, 4*24)...)
	copy(depth[len(depth)-4:], []byte{0, 0, 0x20, 0x40}) // 2.5 in the last pixel
	if err := os.WriteFile(filepath.Join(masks, "a", "0.npy"), depth, 0o666); err != nil {
		t.Fatal(err)
	}
	d, err := openMasked(images, masks, plain(6, 4), target.Numbers)
	if err != nil {
		t.Fatal(err)
	}
	if one, err := d.Labels().Load(0); err != nil || one.Values[23] != 2.5 || one.Width != 1 {
		t.Errorf("depth %v, %v", one.Values, err)
	}
}

// Masks are resized and cropped like their pictures, by the nearest pixel. Pixels beside the picture are unknown.
func TestMasksAreTransformed(t *testing.T) {
	t.Parallel()
	images, masks := masked(t, 1, "%d.png", grey)
	half := preprocess.Settings{Image: preprocess.Transform{CropMode: preprocess.Squash, InputSize: [2]int{2, 3}}}
	d, err := openMasked(images, masks, half, target.Classes)
	if err != nil {
		t.Fatal(err)
	}
	// Pillow's nearest takes pixel floor((i + ½)·2) of each row: 1, 3, 5.
	if one, err := d.Labels().Load(0); err != nil || !slices.Equal(one.Classes, []int{1, 3, 5, 1, 3, 5}) {
		t.Errorf("half the size: %v, %v", one.Classes, err)
	}
	border := preprocess.Settings{Image: preprocess.Transform{CropMode: preprocess.Squash, InputSize: [2]int{8, 12}, CropPct: 2}}
	if d, err = openMasked(images, masks, border, target.Classes); err != nil {
		t.Fatal(err)
	}
	one, err := d.Labels().Load(0)
	if err != nil || one.Classes[0] != target.Unknown || one.Classes[2*12+4] != 1 || one.Classes[11*8-1] != target.Unknown {
		t.Errorf("with a border: %v, %v", one.Classes, err)
	}
}

// Masks that cannot be those of the pictures are refused with the reason.
func TestWrongMasks(t *testing.T) {
	t.Parallel()
	small := func(int) image.Image { return image.NewGray(image.Rect(0, 0, 5, 4)) }
	coloured := func(int) image.Image { return image.NewRGBA(image.Rect(0, 0, 6, 4)) }
	for _, tt := range []struct {
		mask   func(int) image.Image
		change func(images, masks string) error
		want   string
	}{
		{small, nil, "0.png: a mask of 5×4 pixels, and its picture has 6×4"},
		{coloured, nil, "0.png: colours or transparency, and these are no numbers"},
		{grey, func(_, masks string) error { return os.Remove(filepath.Join(masks, "a", "1.png")) }, "1 of 3 pictures have no mask: "},
		{grey, func(images, _ string) error { return os.Remove(filepath.Join(images, "a", "1.jpg")) }, "1 masks have no picture: "},
		{grey, func(_, masks string) error { return os.RemoveAll(filepath.Join(masks, "a")) }, "a folder without masks"},
		{grey, func(_, masks string) error {
			return os.WriteFile(filepath.Join(masks, "a", "0.png"), []byte("no picture"), 0o666)
		}, "0.png: not an image, want "},
	} {
		images, masks := masked(t, 3, "%d.png", tt.mask)
		if tt.change != nil {
			if err := tt.change(images, masks); err != nil {
				t.Fatal(err)
			}
		}
		d, err := openMasked(images, masks, plain(6, 4), target.Classes)
		if err == nil {
			_, err = d.Labels().Load(0)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}
