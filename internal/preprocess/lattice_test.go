package preprocess

import (
	"math/rand/v2"
	"testing"
)

// Normalisations of common models and odd ones come back digit by digit, with the arithmetic of torchvision. Values that
// are not normalised pixels give nothing.
func TestNormalized(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pixels := func(mean, std float32, step int) (out []float32) {
		for range 3000 {
			k := step * rng.IntN(levels/step+1)
			out = append(out, (float32(k)/levels-mean)/std)
		}
		return append(out, -mean/std, (1-mean)/std)
	}
	for _, c := range [][2]float64{{0.1307, 0.3081}, {0.485, 0.229}, {0.456, 0.224}, {0.406, 0.225}, {0.5, 0.5}, {0.48145466, 0.26862954}, {0, 1}, {0.4914, 0.2023}, {0.286041, 0.353024}} {
		values := pixels(float32(c[0]), float32(c[1]), 1)
		for name, v := range map[string][]float32{"plain": values, "padded": append(values, 0, 0)} {
			mean, std, ok := Normalized(v)
			if tolerance := 2e-6; !ok || abs(mean-c[0]) > tolerance || abs(std-c[1]) > tolerance {
				t.Errorf("%s, mean %v, std %v: got %v, %v, %v", name, c[0], c[1], mean, std, ok)
			}
			if c[0] != 0.48145466 && c[0] != 0.286041 && (mean != c[0] || std != c[1]) {
				t.Errorf("%s: got %v, %v, want the digits %v, %v", name, mean, std, c[0], c[1])
			}
		}
	}
	noise := make([]float32, 500)
	for i := range noise {
		noise[i] = float32(rng.NormFloat64())
	}
	for name, v := range map[string][]float32{
		"noise": noise, "none": nil, "two values": {0, 1, 0, 1}, "one value": {3, 3, 3},
		"16 levels":    pixels(0, 1, 17),
		"part of them": pixels(0.5, 0.5, 1)[:3], // the ends are missing, but for chance
	} {
		if mean, std, ok := Normalized(v); ok {
			t.Errorf("%s: got mean %v and std %v", name, mean, std)
		}
	}
}

func abs(v float64) float64 { return max(v, -v) }

// Pictures without the darkest or the brightest level leave the mean open by some levels. The one with few digits is found, a wrong one is
// rare, and pictures of every second level, which look like others, give nothing.
func TestNormalizedWithoutEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	pixels := func(mean, std float32, low, high, step int) (out []float32) {
		for k := low; k <= high; k += step {
			out = append(out, (float32(k)/levels-mean)/std)
		}
		return out
	}
	for _, c := range []struct {
		mean, std float64
		low, high int
	}{
		{0.3, 0.35, 0, 254},
		{0.485, 0.229, 0, 250},
		{0.4914, 0.2023, 1, 255},
		{0.5, 0.5, 16, 235},
		{0.13, 0.31, 20, 230},
	} {
		mean, std, ok := Normalized(pixels(float32(c.mean), float32(c.std), c.low, c.high, 1))
		if !ok || mean != c.mean || std != c.std {
			t.Errorf("%v: got %v, %v, %v", c, mean, std, ok)
		}
	}
	if mean, std, ok := Normalized(pixels(0.5, 0.5, 0, 254, 2)); ok {
		t.Errorf("every second level: got %v, %v", mean, std)
	}
	if mean, std, ok := Normalized(pixels(0.13, 0.31, 40, 200, 1)); ok { // 51 levels are 0.2: 0.33 fits as well
		t.Errorf("half of the scale: got %v, %v", mean, std)
	}
	wrong, all := 0, 400
	for range all { // means of seven digits, of which none may be found
		mean, std := float32(0.3+0.3*rng.Float64()), float32(0.2+0.01*float64(rng.IntN(20)))
		low, high := rng.IntN(50), 205+rng.IntN(50)
		if m, _, ok := Normalized(pixels(mean, std, low, high, 1)); ok && abs(m-float64(mean)) > 2e-6 {
			wrong++
		}
	}
	if wrong > all/20 {
		t.Errorf("%d of %d wrong", wrong, all)
	}
}
