package corrupt

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

func gaussianNoise(x raster, s conditions) raster {
	std := pick(s, [...]float64{.04, .06, .08, .09, .10}, [...]float64{.08, .12, .18, .26, .38})
	return x.each(func(_ int, v float64) float64 { return v + std*s.normal() })
}

func speckleNoise(x raster, s conditions) raster {
	std := pick(s, [...]float64{.06, .1, .12, .16, .2}, [...]float64{.15, .2, .35, .45, .6})
	return x.each(func(_ int, v float64) float64 { return v + v*std*s.normal() })
}

// shotNoise counts photons: a Poisson number whose mean is the brightness times a rate.
func shotNoise(x raster, s conditions) raster {
	rate := pick(s, [...]float64{500, 250, 100, 75, 50}, [...]float64{60, 25, 12, 5, 3})
	known := map[float64][]float64{} // a picture has at most 256 brightnesses
	return x.each(func(_ int, v float64) float64 {
		c := known[v]
		if c == nil {
			c = poisson(v * rate)
			known[v] = c
		}
		n, _ := slices.BinarySearch(c, s.uniform())
		return float64(n) / rate
	})
}

// poisson returns the probabilities of at most 0, 1, 2 … for a Poisson number, until almost 1.
func poisson(mean float64) (out []float64) {
	p := distuv.Poisson{Lambda: mean}
	for n := 0.0; n == 0 || out[len(out)-1] < 1-1e-15 && n < mean+40*math.Sqrt(mean+1); n++ {
		out = append(out, p.CDF(n))
	}
	return out
}

// impulseNoise makes values black or white: salt and pepper.
func impulseNoise(x raster, s conditions) raster {
	share := pick(s, [...]float64{.01, .02, .03, .05, .07}, [...]float64{.03, .06, .09, .17, .27})
	return x.each(func(_ int, v float64) float64 {
		hit, white := s.uniform() <= share, s.uniform() <= 0.5
		switch {
		case hit && white:
			return 1
		case hit:
			return 0
		}
		return v
	})
}
