package corrupt

import "math"

func gaussianBlur(x raster, s conditions) raster {
	return x.gaussian(pick(s, [...]float64{.4, .6, .7, .8, 1}, [...]float64{1, 2, 3, 4, 6}), 4, nearest)
}

// glassBlur blurs, takes each pixel from a place nearby, and blurs again. The published code means to swap two pixels. It
// copies one of them instead, and so does this.
func glassBlur(x raster, s conditions) raster {
	type of struct {
		sigma         float64
		reach, passes int
	}
	c := pick(s, [...]of{{.05, 1, 1}, {.25, 1, 1}, {.4, 1, 1}, {.25, 1, 2}, {.4, 1, 2}},
		[...]of{{.7, 1, 2}, {.9, 2, 1}, {1, 2, 3}, {1.1, 3, 2}, {1.5, 4, 2}})
	out := x.gaussian(c.sigma, 4, nearest).each(func(_ int, v float64) float64 { return math.Floor(v*255) / 255 })
	step := func() int { return int(s.between(0, float64(2*c.reach))) - c.reach }
	for range c.passes {
		for y := x.h - c.reach; y > c.reach; y-- {
			for px := x.w - c.reach; px > c.reach; px-- {
				dx, dy := step(), step()
				copy(out.v[(y*x.w+px)*x.c:][:x.c], out.v[((y+dy)*x.w+px+dx)*x.c:][:x.c])
			}
		}
	}
	return out.gaussian(c.sigma, 4, nearest)
}

// defocusBlur is a lens out of focus: each point becomes a disk.
func defocusBlur(x raster, s conditions) raster {
	type of struct{ radius, alias float64 }
	c := pick(s, [...]of{{.3, .4}, {.4, .5}, {.5, .6}, {1, .2}, {1.5, .1}}, [...]of{{3, .1}, {4, .5}, {6, .5}, {8, .5}, {10, .5}})
	reach, blur := 8, 1 // the blur makes the disk's border smooth
	if c.radius > 8 {
		reach, blur = int(c.radius), 2
	}
	n := 2*reach + 1
	disk, sum := newRaster(n, n, 1), 0.0
	for i := range disk.v {
		dx, dy := float64(i%n-reach), float64(i/n-reach)
		if dx*dx+dy*dy <= c.radius*c.radius {
			disk.v[i] = 1
			sum++
		}
	}
	disk = disk.each(func(_ int, v float64) float64 { return v / sum })
	return x.filtered(square(disk.gaussian(c.alias, float64(blur)/c.alias, mirror).v, n), mirror)
}

func motionBlur(x raster, s conditions) raster {
	type of struct{ radius, sigma float64 }
	c := pick(s, [...]of{{6, 1}, {6, 1.5}, {6, 2}, {8, 2}, {9, 2.5}}, [...]of{{10, 3}, {15, 5}, {15, 8}, {15, 12}, {20, 15}})
	return exact(x.moved(c.radius, c.sigma, s.between(-45, 45)))
}

// zoomBlur is the mean of the picture and its enlargements.
func zoomBlur(x raster, s conditions) raster {
	type of struct {
		n    int
		step float64
	}
	c := pick(s, [...]of{{7, .01}, {12, .01}, {16, .01}, {21, .01}, {26, .01}},
		[...]of{{12, .01}, {16, .01}, {11, .02}, {13, .02}, {11, .03}})
	sum := x
	for i := range c.n {
		z := x.zoomed(1 + float64(i)*((1+c.step)-1)) // numpy.arange rounds the step like this
		sum = sum.each(func(j int, v float64) float64 { return v + z.v[j] })
	}
	return sum.each(func(_ int, v float64) float64 { return v / float64(c.n+1) })
}
