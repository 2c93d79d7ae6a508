package augment

import (
	"fmt"
	"image"
	"math"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// randomResizedCrop is torchvision's RandomResizedCrop.
type randomResizedCrop struct {
	to           [2]int // height and width; 0 is open
	scale, ratio [2]float64
	filter       picture.Filter
}

var (
	cropScale = [2]float64{0.08, 1}
	cropRatio = [2]float64{3.0 / 4, 4.0 / 3}
)

func (*randomResizedCrop) name() string { return "RandomResizedCrop" }

func (o *randomResizedCrop) params() []param {
	scale := spanParam("scale", &o.scale, cropScale, 0, most, "two numbers from 0, the smaller first")
	read := scale.read
	scale.read = func(a *arguments, v value) string {
		want := read(a, v)
		if want == "" && o.scale[1] == 0 {
			want = "a part of the area above 0"
		}
		return want
	}
	return append([]param{sizeParam(&o.to), scale, ratioParam(&o.ratio, cropRatio)}, filterParams(&o.filter)...)
}

func (o randomResizedCrop) fit(h, w int) op {
	o.to = fitted(o.to, h, w)
	return &o
}

func (o *randomResizedCrop) size(_, _ int) (int, int, error) { return o.to[0], o.to[1], nil }

// box is a rectangle in a picture.
type box struct{ top, left, h, w int }

// draw follows RandomResizedCrop.get_params.
func (o *randomResizedCrop) draw(h, w int, r *random) box {
	area := float64(h) * float64(w)
	for range 10 {
		bw, bh := shape(area*r.between(o.scale), logBetween(o.ratio, r))
		if 0 < bw && bw <= w && 0 < bh && bh <= h {
			return box{r.IntN(h - bh + 1), r.IntN(w - bw + 1), bh, bw}
		}
	}
	bh, bw := h, w
	switch ratio := float64(w) / float64(h); {
	case ratio < o.ratio[0]:
		bh = int(math.RoundToEven(float64(w) / o.ratio[0]))
	case ratio > o.ratio[1]:
		bw = int(math.RoundToEven(float64(h) * o.ratio[1]))
	}
	return box{(h - bh) / 2, (w - bw) / 2, bh, bw}
}

// shape returns the sides of a rectangle of the given area, rounded to even as in Python. The first side is ratio
// times the second.
func shape(area, ratio float64) (int, int) {
	return int(math.RoundToEven(math.Sqrt(area * ratio))), int(math.RoundToEven(math.Sqrt(area / ratio)))
}

// logBetween returns a number whose logarithm is uniform, so that ½ is as likely as 2.
func logBetween(v [2]float64, r *random) float64 {
	return math.Exp(r.between([2]float64{math.Log(v[0]), math.Log(v[1])}))
}

func (o *randomResizedCrop) apply(c *canvas, r *random) error {
	if o.to[0] == 0 {
		return errOpen
	}
	b := o.draw(c.H, c.W, r)
	if b.w < 1 || b.h < 1 {
		return fmt.Errorf("a crop of %d×%d pixels from a picture of %d×%d, want at least one", b.w, b.h, c.W, c.H)
	}
	p, err := resizedCrop(c.Picture, b, o.to, o.filter)
	if err == nil {
		c.set(p)
	}
	return err
}

// resizedCrop is torchvision's resized_crop. Pixels outside the crop have no influence.
func resizedCrop(src picture.Picture, b box, to [2]int, f picture.Filter) (picture.Picture, error) {
	return scale(part(src, b.top, b.left, b.h, b.w), to, f)
}

// scale returns src resized to a height and width.
func scale(src picture.Picture, to [2]int, f picture.Filter) (picture.Picture, error) {
	return picture.Resize(src, to[1], to[0], f, image.Rect(0, 0, to[1], to[0]))
}

// resize is torchvision's Resize.
type resize struct {
	to     [2]int // height and width; 0 is open
	short  int    // the shorter side, or 0 to use the field to
	filter picture.Filter
}

func (*resize) name() string { return "Resize" }

func (o *resize) params() []param {
	size := param{
		name: "size",
		text: unless(o.to, [2]int{}, fmt.Sprintf("(%d, %d)", o.to[0], o.to[1])),
		read: func(_ *arguments, v value) string {
			n, ok := v.whole(1, picture.MaxSide, 1, 2)
			switch {
			case !ok:
				return sides
			case len(n) == 1:
				o.short = n[0]
			default:
				o.to = [2]int(n)
			}
			return ""
		},
	}
	if o.short != 0 {
		size.text = fmt.Sprint(o.short)
	}
	filter := filterParams(&o.filter)
	refused := param{name: "max_size", read: func(*arguments, value) string { return "None: it is not supported" }}
	return []param{size, filter[0], refused, filter[1]}
}

func (o resize) fit(h, w int) op {
	if o.short == 0 {
		o.to = fitted(o.to, h, w)
	}
	return &o
}

func (o *resize) size(h, w int) (int, int, error) {
	switch {
	case o.short == 0:
		return o.to[0], o.to[1], nil
	case h == 0:
		return 0, 0, nil
	}
	w, h = picture.ShortSide(w, h, o.short)
	return h, w, nil
}

func (o *resize) apply(c *canvas, _ *random) error {
	to := o.to
	switch {
	case o.short != 0:
		to[1], to[0] = picture.ShortSide(c.W, c.H, o.short)
	case to[0] == 0:
		return errOpen
	}
	if to == [2]int{c.H, c.W} {
		return nil
	}
	p, err := scale(c.Picture, to, o.filter)
	if err == nil {
		c.set(p)
	}
	return err
}

// fitted returns to, or the given height and width if it is open.
func fitted(to [2]int, h, w int) [2]int {
	if to[0] == 0 {
		return [2]int{h, w}
	}
	return to
}
