package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/target"
)

// tagged makes five pictures that are 6×4 once they are turned. Those with even numbers are stored so that orientation 6 turns
// them; the others have no tag. masks are of the turned pictures, and have the numbers of columns.
func tagged(t *testing.T) (images, masks string) {
	t.Helper()
	dir := t.TempDir()
	images, masks = filepath.Join(dir, "images"), filepath.Join(dir, "masks")
	for i := range 5 {
		w, h := 6, 4
		if i%2 == 0 {
			w, h = 4, 6
		}
		img := image.NewRGBA(image.Rect(0, 0, w, h))
		for p := range w * h {
			img.Set(p%w, p/w, color.RGBA{uint8(p * 9), uint8(i * 40), uint8(200 - p), 255})
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, img, nil); err != nil {
			t.Fatal(err)
		}
		data := b.Bytes()
		if i%2 == 0 {
			data = withOrientation(data, 6)
		}
		path := filepath.Join(images, "a", fmt.Sprintf("%d.jpg", i))
		writePicture(t, filepath.Join(masks, "a", fmt.Sprintf("%d.png", i)), grey(i))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return images, masks
}

// withOrientation puts an Exif block with an orientation into a JPEG file.
func withOrientation(data []byte, orientation uint16) []byte {
	exif := []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01")
	exif = binary.BigEndian.AppendUint16(exif, orientation)
	exif = append(exif, make([]byte, 6)...)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2))
	return slices.Concat(data[:2], segment, exif, data[2:])
}

// Pictures, tiles, original sizes and masks are those of turned pictures.
func TestOrientationApplied(t *testing.T) {
	t.Parallel()
	images, masks := tagged(t)
	p := plain(6, 4)
	p.Orientation = picture.Apply
	opts := Options{Labels: masks, Positions: &target.Positions{Width: 1}, Shape: []int64{3, 4, 6}, Preprocess: p, Original: true}
	d, err := Open([]string{images}, opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		x := make([]byte, 3*4*6)
		if err := d.(Bytes).Pixels(x, i); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(d.Name(i))
		if err != nil {
			t.Fatal(err)
		}
		f, err := picture.Open(data)
		if err != nil {
			t.Fatal(err)
		}
		want, err := f.Oriented(picture.Apply).Decode(false)
		if err != nil || want.W != 6 || want.H != 4 {
			t.Fatal(want.W, want.H, err)
		}
		for k, v := range want.Pix {
			if x[k%3*24+k/3] != v {
				t.Errorf("%s: other pixels than those of the turned picture", d.Name(i))
				break
			}
		}
		if h, w, err := OriginalSize(d, i); h != 4 || w != 6 || err != nil {
			t.Errorf("%s: original size %d×%d, %v", d.Name(i), w, h, err)
		}
		if one, err := d.Labels().Load(i); err != nil || one.Classes[7] != 1+10*i {
			t.Errorf("%s: labels %v, %v", d.Name(i), one.Classes, err)
		}
	}
	opts.Original, opts.Tiling, opts.Preprocess = false, Tiling{Size: 4}, preprocess.Settings{Orientation: picture.Apply}
	opts.Shape = []int64{3, 4, 4}
	if d, err = Open([]string{images}, opts); err != nil || d.Len() != 10 {
		t.Fatalf("tiles: %v, %v", d, err)
	}
	for i := range d.Len() {
		if err := d.(Bytes).Pixels(make([]byte, 48), i); err != nil {
			t.Error(err)
		}
	}
}

// A mask of a picture that is turned by another rule has no place on it.
func TestOrientationOfMasks(t *testing.T) {
	t.Parallel()
	images, masks := tagged(t)
	for _, o := range []picture.Orientation{"", picture.Pillow, picture.Ignore} {
		p := preprocess.Settings{Image: preprocess.Transform{CropMode: preprocess.Squash, InputSize: [2]int{4, 6}}, Orientation: o}
		d, err := openMasked(images, masks, p, target.Classes)
		if err != nil {
			t.Fatal(err)
		}
		const want = "a mask of 6×4 pixels, and its picture has 4×6. The picture may have an orientation, and the mask is that of the picture with Preprocess orientation=apply"
		if _, err := d.Labels().Load(0); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "--preprocess", "Preprocess"), want) {
			t.Errorf("%q: %v", o, err)
		}
		if _, err := d.Labels().Load(1); err != nil {
			t.Error(err)
		}
	}
}

// Each picture counts once, in whatever pass, worker and data set, and only while nobody chose.
func TestSideways(t *testing.T) {
	t.Parallel()
	images, _ := tagged(t)
	var count Sideways
	open := func(o picture.Orientation, tiling int) Dataset {
		opts := Options{Shape: []int64{3, 4, 6}, Preprocess: preprocess.Settings{Image: preprocess.Transform{CropMode: preprocess.Squash}, Orientation: o}, Sideways: &count}
		if tiling > 0 {
			opts.Preprocess.Image, opts.Shape, opts.Tiling.Size = preprocess.Transform{}, []int64{3, 4, 4}, tiling
		}
		d, err := Open([]string{images}, opts)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	read := func(d Dataset, rows ...int) {
		size, err := SizeOf(d)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for _, i := range rows {
			all.Go(func() {
				if err := d.Read(size.Make(1), i); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	d := open("", 0)
	for _, tt := range []struct {
		rows []int
		want string
	}{{nil, ""}, {[]int{1, 3}, ""}, {[]int{0}, "1 of 3 pictures"}, {[]int{0, 0, 1}, "1 of 3 pictures"}, {[]int{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}, "3 of 5 pictures"}} {
		if read(d, tt.rows...); !strings.HasPrefix(count.Note(), tt.want) || (tt.want == "") != (count.Note() == "") {
			t.Errorf("after rows %v: %q, want %q", tt.rows, count.Note(), tt.want)
		}
	}
	read(open("", 0), 0, 1) // the same pictures, as another role has them
	read(open("", 4), 0, 1)
	if note := count.Note(); !strings.HasPrefix(note, "3 of 5 pictures") {
		t.Error(note)
	}
	for _, o := range []picture.Orientation{picture.Pillow, picture.Ignore, picture.Apply} {
		before := count.Note()
		if read(open(o, 0), 0, 1, 2); count.Note() != before {
			t.Errorf("%s: %q", o, count.Note())
		}
	}
}
