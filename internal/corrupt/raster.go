package corrupt

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// raster is a picture of numbers. Pixels have c interleaved channels, from 0 to 1.
type raster struct {
	w, h, c int
	v       []float64
}

func newRaster(w, h, c int) raster { return raster{w, h, c, make([]float64, w*h*c)} }

func (x raster) at(px, py, k int) float64 { return x.v[(py*x.w+px)*x.c+k] }

// each applies f to each number.
func (x raster) each(f func(i int, v float64) float64) raster {
	out := newRaster(x.w, x.h, x.c)
	for i, v := range x.v {
		out.v[i] = f(i, v)
	}
	return out
}

func clip(v float64) float64 {
	if !(v > 0) { // NaN too
		return 0
	}
	return min(v, 1)
}

// An edge says which pixel stands for one outside of the n pixels of a row or column.
type edge func(i, n int) int

// nearest repeats the last pixel: a a a | a b c d | d d d.
func nearest(i, n int) int { return min(max(i, 0), n-1) }

// symmetric mirrors with the last pixel: c b a | a b c d | d c b.
func symmetric(i, n int) int {
	if i = i % (2 * n); i < 0 {
		i += 2 * n
	}
	if i >= n {
		return 2*n - 1 - i
	}
	return i
}

// mirror mirrors without the last pixel: d c b | a b c d | c b a.
func mirror(i, n int) int {
	if n == 1 {
		return 0
	}
	if i = i % (2*n - 2); i < 0 {
		i += 2*n - 2
	}
	if i >= n {
		return 2*n - 2 - i
	}
	return i
}

// A tap is the weight of a pixel nearby.
type tap struct {
	dx, dy int
	weight float64
}

// filtered returns the weighted sums of the pixels around each pixel.
func (x raster) filtered(taps []tap, at edge) raster {
	out, columns := newRaster(x.w, x.h, x.c), make([]int, x.w)
	for _, t := range taps {
		for px := range columns {
			columns[px] = at(px+t.dx, x.w) * x.c
		}
		for y := range x.h {
			from, to := x.v[at(y+t.dy, x.h)*x.w*x.c:], out.v[y*x.w*x.c:]
			for px, q := range columns {
				for k := range x.c {
					to[px*x.c+k] += t.weight * from[q+k]
				}
			}
		}
	}
	return out
}

// square returns the taps of a kernel of n by n numbers, n odd.
func square(kernel []float64, n int) (taps []tap) {
	for i, w := range kernel {
		if w != 0 {
			taps = append(taps, tap{i%n - n/2, i/n - n/2, w})
		}
	}
	return taps
}

// bell returns the weights of n points of a normal curve, with the middle at one of them.
func bell(n, middle int, sigma float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		d := float64(i - middle)
		out[i] = math.Exp(-0.5 * d * d / (sigma * sigma))
	}
	floats.Scale(1/floats.Sum(out), out)
	return out
}

// gaussian blurs with a Gaussian of standard deviation sigma, cut off at truncate standard deviations, like
// scipy.ndimage.gaussian_filter.
func (x raster) gaussian(sigma, truncate float64, at edge) raster {
	radius := int(truncate*sigma + 0.5)
	var down, across []tap
	for i, w := range bell(2*radius+1, radius, sigma) {
		down, across = append(down, tap{0, i - radius, w}), append(across, tap{i - radius, 0, w})
	}
	if radius == 0 {
		return x
	}
	return x.filtered(down, at).filtered(across, at)
}

// zoomed returns the middle of the picture, enlarged to the picture's size by linear interpolation, like
// scipy.ndimage.zoom of order 1.
func (x raster) zoomed(factor float64) raster {
	type step struct {
		at    int
		share float64 // weight of the next pixel
	}
	steps := func(n int) []step {
		cut := int(math.Ceil(float64(n) / factor))
		first, size := (n-cut)/2, int(math.RoundToEven(float64(cut)*factor))
		out, trim := make([]step, n), (size-n)/2
		for i := range out {
			p := 0.0
			if size > 1 {
				p = float64(i+trim) * float64(cut-1) / float64(size-1)
			}
			whole := min(int(p), max(cut-2, 0))
			out[i] = step{first + whole, p - float64(whole)}
		}
		return out
	}
	across, down := steps(x.w), steps(x.h)
	out := newRaster(x.w, x.h, x.c)
	for y, d := range down {
		next := min(d.at+1, x.h-1)
		for px, a := range across {
			right := min(a.at+1, x.w-1)
			for k := range x.c {
				top := x.at(a.at, d.at, k)*(1-a.share) + x.at(right, d.at, k)*a.share
				bottom := x.at(a.at, next, k)*(1-a.share) + x.at(right, next, k)*a.share
				out.v[(y*x.w+px)*x.c+k] = top*(1-d.share) + bottom*d.share
			}
		}
	}
	return out
}

// moved blurs along a line, like ImageMagick's motion blur. The angle is in degrees.
func (x raster) moved(radius, sigma, angle float64) raster {
	sin, cos := math.Sincos(angle * math.Pi / 180)
	var taps []tap
	for i, w := range bell(2*int(math.Ceil(radius))+1, 0, sigma) {
		taps = append(taps, tap{int(math.Ceil(float64(i)*cos - 0.5)), int(math.Ceil(float64(i)*sin - 0.5)), w})
	}
	// ImageMagick returns 8 bits, rounded down.
	return x.filtered(taps, nearest).each(func(_ int, v float64) float64 { return math.Floor(v*255+1e-6) / 255 })
}
