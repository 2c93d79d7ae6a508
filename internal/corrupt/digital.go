package corrupt

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"math"

	"github.com/swagwrap/swagwrap/internal/picture"
)

func contrast(x raster, s conditions) raster {
	share := pick(s, [...]float64{.75, .5, .4, .3, .15}, [...]float64{.4, .3, .2, .1, .05})
	var mean [3]float64
	for i, v := range x.v {
		mean[i%x.c] += v
	}
	for k := range mean {
		mean[k] /= float64(x.w * x.h)
	}
	return x.each(func(i int, v float64) float64 { return (v-mean[i%x.c])*share + mean[i%x.c] })
}

func brightness(x raster, s conditions) raster {
	more := pick(s, [...]float64{.05, .1, .15, .2, .3}, [...]float64{.1, .2, .3, .4, .5})
	return x.hsv(func(sat, v float64) (float64, float64) { return sat, clip(v + more) })
}

func saturate(x raster, s conditions) raster {
	type of struct{ times, more float64 }
	c := pick(s, [...]of{{.3, 0}, {.1, 0}, {1.5, 0}, {2, .1}, {2.5, .2}}, [...]of{{.3, 0}, {.1, 0}, {2, 0}, {5, .1}, {20, .2}})
	return x.hsv(func(sat, v float64) (float64, float64) { return clip(sat*c.times + c.more), v })
}

// hsv changes saturation and value of colours in the HSV space.
func (x raster) hsv(change func(sat, v float64) (float64, float64)) raster {
	out := newRaster(x.w, x.h, x.c)
	for i := 0; i < len(x.v); i += 3 {
		r, g, b := x.v[i], x.v[i+1], x.v[i+2]
		high, low := max(r, g, b), min(r, g, b)
		d, hue, sat := high-low, 0.0, 0.0
		if d > 0 {
			sat = d / high
			switch high { // the last of equal colours counts, as in scikit-image
			case b:
				hue = 4 + (r-g)/d
			case g:
				hue = 2 + (b-r)/d
			default:
				hue = (g - b) / d
			}
			if hue /= 6; hue < 0 {
				hue++
			}
		}
		sat, v := change(sat, high)
		part := math.Floor(hue * 6)
		f := hue*6 - part
		p, q, t := v*(1-sat), v*(1-f*sat), v*(1-(1-f)*sat)
		rgb := [6][3]float64{{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}[int(part)%6]
		copy(out.v[i:], rgb[:])
	}
	return out
}

// bytes returns the picture in 8 bits. It is used before anything has changed, so that no value is rounded.
func (x raster) bytes() picture.Picture {
	p := picture.New(x.w, x.h, x.c)
	for i, v := range x.v {
		p.Pix[i] = byte(math.Round(v * 255))
	}
	return p
}

// rasterOf returns a picture of 8 bits as numbers that Apply converts to the same bytes.
func rasterOf(p picture.Picture) raster {
	x := newRaster(p.W, p.H, p.C)
	for i, v := range p.Pix {
		x.v[i] = float64(v) / 255
	}
	return exact(x)
}

// exact adds a quarter of a level to values of 8 bits, so that rounding down in Apply keeps them.
func exact(x raster) raster {
	return x.each(func(_ int, v float64) float64 { return min(v+.25/255, 1) })
}

// pixelate shrinks the picture and enlarges it again, with Pillow's box filter.
func pixelate(x raster, s conditions) raster {
	share := pick(s, [...]float64{.95, .9, .85, .75, .65}, [...]float64{.6, .5, .4, .3, .25})
	p := x.bytes()
	for _, size := range []image.Point{{max(int(float64(x.w)*share), 1), max(int(float64(x.h)*share), 1)}, {x.w, x.h}} {
		var err error
		if p, err = picture.Resize(p, size.X, size.Y, picture.Box, image.Rectangle{Max: size}); err != nil {
			panic(fmt.Sprintf("corrupt: %v", err)) // sizes are at most those of a valid picture
		}
	}
	return rasterOf(p)
}

// jpegCompression writes the picture as JPEG, and reads it again as Pillow does.
func jpegCompression(x raster, s conditions) raster {
	quality := pick(s, [...]int{80, 65, 58, 50, 40}, [...]int{25, 18, 15, 10, 7})
	var b bytes.Buffer
	err := jpeg.Encode(&b, x.bytes().Image(), &jpeg.Options{Quality: quality})
	if err == nil {
		var f picture.File
		if f, err = picture.Open(b.Bytes()); err == nil {
			var p picture.Picture
			if p, err = f.Decode(false); err == nil {
				return rasterOf(p)
			}
		}
	}
	panic(fmt.Sprintf("corrupt: a JPEG of %d×%d pixels: %v", x.w, x.h, err)) // it was written here, to memory
}

// elastic stretches the picture by a random affine map, and then moves each pixel by a smooth random distance.
func elastic(x raster, s conditions) raster {
	type of struct{ alpha, sigma, affine float64 }
	const small, large = 32, 244 // the published code says 244
	c := pick(s, [...]of{{0, 0, small * .08}, {small * .05, small * .2, small * .07}, {small * .08, small * .06, small * .06},
		{small * .1, small * .04, small * .05}, {small * .1, small * .03, small * .03}},
		[...]of{{large * 2, large * .7, large * .1}, {large * 2, large * .08, large * .2}, {large * .05, large * .01, large * .02},
			{large * .07, large * .01, large * .02}, {large * .12, large * .01, large * .02}})
	x = x.affine(s, c.affine)
	shift := func() raster {
		u := newRaster(x.w, x.h, 1)
		for i := range u.v {
			u.v[i] = s.between(-1, 1)
		}
		return u.gaussian(c.sigma, 3, symmetric).each(func(_ int, v float64) float64 { return v * c.alpha })
	}
	dx, dy := shift(), shift()
	out := newRaster(x.w, x.h, x.c)
	for i := range dx.v {
		x.interpolate(out.v[i*x.c:][:x.c], float64(i%x.w)+dx.v[i], float64(i/x.w)+dy.v[i], symmetric)
	}
	return out
}

// interpolate sets dst to the values at a place between pixels, by linear interpolation.
func (x raster) interpolate(dst []float64, px, py float64, at edge) {
	left, top := math.Floor(px), math.Floor(py)
	fx, fy := px-left, py-top
	x0, x1 := at(int(left), x.w), at(int(left)+1, x.w)
	y0, y1 := at(int(top), x.h), at(int(top)+1, x.h)
	for k := range dst {
		dst[k] = (1-fy)*((1-fx)*x.at(x0, y0, k)+fx*x.at(x1, y0, k)) + fy*((1-fx)*x.at(x0, y1, k)+fx*x.at(x1, y1, k))
	}
}

// affine moves three points of the picture by up to reach pixels, and the others with them. Places are rounded to 1/32
// pixel, as in OpenCV.
func (x raster) affine(s conditions, reach float64) raster {
	// The published code takes rows for columns here. The points lie around the middle.
	cx, cy, side := float64(x.h/2), float64(x.w/2), float64(min(x.w, x.h)/3)
	from := [3][2]float64{{cx + side, cy + side}, {cx + side, cy - side}, {cx - side, cy - side}}
	to := from
	for i := range to {
		for k := range to[i] {
			to[i][k] += s.between(-reach, reach)
		}
	}
	// The map that leads from the new places back to the old ones.
	ax, ay := to[0][0]-to[2][0], to[0][1]-to[2][1]
	bx, by := to[1][0]-to[2][0], to[1][1]-to[2][1]
	det := ax*by - ay*bx
	if math.Abs(det) < 1e-9 {
		return x // the points fell on a line
	}
	var m [2][3]float64
	for k := range m {
		a, b := from[0][k]-from[2][k], from[1][k]-from[2][k]
		m[k][0], m[k][1] = (a*by-b*ay)/det, (b*ax-a*bx)/det
		m[k][2] = from[2][k] - m[k][0]*to[2][0] - m[k][1]*to[2][1]
	}
	out := newRaster(x.w, x.h, x.c)
	fine := func(v float64) float64 { return math.Floor(v*32+.5) / 32 }
	for i := range x.w * x.h {
		px, py := float64(i%x.w), float64(i/x.w)
		x.interpolate(out.v[i*x.c:][:x.c], fine(m[0][0]*px+m[0][1]*py+m[0][2]), fine(m[1][0]*px+m[1][1]*py+m[1][2]), mirror)
	}
	return out
}
