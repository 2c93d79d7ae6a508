// Package augment changes pictures at random as training did, with torchvision's transforms on PIL images.
// Batch-norm statistics belong to the pictures that the network was trained on, so they are computed on
// augmented pictures.
//
// [Parse] reads a pipeline from text: torchvision's code, the printed form of a Compose, or a preset. A pipeline has
// two stages. [Pipeline.Picture] changes 8-bit pixels, and [Pipeline.Erase] changes
// the normalised values that the network takes.
//
// For given parameters, pixels equal those of torchvision 0.29 with Pillow 13, bit for bit. The parameters have the
// distributions of torchvision's get_params. The random numbers differ: they come from math/rand/v2's PCG, seeded
// with the picture's number.
//
// Transforms after ToTensor or ToImage are computed on 8-bit pixels too. So they can differ by a level from
// torchvision's arithmetic for tensors.
//
// # Invariants
//
// Picture and Erase are pure functions of their arguments. The same picture with the same key gives the same result
// in every run and in every goroutine. A pipeline from [Pipeline.Resolve] leaves no size open. Parse turns the text
// of [Pipeline.String] into an equal pipeline.
//
// # Concurrency
//
// A Pipeline does not change; its methods may be called from any number of goroutines.
package augment

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// Pipeline is a list of random changes in the order of their application. The zero value changes nothing.
type Pipeline struct {
	ops    []op // operations on pixels
	erases []*erase
	// Mean and Std are the arguments of the text's Normalize: one value per channel, a single one, or nil. They are
	// not applied here. The caller compares them with its own preprocessing.
	Mean, Std []float64
}

// An op is one change of a picture.
type op interface {
	transform
	// size returns the height and width after the op for a picture of h by w pixels. Zeros mean unknown.
	size(h, w int) (int, int, error)
	// apply draws random parameters and changes the picture.
	apply(c *canvas, r *random) error
}

// A fitter is an op that may leave the size open. fit returns it with the network's height and width.
type fitter interface{ fit(h, w int) op }

// keepsSize is part of the ops that do not change the size of a picture.
type keepsSize struct{}

func (keepsSize) size(h, w int) (int, int, error) { return h, w, nil }

// None reports whether the pipeline changes nothing.
func (p Pipeline) None() bool { return len(p.ops) == 0 && len(p.erases) == 0 }

// Erases reports whether [Pipeline.Erase] changes anything.
func (p Pipeline) Erases() bool { return len(p.erases) > 0 }

// String returns the pipeline as text without default arguments: "none", or "RandomCrop(32, padding=4),
// RandomHorizontalFlip".
func (p Pipeline) String() string {
	var words []string
	for _, o := range p.ops {
		words = append(words, textOf(o))
	}
	if p.Mean != nil || p.Std != nil {
		words = append(words, textOf(&normalize{p.Mean, p.Std}))
	}
	for _, e := range p.erases {
		words = append(words, textOf(e))
	}
	if words == nil {
		return "none"
	}
	return strings.Join(words, ", ")
}

// Equal reports whether both pipelines change every picture in the same way.
func (p Pipeline) Equal(q Pipeline) bool { return p.String() == q.String() }

// MarshalText returns [Pipeline.String].
func (p Pipeline) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is [Parse].
func (p *Pipeline) UnmarshalText(text []byte) (err error) {
	*p, err = Parse(string(text))
	return err
}

// Resolve fills in the network's height and width, in pixels, where the pipeline leaves a size open. It fails if
// pictures would end with another size.
func (p Pipeline) Resolve(h, w int) (Pipeline, error) {
	if err := picture.CheckSize(w, h); err != nil {
		return p, err
	}
	p.ops = slices.Clone(p.ops)
	for i, o := range p.ops {
		if o, isOpen := o.(fitter); isOpen {
			p.ops[i] = o.fit(h, w)
		}
	}
	eh, ew, err := p.Size()
	if err != nil {
		return p, err
	}
	if eh != 0 && (eh != h || ew != w) {
		return p, fmt.Errorf("%s makes pictures of %d×%d pixels, and the network takes %d×%d", p, ew, eh, w, h)
	}
	return p, nil
}

// Size returns the final height and width of all pictures in pixels. It returns zeros if the size depends on the
// picture or is left open. It fails if a step needs a larger picture than the previous step returns.
func (p Pipeline) Size() (h, w int, err error) {
	for _, o := range p.ops {
		if h, w, err = o.size(h, w); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", textOf(o), err)
		}
	}
	return h, w, nil
}

// CheckChannels returns an error if the pipeline has per-channel values and their number is not c.
func (p Pipeline) CheckChannels(c int) error {
	for _, o := range p.ops {
		if o, ok := o.(*randomCrop); ok && len(o.fill) > 1 && len(o.fill) != c {
			return fmt.Errorf("%s: fill has %d values, and pictures have %d channels", textOf(o), len(o.fill), c)
		}
	}
	for _, e := range p.erases {
		if len(e.value) > 1 && len(e.value) != c {
			return fmt.Errorf("%s: value has %d numbers, and pictures have %d channels", textOf(e), len(e.value), c)
		}
	}
	return nil
}

var errOpen = errors.New("the size is left open, want the network's: Resolve first")

// Picture returns src as one epoch of training might have seen it. The result depends only on src and on key, the
// picture's number. src has 1 or 3 channels, red first, and is not changed; the result may share its memory. An error
// says which requirement of the pipeline the picture does not meet.
func (p Pipeline) Picture(src picture.Picture, key uint64) (picture.Picture, error) {
	c := canvas{Picture: src}
	r := newRandom(key, pictureStream)
	for _, o := range p.ops {
		if err := o.apply(&c, r); err != nil {
			return picture.Picture{}, fmt.Errorf("%s: %w", textOf(o), err)
		}
	}
	return c.Picture, nil
}

// Erase makes the changes that torchvision makes after Normalize: it overwrites rectangles of dst. The normalised
// values dst belong to a picture with c channels of h by w values. Channels are the last dimension if last is true,
// else the first. The argument key is the picture's number. Erase panics if dst does not have c·h·w values.
func (p Pipeline) Erase(dst []float32, c, h, w int, last bool, key uint64) {
	if len(dst) != c*h*w {
		panic("augment: dst is not c·h·w long")
	}
	r := newRandom(key, eraseStream)
	for _, e := range p.erases {
		e.apply(tensor{dst, c, h, w, last}, r)
	}
}

// canvas is the picture that a pipeline changes.
type canvas struct {
	picture.Picture
	own bool // the pipeline owns Pix and may overwrite it
}

// set replaces the picture by a new one.
func (c *canvas) set(p picture.Picture) { c.Picture, c.own = p, true }

// mine copies Pix unless the pipeline owns it already.
func (c *canvas) mine() {
	if !c.own {
		c.Pix, c.own = slices.Clone(c.Pix), true
	}
}

// random draws the random parameters that torchvision's get_params draws.
type random struct{ *rand.Rand }

// Each stage has its own stream, so that caching the result of the first does not change the second.
const (
	pictureStream = 0x70696374757265 // "picture"
	eraseStream   = 0x6572617365     // "erase"
)

func newRandom(key, stream uint64) *random { return &random{rand.New(rand.NewPCG(key, stream))} }

// between returns a uniform number between v[0] and v[1]. The conversion rounds the product, so no processor can fuse
// it with the addition.
func (r *random) between(v [2]float64) float64 {
	return v[0] + float64((v[1]-v[0])*r.Float64())
}

func (r *random) happens(p float64) bool { return r.Float64() < p }
