package preprocess

import (
	"errors"
	"fmt"
	"image"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/word"
)

// Transform describes how an image file gets the size that the network takes. It is resized with Pillow's arithmetic
// and then cropped at the centre. The zero value does neither, so every image must have that size already.
type Transform struct {
	CropMode CropMode `json:"crop_mode"`
	// InputSize is the height and width that the network takes. Zero means the network's own size.
	InputSize [2]int `json:"input_size,omitzero"`
	// ResizeSize is the height and width before the crop. Zero means InputSize / CropPct, rounded down.
	ResizeSize [2]int `json:"resize_size,omitzero"`
	// CropPct is the part of each side that the crop keeps. Zero means 1. Above 1 the image gets a black border, as
	// in timm.
	CropPct       float64        `json:"crop_pct,omitzero"`
	Interpolation picture.Filter `json:"interpolation"`
	// FloorCrop rounds the offset of the crop down, as Hugging Face's processors do. Torchvision and timm round it to
	// even.
	CropRoundsDown bool `json:"floor_crop,omitzero"`
	// Tensor resizes as torchvision resizes tensors of bytes, which Hugging Face's fast processors do. Pillow's arithmetic rounds
	// elsewhere.
	Tensor bool `json:"tensor,omitzero"`
}

// SizeError is returned for a picture of another size than the network takes, where the
// settings do not say how to resize it. Sizes are height and width.
type SizeError struct{ Have, Want [2]int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("%d×%d pixels, want %d×%d: say how to resize images, or resize them", e.Have[1], e.Have[0], e.Want[1], e.Want[0])
}

// ErrNoSize is returned if neither the settings nor the network set the size of images.
var ErrNoSize = errors.New("the network takes images of any size, want an input size")

// CropMode is timm's name for the way an image is resized.
type CropMode string

const (
	CropNone CropMode = ""       // no resize: the image must have the network's size
	Center   CropMode = "center" // keep the proportions, and cover ResizeSize
	Squash   CropMode = "squash" // resize to ResizeSize exactly
)

// ParseCropMode returns the mode with the name that a flag or a timm configuration uses.
func ParseCropMode(name string) (CropMode, error) {
	switch m := CropMode(strings.ToLower(name)); m {
	case "none":
		return CropNone, nil
	case Center, Squash:
		return m, nil
	case "border":
		return "", errors.New("crop mode border pads images with the mean colour, which is not supported, want center, squash or none")
	}
	return "", fmt.Errorf("crop mode %w", &word.Unknown{Word: name, Want: []string{string(Center), string(Squash), "none"}})
}

// resolve completes t from the network's height and width, which are 0 if the network leaves them open.
func (t Transform) resolve(h, w int) (Transform, error) {
	for i, have := range [2]int{h, w} {
		switch want := &t.InputSize[i]; {
		case *want == 0:
			*want = have
		case have != 0 && *want != have:
			return t, fmt.Errorf("input size %s, and the network takes %s", size2(t.InputSize), size2{h, w})
		}
		if t.InputSize[i] < 0 || t.ResizeSize[i] < 0 {
			return t, fmt.Errorf("input size %s, resize size %s, want positive numbers", size2(t.InputSize), size2(t.ResizeSize))
		}
	}
	if t.InputSize[0] == 0 || t.InputSize[1] == 0 {
		return t, ErrNoSize
	}
	if err := picture.CheckSize(t.InputSize[1], t.InputSize[0]); err != nil {
		return t, fmt.Errorf("input size: %w", err)
	}
	switch {
	case t.CropPct < 0 || math.IsNaN(t.CropPct) || math.IsInf(t.CropPct, 0):
		return t, fmt.Errorf("crop_pct %v, want a positive number", t.CropPct)
	case t.CropMode == CropNone && (t.CropPct != 0 || t.ResizeSize != [2]int{}):
		return t, fmt.Errorf("crop_pct %v, resize size %s, but images are not resized: want crop mode center or squash", t.CropPct,
			size2(t.ResizeSize))
	case t.CropMode == CropNone:
		return t, nil
	case t.CropMode != Center && t.CropMode != Squash:
		_, err := ParseCropMode(string(t.CropMode))
		return t, err
	}
	if t.ResizeSize == [2]int{} {
		pct := t.CropPct
		if pct == 0 {
			pct = 1
		}
		for i, v := range t.InputSize {
			t.ResizeSize[i] = int(min(math.Floor(float64(v)/pct), picture.MaxSide+1))
		}
	} else if t.CropPct != 0 {
		return t, fmt.Errorf("resize size %s and crop_pct %v, want one of them", size2(t.ResizeSize), t.CropPct)
	} else if t.InputSize[0] > t.ResizeSize[0] || t.InputSize[1] > t.ResizeSize[1] {
		return t, fmt.Errorf("input size %s is larger than resize size %s", size2(t.InputSize), size2(t.ResizeSize))
	}
	t.CropPct = 0 // replaced by ResizeSize
	if err := picture.CheckSize(t.ResizeSize[1], t.ResizeSize[0]); err != nil {
		return t, fmt.Errorf("resize size: %w", err)
	}
	return t, nil
}

// size2 is height and width. Like other sizes of images it is printed with the width first.
type size2 [2]int

func (s size2) String() string { return fmt.Sprintf("%d×%d", s[1], s[0]) }

// Apply resizes and crops src. The transform must be resolved.
func (t Transform) Apply(src picture.Picture) (picture.Picture, error) {
	h, w := t.InputSize[0], t.InputSize[1]
	if t.CropMode == CropNone {
		if src.W != w || src.H != h {
			return picture.Picture{}, &SizeError{[2]int{src.H, src.W}, [2]int{h, w}}
		}
		return src, nil
	}
	rw, rh := t.resized(src.W, src.H)
	return t.resize(src, rw, rh, t.crop(rw, rh))
}

func (t Transform) resize(src picture.Picture, w, h int, keep image.Rectangle) (picture.Picture, error) {
	if t.Tensor {
		return picture.ResizeTensor(src, w, h, t.Interpolation, keep)
	}
	return picture.Resize(src, w, h, t.Interpolation, keep)
}

// resized returns the size that a picture of w by h pixels has before the crop.
func (t Transform) resized(w, h int) (int, int) {
	if t.CropMode == Squash {
		return t.ResizeSize[1], t.ResizeSize[0]
	}
	return t.cover(w, h)
}

// cover returns the smallest size with the proportions of w by h that covers ResizeSize. It follows torchvision's
// Resize(n) for a square, else timm's ResizeKeepRatio.
func (t Transform) cover(w, h int) (int, int) {
	th, tw := t.ResizeSize[0], t.ResizeSize[1]
	if th == tw {
		return picture.ShortSide(w, h, th)
	}
	ratio := min(float64(h)/float64(th), float64(w)/float64(tw))
	return int(math.RoundToEven(float64(w) / ratio)), int(math.RoundToEven(float64(h) / ratio))
}

// crop returns the central part of a w by h image that has InputSize.
func (t Transform) crop(w, h int) image.Rectangle {
	ch, cw := t.InputSize[0], t.InputSize[1]
	if !t.CropRoundsDown {
		return picture.CentreCrop(w, h, cw, ch)
	}
	at := image.Pt((w-cw)>>1, (h-ch)>>1) // an arithmetic shift also rounds negative numbers down
	return image.Rectangle{Min: at, Max: at.Add(image.Pt(cw, ch))}
}

// View converts examples back to pictures, to show a person what the network sees.
type View struct {
	settings Settings // resolved
	norm     Normalizer
}

// View returns the view of examples of the given shape, which may also be [H W]. It fails if the examples are not
// pictures.
func (s Settings) View(shape []int64) (View, error) {
	whole := slices.Clone(shape)
	if len(whole) == 2 {
		whole = slices.Insert(whole, 0, 1) // an array of grey images
	}
	s.Image = Transform{} // it was applied already, and does not describe the shape
	s, err := s.Resolve(whole)
	if err != nil {
		return View{}, fmt.Errorf("examples of shape %d cannot be shown: %w", shape, err)
	}
	n, err := s.Normalizer(whole, false)
	return View{s, n}, err
}

// Bytes converts pixels in the network's layout and channel order to a picture. The result may share their memory.
func (v View) Bytes(pixels []byte) picture.Picture {
	return v.settings.Picture(pixels, v.settings.Image.InputSize[0], v.settings.Image.InputSize[1])
}

// Floats converts inputs of the network to a picture and overwrites them. It undoes mean and standard deviation. If
// values then lie outside [0, 1], they were normalised before they were stored. In that case the smallest becomes
// black and the largest white.
func (v View) Floats(values []float32) picture.Picture {
	v.norm.Undo(values)
	lo, hi := float64(slices.Min(values)), float64(slices.Max(values))
	const rounding = 1e-5 // error of undoing the normalisation
	if white := v.settings.top(); lo >= -rounding*white && hi <= (1+rounding)*white {
		lo, hi = 0, white
	}
	pixels := make([]byte, len(values))
	for i, x := range values {
		part := 0.5
		if hi > lo {
			part = (float64(x) - lo) / (hi - lo)
		}
		pixels[i] = byte(255*min(max(part, 0), 1) + 0.5)
	}
	return v.Bytes(pixels)
}
