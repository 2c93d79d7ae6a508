package picture

import (
	"fmt"
	"image"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/word"
)

// Filter is an interpolation kernel. The zero value is torchvision's default.
type Filter int

// The filters of Pillow. When an image shrinks, each filter but Nearest becomes wider, so that every source pixel
// counts (torchvision: antialias).
const (
	Bilinear Filter = iota
	Nearest
	Bicubic
	Lanczos
	Box
	Hamming
)

// filters is indexed by Filter.
var filters = []struct {
	name    string
	support float64
	weight  func(x float64) float64
}{
	{"bilinear", 1, triangle},
	{"nearest", 0, nil},
	{"bicubic", 2, cubic},
	{"lanczos", 3, lanczos},
	{"box", 0.5, box},
	{"hamming", 1, hamming},
}

// PillowFilters lists the filters in the order of Pillow's constants for them.
var PillowFilters = []Filter{Nearest, Lanczos, Bilinear, Bicubic, Box, Hamming}

// String returns the name that timm and torchvision use, such as "bilinear".
func (f Filter) String() string {
	if f < 0 || int(f) >= len(filters) {
		return fmt.Sprintf("Filter(%d)", int(f))
	}
	return filters[f].name
}

// ParseFilter returns the filter with the given name in upper or lower case.
func ParseFilter(name string) (Filter, error) {
	var known []string
	for f, k := range filters {
		if strings.EqualFold(name, k.name) {
			return Filter(f), nil
		}
		known = append(known, k.name)
	}
	return 0, fmt.Errorf("interpolation %w", &word.Unknown{Word: name, Want: known})
}

// MarshalText writes the filter's name.
func (f Filter) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText is [ParseFilter].
func (f *Filter) UnmarshalText(text []byte) (err error) {
	*f, err = ParseFilter(string(text))
	return err
}

// Resize returns the part keep of src resized to w by h pixels, equal bit for bit to Image.resize((w, h), f) of
// Pillow 13. It computes only that part. The area of keep outside the resized image is black, as in torchvision's
// CenterCrop.
func Resize(src Picture, w, h int, f Filter, keep image.Rectangle) (Picture, error) {
	return resize(src, w, h, f, keep, false)
}

// ResizeTensor is Resize as torchvision does it with a tensor of bytes and antialias, for [Bilinear] and [Bicubic]. It is equal bit for
// bit to torchvision 0.29 on a processor with AVX2.
func ResizeTensor(src Picture, w, h int, f Filter, keep image.Rectangle) (Picture, error) {
	return resize(src, w, h, f, keep, true)
}

func resize(src Picture, w, h int, f Filter, keep image.Rectangle, tensor bool) (Picture, error) {
	for _, s := range []image.Point{{w, h}, keep.Size()} {
		if err := CheckSize(s.X, s.Y); err != nil {
			return Picture{}, fmt.Errorf("resize to %d×%d, crop to %v: %w", w, h, keep, err)
		}
	}
	dst := New(keep.Dx(), keep.Dy(), src.C)
	part := keep.Intersect(image.Rect(0, 0, w, h))
	if part.Empty() {
		return dst, nil
	}
	if f == Nearest {
		resizeNearest(dst, keep.Min, src, w, h, part)
		return dst, nil
	}
	across := newTaps(src.W, w, part.Min.X, part.Max.X, f, tensor)
	down := newTaps(src.H, h, part.Min.Y, part.Max.Y, f, tensor)
	origin, size := part.Min.Sub(keep.Min), part.Dx()*src.C
	out := func(i int) []byte { return dst.Row(origin.Y + i)[origin.X*src.C:][:size] }
	// Each pass rounds to bytes, so their order matters. Pillow 13 begins with the columns if that makes the second
	// pass much shorter. Earlier versions never did.
	if cut := src.H - h; cut > 0 && cut > 2*(src.W-w) && !tensor {
		resizeDownFirst(out, src, across, down)
	} else {
		resizeAcrossFirst(out, src, across, down)
	}
	return dst, nil
}

// resizeAcrossFirst resizes each source row when an output row first needs it. It keeps as many rows in a ring as an
// output row can need.
func resizeAcrossFirst(out func(i int) []byte, src Picture, across, down []tap) {
	size := len(across) * src.C
	depth := 0
	for _, t := range down {
		depth = max(depth, len(t.weights))
	}
	ring := make([]byte, depth*size)
	rows := make([][]byte, depth)
	sums := make([]int32, size)
	next := down[0].first
	for i, t := range down {
		rows = rows[:len(t.weights)]
		for j := range rows {
			y := t.first + j
			at := y % depth * size
			rows[j] = ring[at : at+size]
			if y >= next {
				resizeRow(rows[j], src.Row(y), across, src.C)
				next = y + 1
			}
		}
		combine(out(i), rows, t.weights, sums)
	}
}

func resizeDownFirst(out func(i int) []byte, src Picture, across, down []tap) {
	last := across[len(across)-1]
	lo, hi := across[0].first*src.C, (last.first+len(last.weights))*src.C
	row := make([]byte, src.W*src.C) // only lo to hi are used
	sums := make([]int32, hi-lo)
	var rows [][]byte
	for i, t := range down {
		rows = rows[:0]
		for j := range t.weights {
			rows = append(rows, src.Row(t.first + j)[lo:hi])
		}
		combine(row[lo:hi], rows, t.weights, sums)
		resizeRow(out(i), row, across, src.C)
	}
}

// A tap is the weighted sum for one output pixel. It covers the source pixels from first on.
type tap struct {
	first   int
	weights []int32 // in units of 1/one
}

const (
	precision = 22 // bits; PRECISION_BITS of Resample.c
	one       = 1 << precision
)

// newTaps returns the sums for the output pixels lo to hi of an axis that is resized from in to out pixels. It
// follows precompute_coeffs and normalize_coeffs_8bpc of Pillow's libImaging/Resample.c. PyTorch has the same weights for tensors, but
// rounds them so that the largest has 15 bits.
func newTaps(in, out, lo, hi int, f Filter, tensor bool) []tap {
	if from, to := lo, hi; tensor && (lo > 0 || hi < out) {
		return newTaps(in, out, 0, out, f, true)[from:to] // the largest weight may be anywhere
	}
	k := filters[f]
	scale := float64(in) / float64(out)
	stretch := max(scale, 1)
	support := k.support * stretch
	step := 1 / stretch
	taps := make([]tap, hi-lo)
	ends := make([]int, len(taps))
	var exact, all []float64 // the weights of one tap, and of all
	for i := range taps {
		centre := (float64(lo+i) + 0.5) * scale
		first := max(int(centre-support+0.5), 0)
		end := min(int(centre+support+0.5), in)
		exact = exact[:0]
		sum := 0.0
		for x := first; x < end; x++ {
			v := k.weight((float64(x) - centre + 0.5) * step)
			exact = append(exact, v)
			sum += v
		}
		for _, v := range exact {
			if sum != 0 {
				v /= sum
			}
			all = append(all, v)
		}
		taps[i].first, ends[i] = first, len(all)
	}
	bits := precision
	for largest := slices.Max(all); tensor && bits > 0 && int(0.5+math.Ldexp(largest, bits)) >= 1<<15; {
		bits--
	}
	fixed := make([]int32, len(all)) // the weights in fixed point
	for j, v := range all {
		fixed[j] = int32(math.Copysign(0.5, v)+math.Ldexp(v, bits)) << (precision - bits)
	}
	start := 0
	for i, end := range ends {
		taps[i].weights, start = fixed[start:end], end
	}
	return taps
}

// resizeRow resizes one row of pixels with c channels.
func resizeRow(dst, src []byte, taps []tap, c int) {
	if c == 1 {
		for i, t := range taps {
			sum := int32(one / 2)
			p := src[t.first:][:len(t.weights)]
			for j, w := range t.weights {
				sum += int32(p[j]) * w
			}
			dst[i] = clip(sum >> precision)
		}
		return
	}
	for i, t := range taps {
		r, g, b := int32(one/2), int32(one/2), int32(one/2)
		p := src[3*t.first:][:3*len(t.weights)]
		for j, w := range t.weights {
			q := p[3*j : 3*j+3 : 3*j+3]
			r += int32(q[0]) * w
			g += int32(q[1]) * w
			b += int32(q[2]) * w
		}
		d := dst[3*i : 3*i+3 : 3*i+3]
		d[0], d[1], d[2] = clip(r>>precision), clip(g>>precision), clip(b>>precision)
	}
}

// combine computes one row as the weighted sum of rows. It overwrites sums.
func combine(dst []byte, rows [][]byte, weights []int32, sums []int32) {
	sums = sums[:len(dst)]
	for i := range sums {
		sums[i] = one / 2
	}
	j := 0
	for ; j+3 < len(weights); j += 2 { // two rows at a time halve the work on sums
		a, b, v, w := rows[j][:len(sums)], rows[j+1][:len(sums)], weights[j], weights[j+1]
		for i := range sums {
			sums[i] += int32(a[i])*v + int32(b[i])*w
		}
	}
	addLast(dst, rows[j:], weights[j:], sums)
}

// addLast adds the last rows, at most three, to sums, and rounds them.
func addLast(dst []byte, rows [][]byte, weights, sums []int32) {
	if len(weights) == 0 {
		clear(dst)
		return
	}
	n := len(dst)
	sums = sums[:n]
	switch a := rows[0][:n]; len(weights) {
	case 1:
		for i := range dst {
			dst[i] = clip((sums[i] + int32(a[i])*weights[0]) >> precision)
		}
	case 2:
		b, u, v := rows[1][:n], weights[0], weights[1]
		for i := range dst {
			dst[i] = clip((sums[i] + int32(a[i])*u + int32(b[i])*v) >> precision)
		}
	case 3:
		b, c, u, v, w := rows[1][:n], rows[2][:n], weights[0], weights[1], weights[2]
		for i := range dst {
			dst[i] = clip((sums[i] + int32(a[i])*u + int32(b[i])*v + int32(c[i])*w) >> precision)
		}
	}
}

// clip returns the nearest byte. Most values need no change, so a branch is faster than two comparisons.
func clip(v int32) byte {
	if uint32(v) <= 255 {
		return byte(v)
	}
	return byte(^v >> 31)
}

// resizeNearest copies the source pixel that contains the centre of each output pixel. It adds the centres up one by
// one to get the same rounding as ImagingScaleAffine of Pillow's libImaging/Geometry.c.
func resizeNearest(dst Picture, origin image.Point, src Picture, w, h int, part image.Rectangle) {
	centres := func(in, out int) []int {
		at := make([]int, out)
		step := float64(in) / float64(out)
		pos := float64(step * 0.5)
		for i := range at {
			at[i] = int(pos)
			pos += step
		}
		return at
	}
	xs, ys := centres(src.W, w), centres(src.H, h)
	for y := part.Min.Y; y < part.Max.Y; y++ {
		if ys[y] >= src.H {
			continue // Pillow leaves this black, too
		}
		from, to := src.Row(ys[y]), dst.Row(y-origin.Y)
		for x := part.Min.X; x < part.Max.X; x++ {
			if xs[x] < src.W {
				copy(to[(x-origin.X)*src.C:][:src.C], from[xs[x]*src.C:])
			}
		}
	}
}

// The kernels of Pillow's libImaging/Resample.c. Products are converted before an addition, which rounds them. So no
// processor can use a fused multiply-add and get other weights.

func triangle(x float64) float64 { return max(0, 1-math.Abs(x)) }

func cubic(x float64) float64 {
	const a = -0.5
	switch x = math.Abs(x); {
	case x < 1:
		return float64((float64((a+2)*x)-(a+3))*x*x) + 1
	case x < 2:
		return (float64((float64((x-5)*x)+8)*x) - 4) * a
	}
	return 0
}

func lanczos(x float64) float64 {
	if x < -3 || x >= 3 {
		return 0
	}
	return sinc(x) * sinc(x/3)
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	x *= math.Pi
	return math.Sin(x) / x
}

func box(x float64) float64 {
	if x > -0.5 && x <= 0.5 {
		return 1
	}
	return 0
}

func hamming(x float64) float64 {
	if x = math.Abs(x); x >= 1 {
		return 0
	}
	const a, b = float32(0.54), float32(0.46) // Pillow uses single precision, too
	return sinc(x) * (float64(a) + float64(float64(b)*math.Cos(x*math.Pi)))
}

// ShortSide returns the size that torchvision's Resize(size) gives a w by h image. The shorter side becomes size, and
// the longer one keeps the proportions, rounded down.
func ShortSide(w, h, size int) (int, int) {
	// Divide in floating point, as Python does.
	long := int(float64(size*max(w, h)) / float64(min(w, h)))
	if w <= h {
		return size, long
	}
	return long, size
}

// CentreCrop returns the part of a w by h image that torchvision's CenterCrop((ch, cw)) keeps. If the image is
// smaller, the rectangle extends beyond it, and [Resize] makes that part black.
func CentreCrop(w, h, cw, ch int) image.Rectangle {
	start := func(have, want int) int {
		if have < want {
			return -((want - have) / 2) // the odd pixel of padding comes last
		}
		return int(math.RoundToEven(float64(have-want) / 2))
	}
	at := image.Pt(start(w, cw), start(h, ch))
	return image.Rectangle{at, at.Add(image.Pt(cw, ch))}
}
