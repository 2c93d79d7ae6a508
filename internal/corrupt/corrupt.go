// Package corrupt damages pictures as cameras, weather and compression do. It has the 15 corruptions of Hendrycks and
// Dietterich 2019 (arXiv:1903.12261) and their four extra ones, each in five severities.
//
// # Invariants
//
// The functions compute what the published ones compute, with two exceptions. Random numbers come from SplitMix64, so
// that a picture's seed gives the same picture on every machine. The published texture of frost is photographs, and this
// one is drawn. Results are rounded down to 8 bits, as the published ones are.
//
// Severities of small pictures are those of CIFAR-10-C, and others those of ImageNet-C. The published functions know
// squares of 32 and 224 pixels only. These take any size, and treat rows and columns alike.
//
// # Concurrency
//
// Functions keep no state and do not change their arguments.
package corrupt

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/splitmix"
	"github.com/swagwrap/swagwrap/internal/word"
)

// Severities is the number of severities. The first is 1.
const Severities = 5

// A Corruption is one way to damage a picture.
type Corruption struct {
	Name string
	// Extra corruptions are not among the 15 whose mean is usually reported. The authors keep them for choosing
	// settings.
	Extra bool
	apply func(x raster, s setting) raster
}

// setting is what a corruption depends on.
type setting struct {
	severity int // 0 to 4
	small    bool
	*random
}

// all is in the order of the paper.
var all = []Corruption{
	{"gaussian_noise", false, gaussianNoise},
	{"shot_noise", false, shotNoise},
	{"impulse_noise", false, impulseNoise},
	{"defocus_blur", false, defocusBlur},
	{"glass_blur", false, glassBlur},
	{"motion_blur", false, motionBlur},
	{"zoom_blur", false, zoomBlur},
	{"snow", false, snow},
	{"frost", false, frost},
	{"fog", false, fog},
	{"brightness", false, brightness},
	{"contrast", false, contrast},
	{"elastic_transform", false, elastic},
	{"pixelate", false, pixelate},
	{"jpeg_compression", false, jpegCompression},
	{"speckle_noise", true, speckleNoise},
	{"gaussian_blur", true, gaussianBlur},
	{"spatter", true, spatter},
	{"saturate", true, saturate},
}

// Common returns the 15 corruptions without the extra ones, in the order of the paper.
func Common() []Corruption {
	return slices.DeleteFunc(slices.Clone(all), func(c Corruption) bool { return c.Extra })
}

// Parse reads names separated by commas. "common" stands for the 15, and "all" for all.
func Parse(list string) (out []Corruption, err error) {
	for _, name := range strings.Split(list, ",") {
		i := slices.IndexFunc(all, func(c Corruption) bool { return c.Name == strings.TrimSpace(name) })
		switch {
		case name == "common":
			out = append(out, Common()...)
		case name == "all":
			out = append(out, all...)
		case i >= 0:
			out = append(out, all[i])
		default:
			var known []string
			for _, c := range all {
				known = append(known, c.Name)
			}
			return nil, fmt.Errorf("corruption %w", &word.Unknown{Word: name, Want: append(known, "common", "all")})
		}
	}
	return out, nil
}

// smallest is the length in pixels of the shorter side from which severities are those of ImageNet-C.
const smallest = 64

// Apply returns the damaged picture. severity is 1 to [Severities]. The seed decides about noise, weather and
// distortions. Grey pictures stay grey.
func (c Corruption) Apply(p picture.Picture, severity int, seed uint64) picture.Picture {
	if severity < 1 || severity > Severities {
		panic(fmt.Sprintf("corrupt: severity %d", severity))
	}
	x := newRaster(p.W, p.H, 3)
	for i, v := range p.As(3).Pix {
		x.v[i] = float64(v) / 255
	}
	x = c.apply(x, setting{severity - 1, min(p.W, p.H) < smallest, &random{seed: seed}})
	out := picture.New(p.W, p.H, 3)
	for i, v := range x.v {
		out.Pix[i] = byte(clip(v) * 255) // the published functions round down, too
	}
	return out.As(p.C)
}

// random is a stream of random numbers.
type random struct{ seed, n uint64 }

// uniform returns a number in [0, 1).
func (r *random) uniform() float64 {
	r.n++
	return float64(splitmix.At(r.seed, r.n-1)>>11) / (1 << 53)
}

// between returns a number in [lo, hi).
func (r *random) between(lo, hi float64) float64 { return lo + (hi-lo)*r.uniform() }

// normal returns a standard normal number, by the method of Box and Muller.
func (r *random) normal() float64 {
	u := 1 - r.uniform()
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*r.uniform())
}

// normals fills x with normal numbers.
func (r *random) normals(x raster, mean, std float64) raster {
	for i := range x.v {
		x.v[i] = mean + std*r.normal()
	}
	return x
}

// pick returns the element of a severity: of small pictures or of others.
func pick[T any](s setting, small, large [Severities]T) T {
	if s.small {
		return small[s.severity]
	}
	return large[s.severity]
}
