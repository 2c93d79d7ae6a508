package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// Preprocess says how a stored value x of channel c becomes an input of the
// network:
//
//	(x·Scale − Mean[c]) / Std[c]
//
// Mean and Std have timm's meaning: they are given for values already scaled to
// [0, 1], and the channels are red, green and blue in this order, also where
// Channels swaps them. x·Scale is rounded to float32, and so is each later step,
// as torchvision's ToTensor and Normalize and Hugging Face's image processors do
// it.
type Preprocess struct {
	// Image says how image files come to the network's size. Arrays have that
	// size; for them it is not used.
	Image Transform `json:"image,omitzero"`
	// Channels is the order in which the network takes colours: "rgb", "bgr" or
	// "grey". Empty means grey if it takes one channel, else rgb. Arrays are
	// stored in that order.
	Channels string `json:"channels,omitempty"`
	// Layout is "nchw" or "nhwc". Empty means what the network's shape tells.
	Layout string `json:"layout,omitempty"`
	// Scale multiplies stored values (Hugging Face: rescale_factor). Zero means
	// 1/255 for uint8 and 1 for floating types.
	Scale float64 `json:"scale,omitempty"`
	// Mean and Std have length 1 or one value per channel. Nil means 0 and 1.
	Mean []float64 `json:"mean"`
	Std  []float64 `json:"std"`
}

// Resolve returns p with all filled in that follows from the shape of the
// network's input: [C H W] or [H W C], with numbers below 1 where the network
// leaves a dimension open. It fails where p asks for something else than the
// network does. Only image files need it; [Open] calls it for them.
func (p Preprocess) Resolve(shape []int64) (Preprocess, error) {
	if len(shape) != 3 {
		return p, fmt.Errorf("the network takes examples of shape %d, want 3 dimensions for images", shape)
	}
	if err := p.checkWords(); err != nil {
		return p, err
	}
	p.Layout = p.layout(shape)
	c, h, w := shape[0], shape[1], shape[2]
	if p.Layout == "nhwc" {
		c, h, w = shape[2], shape[0], shape[1]
	}
	if p.Channels == "" {
		p.Channels = "rgb"
		if c == 1 {
			p.Channels = "grey"
		}
	}
	if c > 0 && c != int64(p.channels()) {
		return p, fmt.Errorf("images have %d channels (%s), and the network takes %d in layout %s of shape %d", p.channels(), p.Channels, c, p.Layout, shape)
	}
	if max(h, w) > picture.MaxSide {
		return p, fmt.Errorf("the network takes images of shape %d, want at most %d along a side", shape, picture.MaxSide)
	}
	var err error
	p.Image, err = p.Image.resolve(int(max(h, 0)), int(max(w, 0)))
	return p, err
}

func (p Preprocess) checkWords() error {
	switch p.Channels {
	case "", "rgb", "bgr", "grey":
	default:
		return fmt.Errorf("channels %q, want rgb, bgr or grey", p.Channels)
	}
	switch p.Layout {
	case "", "nchw", "nhwc":
		return nil
	}
	return fmt.Errorf("layout %q, want nchw or nhwc", p.Layout)
}

// layout returns Layout or, where that is empty, what the shape of an example
// tells: channels come first unless only the last dimension can be one.
func (p Preprocess) layout(shape []int64) string {
	colours := func(d int64) bool { return d == 1 || d == 3 }
	switch {
	case p.Layout != "":
		return p.Layout
	case len(shape) == 3 && !colours(shape[0]) && colours(shape[2]):
		return "nhwc"
	}
	return "nchw"
}

// channels returns how many channels an image has.
func (p Preprocess) channels() int {
	if p.Channels == "grey" {
		return 1
	}
	return 3
}

// shape returns the shape of an image; p must be resolved.
func (p Preprocess) shape() []int64 {
	c, h, w := int64(p.channels()), int64(p.Image.InputSize[0]), int64(p.Image.InputSize[1])
	if p.Layout == "nhwc" {
		return []int64{h, w, c}
	}
	return []int64{c, h, w}
}

// arrange writes an image to dst in the network's layout and order of channels.
func (p Preprocess) arrange(dst []byte, src picture.Picture) {
	plane := src.W * src.H
	if src.C == 1 {
		copy(dst, src.Pix)
		return
	}
	red, blue := 0, 2
	if p.Channels == "bgr" {
		red, blue = 2, 0
	}
	if p.Layout == "nhwc" {
		for i := 0; i < 3*plane; i += 3 {
			d, s := dst[i:i+3:i+3], src.Pix[i:i+3:i+3]
			d[red], d[1], d[blue] = s[0], s[1], s[2]
		}
		return
	}
	r, g, b := dst[red*plane:][:plane], dst[plane:][:plane], dst[blue*plane:][:plane]
	for i := range r {
		s := src.Pix[3*i : 3*i+3 : 3*i+3]
		r[i], g[i], b[i] = s[0], s[1], s[2]
	}
}

// normalizer is a Preprocess with all defaults filled in.
type normalizer struct {
	scale     float64
	mean, std []float32      // of equal length, 1 or the number of channels
	last      bool           // channels are the last dimension, not the first
	table     [][256]float32 // for uint8: result by channel and stored value
}

// normalizer prepares for examples of the given shape.
func (p Preprocess) normalizer(shape []int64, isUint8 bool) (normalizer, error) {
	if p.Scale < 0 || math.IsNaN(p.Scale) || math.IsInf(p.Scale, 0) {
		return normalizer{}, fmt.Errorf("scale %v, want a positive number", p.Scale)
	}
	if err := p.checkWords(); err != nil {
		return normalizer{}, err
	}
	n := normalizer{scale: p.Scale, last: p.layout(shape) == "nhwc"}
	if n.scale == 0 {
		n.scale = 1
	}
	planes := max(len(p.Mean), len(p.Std), 1)
	var err error
	if n.mean, err = n.perChannel("mean", p.Mean, 0, planes, shape); err != nil {
		return normalizer{}, err
	}
	if n.std, err = n.perChannel("std", p.Std, 1, planes, shape); err != nil {
		return normalizer{}, err
	}
	if i := slices.IndexFunc(n.std, func(v float32) bool { return v <= 0 }); i >= 0 {
		return normalizer{}, fmt.Errorf("std %v, want positive numbers", p.Std)
	}
	if p.Channels == "bgr" {
		slices.Reverse(n.mean)
		slices.Reverse(n.std)
	}
	if !isUint8 {
		return n, nil
	}
	n.table = make([][256]float32, planes)
	for c := range n.table {
		for x := range n.table[c] {
			v := float64(x) * p.Scale
			if p.Scale == 0 {
				v = float64(x) / 255 // not x·(1/255): torchvision divides
			}
			y := n.apply(float32(v), c)
			if !finite(y) {
				return normalizer{}, fmt.Errorf("scale %v, mean %v, std %v overflow float32", p.Scale, p.Mean, p.Std)
			}
			n.table[c][x] = y
		}
	}
	return n, nil
}

// perChannel checks one of Mean and Std and spreads it over planes values.
func (n *normalizer) perChannel(name string, v []float64, unset float32, planes int, shape []int64) ([]float32, error) {
	channels, which := shape[0], "first"
	if n.last {
		channels, which = shape[len(shape)-1], "last"
	}
	if len(v) > 1 && int64(len(v)) != channels {
		return nil, fmt.Errorf("%d values of %s, want 1 or %d: the channels, %s dimension of shape %d", len(v), name, channels, which, shape)
	}
	out := make([]float32, planes)
	for i := range out {
		switch len(v) {
		case 0:
			out[i] = unset
		case 1:
			out[i] = float32(v[0])
		default:
			out[i] = float32(v[i])
		}
		if !finite(out[i]) {
			return nil, fmt.Errorf("%s %v, want finite numbers", name, v)
		}
	}
	return out, nil
}

func finite(x float32) bool { return x-x == 0 }

func (n *normalizer) apply(scaled float32, c int) float32 {
	return (scaled - n.mean[c]) / n.std[c]
}

// applyTable fills dst with the results for the uint8 values src.
func (n *normalizer) applyTable(dst []float32, src []byte) {
	channels := len(n.table)
	if n.last && channels > 1 {
		for c := range n.table {
			t := &n.table[c]
			for j := c; j < len(src); j += channels {
				dst[j] = t[src[j]]
			}
		}
		return
	}
	plane := len(dst) / channels
	for c := range n.table {
		t := &n.table[c]
		d, s := dst[c*plane:(c+1)*plane], src[c*plane:(c+1)*plane]
		for j, x := range s {
			d[j] = t[x]
		}
	}
}

// applyFloat does the same for little-endian floats of 4 or 8 bytes. It returns
// the index of the first result that is not finite, or -1.
func (n *normalizer) applyFloat(dst []float32, src []byte, size int) int {
	channels := len(n.mean)
	first, step, count := len(dst)/channels, 1, len(dst)/channels // of a channel's values
	if n.last {
		first, step = 1, channels
	}
	bad := -1
	for c := range channels {
		for j, k := c*first, 0; k < count; j, k = j+step, k+1 {
			var x float64
			if size == 4 {
				x = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*j:])))
			} else {
				x = math.Float64frombits(binary.LittleEndian.Uint64(src[8*j:]))
			}
			dst[j] = n.apply(float32(x*n.scale), c)
			if !finite(dst[j]) && (bad < 0 || j < bad) {
				bad = j
			}
		}
	}
	return bad
}
