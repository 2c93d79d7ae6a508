package corrupt

import (
	"math"
	"slices"
)

func gaussianNoise(x raster, s setting) raster {
	std := pick(s, [...]float64{.04, .06, .08, .09, .10}, [...]float64{.08, .12, .18, .26, .38})
	return x.each(func(_ int, v float64) float64 { return v + std*s.normal() })
}

func speckleNoise(x raster, s setting) raster {
	std := pick(s, [...]float64{.06, .1, .12, .16, .2}, [...]float64{.15, .2, .35, .45, .6})
	return x.each(func(_ int, v float64) float64 { return v + v*std*s.normal() })
}

// shotNoise counts photons: a Poisson number whose mean is the brightness times a rate.
func shotNoise(x raster, s setting) raster {
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
func poisson(mean float64) []float64 {
	var out []float64
	for n, sum := 0, 0.0; sum < 1-1e-15 && float64(n) < mean+40*math.Sqrt(mean+1); n++ {
		g, _ := math.Lgamma(float64(n) + 1)
		term := math.Exp(-mean)
		if mean > 0 {
			term = math.Exp(float64(n)*math.Log(mean) - mean - g)
		} else if n > 0 {
			term = 0
		}
		sum += term
		out = append(out, sum)
	}
	return out
}

// impulseNoise makes values black or white: salt and pepper.
func impulseNoise(x raster, s setting) raster {
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
