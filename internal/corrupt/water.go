package corrupt

import (
	"math"
	"slices"
)

// water returns how much drops shine, from 0 to 1: by the distance to their edges, lit from one corner. It follows the
// operators of OpenCV that the published function calls, each in its precision.
func (x raster) water() raster {
	// Outside [0, 1], the published conversion to bytes wraps around.
	drops := x.each(func(_ int, v float64) float64 { return float64(byte(int(v * 255))) })
	d := drops.edges().distance().each(func(_ int, v float64) float64 { return min(v, 20) })
	box := square(slices.Repeat([]float64{1. / 9}, 9), 3)
	d = d.filtered(box, mirror).each(func(_ int, v float64) float64 { return math.Floor(v + 1e-6) }).equalised()
	d = d.filtered(square([]float64{-2, -1, 0, -1, 1, 1, 0, 1, 2}, 3), mirror).each(func(_ int, v float64) float64 {
		return min(max(v, 0), 255)
	})
	d = d.filtered(box, mirror).each(func(_ int, v float64) float64 { return math.RoundToEven(v) })
	shine := drops.each(func(i int, v float64) float64 { return v * d.v[i] })
	most := slices.Max(shine.v)
	if most == 0 {
		return shine // no drop
	}
	return shine.each(func(_ int, v float64) float64 { return v / most })
}

// edges marks edges by 0 and other pixels by 1: Canny's detector with thresholds 50 and 150.
func (x raster) edges() raster {
	type gradient struct{ dx, dy, size int }
	g := make([]gradient, x.w*x.h)
	for y := range x.h {
		for px := range x.w {
			v := func(dx, dy int) int { return int(x.at(nearest(px+dx, x.w), nearest(y+dy, x.h), 0)) }
			dx := v(1, -1) + 2*v(1, 0) + v(1, 1) - v(-1, -1) - 2*v(-1, 0) - v(-1, 1)
			dy := v(-1, 1) + 2*v(0, 1) + v(1, 1) - v(-1, -1) - 2*v(0, -1) - v(1, -1)
			g[y*x.w+px] = gradient{dx, dy, max(dx, -dx) + max(dy, -dy)}
		}
	}
	size := func(px, y int) int {
		if px < 0 || y < 0 || px >= x.w || y >= x.h {
			return 0
		}
		return g[y*x.w+px].size
	}
	out := x.each(func(int, float64) float64 { return 1 })
	ridge := make([]bool, len(g))
	var strong []int
	for i, of := range g {
		px, y := i%x.w, i/x.w
		if of.size <= 50 {
			continue
		}
		across, down := max(of.dx, -of.dx), max(of.dy, -of.dy)<<15
		flat := across * 13573 // tan 22.5° in 15 bits
		switch {
		case down < flat:
			ridge[i] = of.size > size(px-1, y) && of.size >= size(px+1, y)
		case down > flat+across<<16: // tan 67.5°
			ridge[i] = of.size > size(px, y-1) && of.size >= size(px, y+1)
		default:
			side := 1
			if of.dx^of.dy < 0 {
				side = -1
			}
			ridge[i] = of.size > size(px-side, y-1) && of.size > size(px+side, y+1)
		}
		if ridge[i] && of.size > 150 {
			strong = append(strong, i)
		}
	}
	for len(strong) > 0 { // weak ridges count if they touch a strong one
		i := strong[len(strong)-1]
		strong = strong[:len(strong)-1]
		if out.v[i] == 0 {
			continue
		}
		out.v[i] = 0
		for dy := -1; dy <= 1; dy++ {
			for dx := -1; dx <= 1; dx++ {
				if px, y := i%x.w+dx, i/x.w+dy; px >= 0 && y >= 0 && px < x.w && y < x.h && ridge[y*x.w+px] {
					strong = append(strong, y*x.w+px)
				}
			}
		}
	}
	return out
}

// distance returns about the distance of each pixel to the next 0, by two passes with steps of a 5×5 mask (Borgefors
// 1986).
func (x raster) distance() raster {
	out := x.each(func(_ int, v float64) float64 {
		if v == 0 {
			return 0
		}
		return 8192
	})
	steps := []struct {
		dx, dy int
		length float64
	}{{-1, 0, 1}, {0, -1, 1}, {-1, -1, 1.4}, {1, -1, 1.4}, {-2, -1, 2.1969}, {2, -1, 2.1969}, {-1, -2, 2.1969}, {1, -2, 2.1969}}
	n := len(out.v)
	for _, sign := range []int{1, -1} {
		for k := range n {
			i := k
			if sign < 0 {
				i = n - 1 - k
			}
			for _, s := range steps {
				if px, y := i%x.w+sign*s.dx, i/x.w+sign*s.dy; px >= 0 && y >= 0 && px < x.w && y < x.h {
					out.v[i] = min(out.v[i], out.v[y*x.w+px]+s.length)
				}
			}
		}
	}
	return out
}

// equalised spreads the values 0 to 255 evenly, like OpenCV's equalizeHist.
func (x raster) equalised() raster {
	var count [256]int
	for _, v := range x.v {
		count[int(v)]++
	}
	first := slices.IndexFunc(count[:], func(n int) bool { return n > 0 })
	if count[first] == len(x.v) {
		return x
	}
	var to [256]float64
	scale, sum := float32(255)/float32(len(x.v)-count[first]), 0
	for i := first + 1; i < 256; i++ {
		sum += count[i]
		to[i] = math.RoundToEven(float64(float32(sum) * scale))
	}
	return x.each(func(_ int, v float64) float64 { return to[int(v)] })
}
