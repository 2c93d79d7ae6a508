package picture

import (
	"bytes"
	"image"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestGeometry has the sizes and places that torchvision computes.
func TestGeometry(t *testing.T) {
	for _, c := range readPictureGolden(t).Geometry {
		w, h := ShortSide(c.Size[0], c.Size[1], c.Resize)
		if w != c.Resized[0] || h != c.Resized[1] {
			t.Errorf("ShortSide(%d, %d, %d) = %d, %d, want %v", c.Size[0], c.Size[1], c.Resize, w, h, c.Resized)
		}
		at := image.Pt(c.At[0], c.At[1])
		want := image.Rectangle{Min: at, Max: at.Add(image.Pt(c.Crop[0], c.Crop[1]))}
		if got := CentreCrop(c.Resized[0], c.Resized[1], c.Crop[0], c.Crop[1]); got != want {
			t.Errorf("CentreCrop(%v, %v) = %v, want %v", c.Resized, c.Crop, got, want)
		}
	}
}

// TestKeep checks that a part computed alone is that part of the whole, and that
// there is black around it.
func TestKeep(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		src := New(1+r.IntN(40), 1+r.IntN(40), 1+2*r.IntN(2))
		for j := range src.Pix {
			src.Pix[j] = byte(r.IntN(256))
		}
		w, h := 1+r.IntN(60), 1+r.IntN(60)
		f := Filter(i % len(filters))
		whole, err := Resize(src, w, h, f, image.Rect(0, 0, w, h))
		if err != nil {
			t.Fatal(err)
		}
		at := image.Pt(r.IntN(w+20)-10, r.IntN(h+20)-10)
		keep := image.Rectangle{Min: at, Max: at.Add(image.Pt(1+r.IntN(w+10), 1+r.IntN(h+10)))}
		part, err := Resize(src, w, h, f, keep)
		if err != nil {
			t.Fatal(err)
		}
		want := New(keep.Dx(), keep.Dy(), src.C)
		for y := range h {
			for x := range w {
				if to := image.Pt(x, y).Sub(at); image.Pt(x, y).In(keep) {
					copy(want.Row(to.Y)[to.X*src.C:][:src.C], whole.Row(y)[x*src.C:])
				}
			}
		}
		if !bytes.Equal(part.Pix, want.Pix) || part.W != want.W || part.H != want.H {
			t.Fatalf("%d×%d×%d by %s to %d×%d: part %v is not that part of the whole", src.W, src.H, src.C, f, w, h, keep)
		}
	}
}

// TestSameSize: an image that keeps its size keeps its pixels.
func TestSameSize(t *testing.T) {
	p := decode(t, "files/microaneurysms.png", false)
	for f := range filters {
		q, err := Resize(p, p.W, p.H, Filter(f), image.Rect(0, 0, p.W, p.H))
		if err != nil || !bytes.Equal(p.Pix, q.Pix) {
			t.Errorf("%s changes the image: %v", Filter(f), err)
		}
	}
}

func TestResizeRefuses(t *testing.T) {
	p := New(2, 2, 3)
	tests := []struct {
		w, h int
		keep image.Rectangle
		want string
	}{
		{0, 5, image.Rect(0, 0, 1, 1), "0×5 pixels, want at least one"},
		{5, 5, image.Rectangle{}, "0×0 pixels, want at least one"},
		{1 << 21, 5, image.Rect(0, 0, 1, 1), "at most 1048576 along a side"},
		{20000, 20000, image.Rect(0, 0, 1, 1), "at most 178956970 in all"},
		{5, 5, image.Rect(0, 0, 20000, 20000), "at most 178956970 in all"},
	}
	for _, tt := range tests {
		if _, err := Resize(p, tt.w, tt.h, Bilinear, tt.keep); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d×%d, %v: error %v, want %q", tt.w, tt.h, tt.keep, err, tt.want)
		}
	}
}

func TestParseFilter(t *testing.T) {
	for f := range filters {
		got, err := ParseFilter(strings.ToUpper(Filter(f).String()))
		if err != nil || got != Filter(f) {
			t.Errorf("%s: %v, %v", Filter(f), got, err)
		}
	}
	_, err := ParseFilter("area")
	if want := `interpolation "area": want one of bilinear, nearest, bicubic, lanczos, box or hamming`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
