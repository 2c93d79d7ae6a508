// Package augment changes pictures at random as they were changed in training:
// torchvision's transforms on PIL images, and timm's where they differ. Batch-norm
// statistics belong to the pictures that the network was trained on, so they are
// computed on these.
//
// [Parse] reads a pipeline from text: torchvision's code, the printed form of a
// Compose, or a preset; [ReadFile] reads timm's args.yaml. A pipeline has two
// stages: [Pipeline.Picture] changes 8-bit pixels, [Pipeline.Erase] the normalised
// values that the network takes.
//
// For given parameters pixels are those of torchvision 0.29 with Pillow 13, bit
// for bit, and the parameters have the distributions that torchvision's
// get_params gives them. The random numbers themselves are others: those of
// math/rand/v2's PCG, seeded by the picture's number.
//
// What stands behind ToTensor or ToImage is computed on 8-bit pixels all the
// same, which is not torchvision's arithmetic for tensors to the last level.
//
// # Invariants
//
// Picture and Erase are pure functions of their arguments: the same picture with
// the same key comes out alike in every run and from every goroutine. A pipeline
// that [Pipeline.Resolve] returned leaves no size open. The text of
// [Pipeline.String] is read back by Parse to an equal pipeline.
//
// # Concurrency
//
// A Pipeline does not change; its methods may be called from any number of
// goroutines.
package augment

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// Pipeline is a list of random changes, in the order in which they are made. The
// zero value changes nothing.
type Pipeline struct {
	ops    []op // on pixels
	erases []erase
	// Mean and Std are those of the Normalize that the text has, one value for a
	// channel or a single one, or nil. They are not applied here: the caller
	// compares them with its own preprocessing.
	Mean, Std []float64
}

// An op is a change of a picture.
type op interface {
	// String is the text that Parse reads back.
	String() string
	// fit fills in the network's height and width where the size is left open.
	fit(h, w int) op
	// size returns the height and width that a picture of h by w has afterwards,
	// with zeros for what is not known.
	size(h, w int) (int, int, error)
	// apply draws parameters and changes the picture by them.
	apply(c *canvas, r *random) error
}

// None says that the pipeline changes nothing.
func (p Pipeline) None() bool { return len(p.ops) == 0 && len(p.erases) == 0 }

// Erases says that there is something for [Pipeline.Erase] to do.
func (p Pipeline) Erases() bool { return len(p.erases) > 0 }

// String returns the pipeline as text, with defaults left out: "none", or
// "RandomCrop(32, padding=4), RandomHorizontalFlip".
func (p Pipeline) String() string {
	var words []string
	for _, o := range p.ops {
		words = append(words, o.String())
	}
	if p.Mean != nil || p.Std != nil {
		words = append(words, call("Normalize", "mean="+tuple(p.Mean), "std="+tuple(p.Std)))
	}
	for _, e := range p.erases {
		words = append(words, e.String())
	}
	if words == nil {
		return "none"
	}
	return strings.Join(words, ", ")
}

// Equal says that both make the same of every picture.
func (p Pipeline) Equal(q Pipeline) bool { return p.String() == q.String() }

// MarshalText is String.
func (p Pipeline) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is [Parse].
func (p *Pipeline) UnmarshalText(text []byte) (err error) {
	*p, err = Parse(string(text))
	return err
}

// Resolve fills in the network's height and width, in pixels, where the pipeline
// leaves a size open. It fails if pictures would not end with that size.
func (p Pipeline) Resolve(h, w int) (Pipeline, error) {
	if err := picture.CheckSize(w, h); err != nil {
		return p, err
	}
	ops := make([]op, len(p.ops))
	for i, o := range p.ops {
		ops[i] = o.fit(h, w)
	}
	if len(ops) > 0 {
		p.ops = ops
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

// Size returns the height and width in pixels that all pictures end with, or
// zeros if that depends on the picture or is left open. It fails where a step
// wants a larger picture than the one before it makes.
func (p Pipeline) Size() (h, w int, err error) {
	for _, o := range p.ops {
		if h, w, err = o.size(h, w); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", o, err)
		}
	}
	return h, w, nil
}

// CheckChannels refuses a pipeline that names values for other than c channels.
func (p Pipeline) CheckChannels(c int) error {
	for _, o := range p.ops {
		if o, ok := o.(randomCrop); ok && len(o.fill) > 1 && len(o.fill) != c {
			return fmt.Errorf("%s: fill has %d values, and pictures have %d channels", o, len(o.fill), c)
		}
	}
	for _, e := range p.erases {
		if len(e.value) > 1 && len(e.value) != c {
			return fmt.Errorf("%s: value has %d numbers, and pictures have %d channels", e, len(e.value), c)
		}
	}
	return nil
}

var errOpen = errors.New("the size is left open, want the network's: Resolve first")

// Picture returns src as one epoch of training might have seen it: the same for
// the same key, which is the picture's number. src has 1 or 3 channels, red
// first, and is not changed; the result may share its memory. An error says what
// the pipeline wants of a picture that this one is not.
func (p Pipeline) Picture(src picture.Picture, key uint64) (picture.Picture, error) {
	c := canvas{Picture: src}
	r := newRandom(key, pictureStream)
	for _, o := range p.ops {
		if err := o.apply(&c, r); err != nil {
			return picture.Picture{}, fmt.Errorf("%s: %w", o, err)
		}
	}
	return c.Picture, nil
}

// Erase makes the changes that torchvision makes after Normalize: it overwrites
// rectangles of dst, the normalised values of a picture with c channels of h by w
// values, which come last if last is true and else first. Key is the picture's
// number. Erase panics if dst has another length.
func (p Pipeline) Erase(dst []float32, c, h, w int, last bool, key uint64) {
	if len(dst) != c*h*w {
		panic("augment: dst is not c·h·w long")
	}
	r := newRandom(key, eraseStream)
	for _, e := range p.erases {
		e.apply(tensor{dst, c, h, w, last}, r)
	}
}

// canvas is the picture that a pipeline works on.
type canvas struct {
	picture.Picture
	own bool // Pix is the pipeline's own, and may be overwritten
}

// set replaces the picture by a new one.
func (c *canvas) set(p picture.Picture) { c.Picture, c.own = p, true }

// mine makes sure that Pix may be overwritten.
func (c *canvas) mine() {
	if !c.own {
		c.Pix, c.own = slices.Clone(c.Pix), true
	}
}

// random draws what get_params of torchvision's transforms draw.
type random struct{ *rand.Rand }

// Each stage has a stream of its own: caching the first must not change the
// second.
const (
	pictureStream = 0x70696374757265 // "picture"
	eraseStream   = 0x6572617365     // "erase"
)

func newRandom(key, stream uint64) *random { return &random{rand.New(rand.NewPCG(key, stream))} }

// between is uniform in lo to hi. The product is rounded before it is added to,
// so that no processor may fuse the two.
func (r *random) between(v [2]float64) float64 {
	return v[0] + float64((v[1]-v[0])*r.Float64())
}

func (r *random) happens(p float64) bool { return r.Float64() < p }
