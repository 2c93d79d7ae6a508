// Package preprocess converts pictures to inputs of a network, and back. It knows the settings of timm, torchvision
// and Hugging Face: resizing and cropping, and mean and standard deviation.
//
// [ReadFile] reads the file that belongs to a model, and [Preset] returns common settings. The method
// [Settings.Resolve] completes settings from the network. [Settings.Lay] and [Normalizer] compute inputs from pixels.
// Their arithmetic equals that of torchvision's ToTensor and Normalize and of Hugging Face's image processors, bit
// for bit. [Settings.Picture] and [View] convert inputs back.
//
// # Concurrency
//
// Settings and Normalizer do not change; their methods may be called from any number of goroutines.
package preprocess

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// Settings describes how a stored value x of channel c becomes an input of the network:
//
//	(x·Scale − Mean[c]) / Std[c]
//
// Mean and Std have timm's meaning. They apply to scaled values, which are in [0, 1] unless [Settings.InUnits] says otherwise,
// and their channels are red, green and blue in this order, even if Channels is "bgr". The product x·Scale is
// rounded to float32, and so is each later step, as in torchvision and in Hugging Face's image processors. The zero
// value changes nothing except the scale.
type Settings struct {
	// Image describes how image files, and arrays of pictures, are resized to the network's size. It is not used for
	// arrays that have the network's shape.
	Image Transform `json:"image,omitzero"`
	// Channels is the network's order of colours: "rgb", "bgr" or "grey". Empty means grey if the network has one
	// input channel, else rgb. Arrays in the network's layout are stored in this order, other pictures as red, green,
	// blue.
	Channels string `json:"channels,omitempty"`
	// Layout is "nchw" or "nhwc". Empty means the one that fits the network's shape.
	Layout string `json:"layout,omitempty"`
	// Scale multiplies stored values (Hugging Face: rescale_factor). Zero means
	// 1/255 for uint8 and 1 for floating types.
	Scale float64 `json:"scale,omitempty"`
	// Mean and Std have length 1 or one value per channel. Nil means mean 0 and standard deviation 1.
	Mean []float64 `json:"mean"`
	Std  []float64 `json:"std"`
	// Orientation says whether image files are turned as their tag of orientation says. Empty means that nobody chose: then
	// it is that of Pillow.
	Orientation picture.Orientation `json:"orientation,omitempty"`
	// Arrays is "seen" if nothing shows that arrays of floats are pixels: the settings lay beside the checkpoints, and nobody gave
	// them. Then they are those of pictures and of uint8. Empty means that the values decide.
	Arrays string `json:"arrays,omitempty"`
	// ReduceLabels says that masks count classes from 1, and that 0 is no class: see [target.Positions]. It does not change
	// pictures.
	ReduceLabels bool `json:"reduce_labels,omitempty"`
}

// Resolve returns s completed from the shape of the network's input: [C H W] or [H W C], with numbers below 1 for
// dynamic dimensions. It fails if s contradicts the network. Only pictures need it.
func (s Settings) Resolve(shape []int64) (Settings, error) {
	if len(shape) != 3 {
		return s, fmt.Errorf("the network takes examples of shape %d, want 3 dimensions for images", shape)
	}
	if err := s.checkWords(); err != nil {
		return s, err
	}
	if inUnits, _, err := s.InUnits(); err == nil { // the error is that of Normalizer
		s = inUnits
	}
	s.Layout = s.LayoutOf(shape)
	c, h, w := shape[0], shape[1], shape[2]
	if s.Layout == "nhwc" {
		c, h, w = shape[2], shape[0], shape[1]
	}
	if s.Channels == "" {
		s.Channels = "rgb"
		if c == 1 {
			s.Channels = "grey"
		}
	}
	if c > 0 && c != int64(s.Planes()) {
		return s, fmt.Errorf("images have %d channels (%s), and the network takes %d in layout %s of shape %d", s.Planes(), s.Channels, c,
			s.Layout, shape)
	}
	if max(h, w) > picture.MaxSide {
		return s, fmt.Errorf("the network takes images of shape %d, want at most %d along a side", shape, picture.MaxSide)
	}
	var err error
	s.Image, err = s.Image.resolve(int(max(h, 0)), int(max(w, 0)))
	return s, err
}

func (s Settings) checkWords() error {
	switch s.Channels {
	case "", "rgb", "bgr", "grey":
	default:
		return fmt.Errorf("channels %q, want rgb, bgr or grey", s.Channels)
	}
	if s.Orientation != "" {
		if _, err := picture.ParseOrientation(string(s.Orientation)); err != nil {
			return err
		}
	}
	switch s.Layout {
	case "", "nchw", "nhwc":
		return nil
	}
	return fmt.Errorf("layout %q, want nchw or nhwc", s.Layout)
}

// LayoutOf returns Layout, or the layout of an example of this shape if Layout is empty. Channels come first unless
// only the last dimension can be the channels.
func (s Settings) LayoutOf(shape []int64) string {
	colours := func(d int64) bool { return d == 1 || d == 3 }
	switch {
	case s.Layout != "":
		return s.Layout
	case len(shape) == 3 && !colours(shape[0]) && colours(shape[2]):
		return "nhwc"
	}
	return "nchw"
}

// Planes returns the number of channels of a picture.
func (s Settings) Planes() int {
	if s.Channels == "grey" {
		return 1
	}
	return 3
}

// Shape returns the shape of a picture as an example; s must be resolved.
func (s Settings) Shape() []int64 {
	c, h, w := int64(s.Planes()), int64(s.Image.InputSize[0]), int64(s.Image.InputSize[1])
	if s.Layout == "nhwc" {
		return []int64{h, w, c}
	}
	return []int64{c, h, w}
}

// colours returns the slices at which red, green and blue begin in a picture of h by w pixels, and the distance
// between pixels.
func (s Settings) colours(x []byte, h, w int) (r, g, b []byte, step int) {
	step, plane := 1, h*w
	if s.Layout == "nhwc" {
		step, plane = 3, 1
	}
	r, g, b = x, x[plane:], x[2*plane:]
	if s.Channels == "bgr" {
		r, b = b, r
	}
	return r, g, b, step
}

// Lay writes a picture to dst in the network's layout and channel order; s must be resolved.
func (s Settings) Lay(dst []byte, src picture.Picture) {
	if src.C == 1 {
		copy(dst, src.Pix)
		return
	}
	r, g, b, step := s.colours(dst, src.H, src.W)
	for i := range src.H * src.W {
		p := src.Pix[3*i : 3*i+3 : 3*i+3]
		r[step*i], g[step*i], b[step*i] = p[0], p[1], p[2]
	}
}

// Picture is the inverse of Lay for pictures of h by w pixels. The result may share memory with src.
func (s Settings) Picture(src []byte, h, w int) picture.Picture {
	if s.Planes() == 1 || s.Layout == "nhwc" && s.Channels != "bgr" {
		return picture.Picture{W: w, H: h, C: s.Planes(), Pix: src}
	}
	dst := picture.New(w, h, 3)
	r, g, b, step := s.colours(src, h, w)
	for i := range h * w {
		p := dst.Pix[3*i : 3*i+3 : 3*i+3]
		p[0], p[1], p[2] = r[step*i], g[step*i], b[step*i]
	}
	return dst
}
