package augment

import (
	"math"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// factors is a range of factors, or nil if the property is not changed.
type factors = *[2]float64

// jitter is torchvision's ColorJitter: brightness, contrast, saturation and hue, in this order.
type jitter struct {
	keepsSize
	by [4]factors
}

var jitterNames = [4]string{"brightness", "contrast", "saturation", "hue"}

func (*jitter) name() string { return "ColorJitter" }

func (o *jitter) params() (all []param) {
	for i, name := range jitterNames {
		text := ""
		if o.by[i] != nil {
			text = tuple(o.by[i][:])
		}
		lo, hi, middle, want := 0.0, most, 1.0, "a number from 0, or two, the smaller first"
		if name == "hue" {
			lo, hi, middle, want = -0.5, 0.5, 0, "a number from 0 to 0.5, or two from -0.5, the smaller first"
		}
		all = append(all, param{name: name, text: text, read: func(_ *arguments, v value) string {
			x, ok := v.numbers(1, 2)
			if ok && v.kind == 'n' {
				ok = x[0] >= 0 && middle+x[0] <= hi
				x = []float64{max(lo, middle-x[0]), middle + x[0]}
			}
			if !ok || len(x) != 2 || !(lo <= x[0] && x[0] <= x[1] && x[1] <= hi) {
				return want
			}
			if o.by[i] = (*[2]float64)(x); x[0] == middle && x[1] == middle {
				o.by[i] = nil
			}
			return ""
		}})
	}
	return all
}

// An adjustment changes one property, an index of jitterNames, by a factor.
type adjustment struct {
	property int
	by       float64
}

// draw follows ColorJitter.get_params. All orders of the four properties are equally likely.
func (o *jitter) draw(r *random) []adjustment {
	order := [4]int{0, 1, 2, 3}
	for i := 3; i > 0; i-- {
		j := r.IntN(i + 1)
		order[i], order[j] = order[j], order[i]
	}
	var by [4]float64
	for i, f := range o.by {
		if f != nil {
			by[i] = r.between(*f)
		}
	}
	var a []adjustment
	for _, i := range order {
		if o.by[i] != nil {
			a = append(a, adjustment{i, by[i]})
		}
	}
	return a
}

func (o *jitter) apply(c *canvas, r *random) error {
	for _, a := range o.draw(r) {
		c.mine()
		a.apply(c.Picture)
	}
	return nil
}

// apply changes p in place.
func (a adjustment) apply(p picture.Picture) {
	switch a.property {
	case 0:
		blendConstant(p, 0, float32(a.by))
	case 1:
		blendConstant(p, meanLuma(p), float32(a.by))
	case 2:
		saturate(p, float32(a.by))
	case 3:
		turnHue(p, a.by)
	}
}

// blend is Pillow's Image.blend for one value: it truncates a float32. The conversion rounds the product, so no
// processor can fuse it with the addition.
func blend(from, to byte, f float32) byte {
	v := float32(from) + float32(f*float32(int(to)-int(from)))
	return byte(max(0, min(v, 255)))
}

// blendConstant blends p with one grey level, as Pillow's ImageEnhance.Brightness (level 0) and Contrast do.
func blendConstant(p picture.Picture, level byte, f float32) {
	var table [256]byte
	for v := range table {
		table[v] = blend(level, byte(v), f)
	}
	for i, v := range p.Pix {
		p.Pix[i] = table[v]
	}
}

// meanLuma returns the mean of the picture in grey, rounded half up.
func meanLuma(p picture.Picture) byte {
	sum := 0
	if p.C == 1 {
		for _, v := range p.Pix {
			sum += int(v)
		}
	} else {
		for i := 0; i < len(p.Pix); i += 3 {
			sum += int(picture.Luma(p.Pix[i], p.Pix[i+1], p.Pix[i+2]))
		}
	}
	return byte(float64(sum)/float64(p.W*p.H) + 0.5)
}

// saturate blends p with its grey version, as Pillow's ImageEnhance.Color does.
func saturate(p picture.Picture, f float32) {
	if p.C == 1 {
		return
	}
	for i := 0; i < len(p.Pix); i += 3 {
		s := p.Pix[i : i+3 : i+3]
		grey := picture.Luma(s[0], s[1], s[2])
		s[0], s[1], s[2] = blend(grey, s[0], f), blend(grey, s[1], f), blend(grey, s[2], f)
	}
}

// turnHue adds a part of a full turn to the hue, as torchvision's adjust_hue does with Pillow's 8-bit HSV. Grey
// pictures have no hue.
func turnHue(p picture.Picture, by float64) {
	if p.C == 1 {
		return
	}
	shift := byte(int(by * 255)) // truncated, then modulo 256
	for i := 0; i < len(p.Pix); i += 3 {
		s := p.Pix[i : i+3 : i+3]
		h, sat, v := toHSV(s[0], s[1], s[2])
		s[0], s[1], s[2] = fromHSV(h+shift, sat, v)
	}
}

// toHSV is Pillow's convert("HSV"), which is colorsys.rgb_to_hsv in single precision. Hue and saturation are
// truncated to 8 bits.
func toHSV(r, g, b byte) (h, s, v byte) {
	v = max(r, g, b)
	spread := float32(v - min(r, g, b))
	if spread == 0 {
		return 0, 0, v
	}
	rc, gc, bc := float32(v-r)/spread, float32(v-g)/spread, float32(v-b)/spread
	var turn float32 // the turn of the hue, in sixths of the circle
	switch v {
	case r:
		turn = bc - gc
	case g:
		turn = float32(2 + float64(rc) - float64(bc))
	default:
		turn = float32(4 + float64(gc) - float64(rc))
	}
	part := float64(turn)/6 + 1
	if part >= 1 {
		part-- // exact
	}
	hue := float32(part)
	return byte(float64(hue) * 255), byte(float64(spread/float32(v)) * 255), v
}

// fromHSV is Pillow's conversion back, rounded half away from zero.
func fromHSV(h, s, v byte) (r, g, b byte) {
	if s == 0 {
		return v, v, v
	}
	scaled := float64(float32(h)*6) / 255
	sector := math.Floor(scaled)
	rest, sat, value := float64(float32(scaled-sector)), float64(float32(float64(s)/255)), float64(v)
	level := func(cut float64) byte { return byte(max(0, min(float64(value*(1-cut))+0.5, 255))) }
	p, q, t := level(sat), level(float64(float32(sat*rest))), level(float64(sat*(1-rest)))
	switch int(sector) % 6 {
	case 0:
		return v, t, p
	case 1:
		return q, v, p
	case 2:
		return p, v, t
	case 3:
		return p, q, v
	case 4:
		return t, p, v
	}
	return v, p, q
}

// greyscale is torchvision's RandomGrayscale.
type greyscale struct {
	keepsSize
	p float64
}

func (*greyscale) name() string      { return "RandomGrayscale" }
func (o *greyscale) params() []param { return []param{probabilityParam(&o.p, 0.1)} }

func (o *greyscale) apply(c *canvas, r *random) error {
	if r.happens(o.p) && c.C == 3 {
		c.mine()
		saturate(c.Picture, 0)
	}
	return nil
}
