// Package corrupt damages inputs of networks, in five severities.
//
// Pictures are damaged as cameras, weather and compression do, by the 15 corruptions of Hendrycks and Dietterich 2019
// (arXiv:1903.12261) and their four extra ones. Numbers of tables are lost, noisy, or in units that drift. Tokens of texts
// are lost, replaced or swapped. Words of texts are lost or have typing errors.
//
// # Invariants
//
// The functions of pictures compute what the published ones compute, with two exceptions. Random numbers come from
// SplitMix64 and the picture's seed. The published texture of frost is photographs. This one is drawn, unless there
// are photographs. Results are rounded down to 8 bits, as the published ones are. fixtures/shift/README.md has the
// differences.
//
// Severities of small pictures are those of CIFAR-10-C, and others those of ImageNet-C. The published functions know
// squares of 32 and 224 pixels only. These take any size, and treat rows and columns alike.
//
// # Concurrency
//
// Functions keep no state. Those of pictures do not change their arguments.
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

// Version changes whenever a corruption gives other values for the same seed.
const Version = 1

// Kind is what a corruption damages.
type Kind string

const (
	Pictures Kind = "pictures"
	Numbers  Kind = "numbers"
	Tokens   Kind = "tokens"
	Words    Kind = "words"
)

// A Corruption is one way to damage an input. One of its functions is set.
type Corruption struct {
	Name string
	Kind Kind
	// Extra corruptions are not among those whose mean is usually reported. The authors keep them for choosing settings.
	Extra bool
	// Moves says that pixels move, so that labels of pixels no longer fit.
	Moves bool
	// Ice are photographs of ice for frost. Without them the ice is drawn.
	Ice     []picture.Picture
	picture func(x raster, s conditions) raster
	number  func(v float64, c Column, size float64, r, common *random) float64
	token   func(n int, share float64, r *random) []int
	word    func(w string, share float64, letters []rune, r *random) string
}

// conditions are what a corruption of pictures depends on.
type conditions struct {
	severity int // 0 to 4
	small    bool
	ice      []picture.Picture
	*random
}

// all is in the order of the paper.
var all = []Corruption{
	{Name: "gaussian_noise", Kind: Pictures, picture: gaussianNoise},
	{Name: "shot_noise", Kind: Pictures, picture: shotNoise},
	{Name: "impulse_noise", Kind: Pictures, picture: impulseNoise},
	{Name: "defocus_blur", Kind: Pictures, picture: defocusBlur},
	{Name: "glass_blur", Kind: Pictures, picture: glassBlur},
	{Name: "motion_blur", Kind: Pictures, picture: motionBlur},
	{Name: "zoom_blur", Kind: Pictures, picture: zoomBlur},
	{Name: "snow", Kind: Pictures, picture: snow},
	{Name: "frost", Kind: Pictures, picture: frost},
	{Name: "fog", Kind: Pictures, picture: fog},
	{Name: "brightness", Kind: Pictures, picture: brightness},
	{Name: "contrast", Kind: Pictures, picture: contrast},
	{Name: "elastic_transform", Kind: Pictures, Moves: true, picture: elastic},
	{Name: "pixelate", Kind: Pictures, picture: pixelate},
	{Name: "jpeg_compression", Kind: Pictures, picture: jpegCompression},
	{Name: "speckle_noise", Kind: Pictures, Extra: true, picture: speckleNoise},
	{Name: "gaussian_blur", Kind: Pictures, Extra: true, picture: gaussianBlur},
	{Name: "spatter", Kind: Pictures, Extra: true, picture: spatter},
	{Name: "saturate", Kind: Pictures, Extra: true, picture: saturate},
	{Name: "missing", Kind: Numbers, number: missing},
	{Name: "noise", Kind: Numbers, number: noise},
	{Name: "drift", Kind: Numbers, number: drift},
	{Name: "drop", Kind: Tokens, token: dropTokens},
	{Name: "replace", Kind: Tokens, token: replaceTokens},
	{Name: "swap", Kind: Tokens, token: swapTokens},
	{Name: "typos", Kind: Words, word: typos},
	{Name: "drop_words", Kind: Words, word: dropWords},
}

// Parse reads names of corruptions of a kind, separated by commas. "common" stands for all without the extra ones, and
// "all" for all. The kind "" accepts every name.
func Parse(list string, kind Kind) (out []Corruption, err error) {
	known := []string{"common", "all"}
	for _, c := range all {
		if kind == "" || c.Kind == kind {
			known = append(known, c.Name)
		}
	}
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(known, name) {
			if i := slices.IndexFunc(all, func(c Corruption) bool { return c.Name == name }); i >= 0 {
				return nil, fmt.Errorf("%s damages %s, and the data are %s: want %s", name, all[i].Kind, kind, word.Either(known))
			}
			return nil, fmt.Errorf("corruption %w", &word.Unknown{Word: name, Want: known})
		}
		for _, c := range all {
			if (kind == "" || c.Kind == kind) && (c.Name == name || name == "all" || name == "common" && !c.Extra) {
				if slices.ContainsFunc(out, func(o Corruption) bool { return o.Name == c.Name }) {
					return nil, fmt.Errorf("corruption %s is there twice", c.Name)
				}
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// smallest is the length in pixels of the shorter side from which severities are those of ImageNet-C.
const smallest = 64

// Picture returns the damaged picture. severity is 1 to [Severities]. The seed decides about noise, weather and
// distortions. Grey pictures stay grey.
func (c Corruption) Picture(p picture.Picture, severity int, seed uint64) picture.Picture {
	x := newRaster(p.W, p.H, 3)
	for i, v := range p.As(3).Pix {
		x.v[i] = float64(v) / 255
	}
	x = c.picture(x, conditions{severity - 1, min(p.W, p.H) < smallest, c.Ice, &random{seed: seed}})
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
	return float64(splitmix.Nth(r.seed, r.n-1)>>11) / (1 << 53)
}

// below returns a number from 0 to n−1.
func (r *random) below(n int) int { return int(r.uniform() * float64(n)) }

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
func pick[T any](s conditions, small, large [Severities]T) T {
	if s.small {
		return small[s.severity]
	}
	return large[s.severity]
}
