package corrupt

import (
	"math"
	"slices"
)

// snow lays moving flakes over a picture that is whitened.
func snow(x raster, s conditions) raster {
	type of struct{ mean, std, zoom, least, radius, sigma, keep float64 }
	c := pick(s, [...]of{{.1, .2, 1, .6, 8, 3, .95}, {.1, .2, 1, .5, 10, 4, .9}, {.15, .3, 1.75, .55, 10, 4, .9},
		{.25, .3, 2.25, .6, 12, 6, .85}, {.3, .3, 1.25, .65, 14, 12, .8}},
		[...]of{{.1, .3, 3, .5, 10, 4, .8}, {.2, .3, 2, .5, 12, 4, .7}, {.55, .3, 4, .9, 12, 8, .7}, {.55, .3, 4.5, .85, 12, 8, .65},
			{.55, .3, 2.5, .85, 12, 12, .55}})
	flakes := s.normals(newRaster(x.w, x.h, 1), c.mean, c.std).zoomed(c.zoom).each(func(_ int, v float64) float64 {
		if v < c.least {
			return 0
		}
		return math.Floor(clip(v)*255) / 255
	})
	flakes = flakes.moved(c.radius, c.sigma, s.between(-135, -45))
	n := len(flakes.v)
	return x.each(func(i int, v float64) float64 {
		p := i / x.c
		rgb := x.v[p*x.c:][:3]
		white := (.299*rgb[0]+.587*rgb[1]+.114*rgb[2])*1.5 + .5
		return c.keep*v + (1-c.keep)*max(v, white) + flakes.v[p] + flakes.v[n-1-p] // the second layer is turned by 180°
	})
}

// fog adds a random landscape to the brightness.
func fog(x raster, s conditions) raster {
	type of struct{ density, decay float64 }
	c := pick(s, [...]of{{.2, 3}, {.5, 3}, {.75, 2.5}, {1, 2}, {1.5, 1.75}}, [...]of{{1.5, 2}, {2, 2}, {2.5, 1.7}, {2.5, 1.5}, {3, 1.4}})
	plasma, most := s.plasma(x.w, x.h, c.decay), slices.Max(x.v)
	return x.each(func(i int, v float64) float64 { return (v + c.density*plasma.v[i/x.c]) * most / (most + c.density) })
}

// plasma returns a random landscape of heights from 0 to 1 by the diamond-square algorithm. It is a corner of a square
// whose side is a power of two.
func (r *random) plasma(w, h int, decay float64) raster {
	n := 2
	for n < max(w, h) {
		n *= 2
	}
	m := newRaster(n, n, 1)
	at := func(y, x int) *float64 { return &m.v[(y&(n-1))*n+x&(n-1)] } // the square continues on its other side
	wobble := 100.0
	for step := n; step >= 2; step /= 2 {
		half := step / 2
		// fill sets the points from (y0, x0) on to the mean of four others, plus noise.
		fill := func(y0, x0 int, mean func(y, x int) float64) {
			for y := y0; y < n; y += step {
				for x := x0; x < n; x += step {
					*at(y, x) = mean(y, x)/4 + wobble*r.between(-wobble, wobble)
				}
			}
		}
		fill(half, half, func(y, x int) float64 {
			return *at(y-half, x-half) + *at(y+half, x-half) + *at(y-half, x+half) + *at(y+half, x+half)
		})
		cross := func(y, x int) float64 { return *at(y-half, x) + *at(y+half, x) + *at(y, x-half) + *at(y, x+half) }
		fill(0, half, cross)
		fill(half, 0, cross)
		wobble /= decay
	}
	low, high := slices.Min(m.v), slices.Max(m.v)
	out := newRaster(w, h, 1)
	for i := range out.v {
		out.v[i] = (*at(i/w, i%w) - low) / (high - low)
	}
	return out
}

// frost mixes the picture with ice. The published function takes the ice from photographs. Without them this one draws it: a
// random brightness, and a rough landscape with ridges. Colour, contrast and roughness are about those of the photographs.
func frost(x raster, s conditions) raster {
	type of struct{ keep, ice float64 }
	c := pick(s, [...]of{{1, .2}, {1, .3}, {.9, .4}, {.85, .4}, {.75, .45}}, [...]of{{1, .4}, {.8, .6}, {.7, .7}, {.65, .7}, {.6, .75}})
	if s.ice != nil {
		return x.iced(s, c.keep, c.ice)
	}
	light, coarse, fine := s.between(-.26, .26), s.plasma(x.w, x.h, 1.8), s.plasma(x.w, x.h, 1.1)
	colour := [3]float64{144. / 255, 165. / 255, 177. / 255}
	return x.each(func(i int, v float64) float64 {
		p := i / x.c
		ridge := 1 - math.Abs(2*fine.v[p]-1)
		return c.keep*v + c.ice*clip(colour[i%x.c]+light+.15*(coarse.v[p]-.5)+.45*(ridge-.755))
	})
}

// iced mixes the picture with a random cut of one of the photographs. Small pictures have photographs of a fifth
// of the size: OpenCV then takes every fifth pixel.
func (x raster) iced(s conditions, keep, ice float64) raster {
	p := s.ice[s.below(len(s.ice))]
	step, w, h := iceSize(p, s.small)
	top, left := s.below(h-x.h), s.below(w-x.w)
	return x.each(func(i int, v float64) float64 {
		row, column := top+i/x.c/x.w, left+i/x.c%x.w
		at := (step*row+step/2)*p.W + step*column + step/2
		return math.Floor(keep*math.Round(255*v)+ice*float64(p.Pix[at*p.C+i%x.c])) / 255
	})
}

// spatter puts drops of water or mud on the lens.
func spatter(x raster, s conditions) raster {
	type of struct {
		mean, std, sigma, least, amount float64
		mud                             bool
	}
	c := pick(s, [...]of{{.62, .1, .7, .7, .5, false}, {.65, .1, .8, .7, .5, false}, {.65, .3, 1, .69, .5, false},
		{.65, .1, .7, .69, .6, true}, {.65, .1, .5, .68, .6, true}},
		[...]of{{.65, .3, 4, .69, .6, false}, {.65, .3, 3, .68, .6, false}, {.65, .3, 2, .68, .5, false}, {.65, .3, 1, .65, 1.5, true},
			{.67, .4, 1, .65, 1.5, true}})
	drops := s.normals(newRaster(x.w, x.h, 1), c.mean, c.std).gaussian(c.sigma, 4, nearest).each(func(_ int, v float64) float64 {
		if v < c.least {
			return 0
		}
		return v
	})
	if !c.mud {
		shine := drops.water()
		colour := [3]float64{175. / 255, 238. / 255, 238. / 255}
		return x.each(func(i int, v float64) float64 { return v + c.amount*shine.v[i/x.c]*colour[i%x.c] })
	}
	mud := drops.each(func(_ int, v float64) float64 {
		if v > c.least {
			return 1
		}
		return 0
	}).gaussian(c.amount, 4, nearest)
	colour := [3]float64{63. / 255, 42. / 255, 20. / 255}
	return x.each(func(i int, v float64) float64 {
		m := mud.v[i/x.c]
		if m < .8 {
			m = 0
		}
		return v*(1-m) + colour[i%x.c]*m
	})
}
