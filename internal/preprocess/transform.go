package preprocess

import (
	"errors"
	"fmt"
	"image"
	"math"
	"strings"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// Transform says how an image file comes to the size that the network takes:
// resized by Pillow's arithmetic, then cropped at the centre. The zero value
// does neither, and every image must have that size already.
type Transform struct {
	CropMode CropMode `json:"crop_mode"`
	// InputSize is the height and width that the network takes. Zero means: what
	// the network says.
	InputSize [2]int `json:"input_size,omitzero"`
	// ResizeSize is the height and width before the crop. Zero means: InputSize /
	// CropPct, rounded down.
	ResizeSize [2]int `json:"resize_size,omitzero"`
	// CropPct is the part of each side that the crop keeps. Zero means 1. Above 1
	// the image gets a black border, as in timm.
	CropPct       float64        `json:"crop_pct,omitzero"`
	Interpolation picture.Filter `json:"interpolation"`
	// FloorCrop rounds the crop's offset down, as Hugging Face's processors do;
	// torchvision and timm round it to even.
	FloorCrop bool `json:"floor_crop,omitzero"`
}

// ErrNoSize is the error of settings that leave the size of images to a network that
// leaves it open.
var ErrNoSize = errors.New("the network takes images of any size, want an input size")

// CropMode is timm's word for how an image is resized.
type CropMode string

const (
	CropNone CropMode = ""       // not at all: it must have the network's size
	Center   CropMode = "center" // until it covers ResizeSize, in its own proportions
	Squash   CropMode = "squash" // to ResizeSize exactly
)

// ParseCropMode returns the mode that a flag or a timm configuration names.
func ParseCropMode(name string) (CropMode, error) {
	switch m := CropMode(strings.ToLower(name)); m {
	case "none":
		return CropNone, nil
	case Center, Squash:
		return m, nil
	case "border":
		return "", errors.New("crop mode border pads images with the mean colour, which is not supported, want center, squash or none")
	}
	return "", fmt.Errorf("crop mode %q, want center, squash or none", name)
}

// resolve fills in what follows from the network's height and width, which are
// 0 where it leaves them open.
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
		return t, fmt.Errorf("crop_pct %v, resize size %s, but images are not resized: want crop mode center or squash", t.CropPct, size2(t.ResizeSize))
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
	t.CropPct = 0 // ResizeSize says it now
	if err := picture.CheckSize(t.ResizeSize[1], t.ResizeSize[0]); err != nil {
		return t, fmt.Errorf("resize size: %w", err)
	}
	return t, nil
}

// size2 prints height × width as the images' sizes are printed: width first.
type size2 [2]int

func (s size2) String() string { return fmt.Sprintf("%d×%d", s[1], s[0]) }

// Apply resizes and crops src. The transform must be resolved.
func (t Transform) Apply(src picture.Picture) (picture.Picture, error) {
	h, w := t.InputSize[0], t.InputSize[1]
	switch t.CropMode {
	case CropNone:
		if src.W != w || src.H != h {
			return picture.Picture{}, fmt.Errorf("%d×%d pixels, want %d×%d: say how to resize images, or resize them", src.W, src.H, w, h)
		}
		return src, nil
	case Squash:
		return picture.Resize(src, t.ResizeSize[1], t.ResizeSize[0], t.Interpolation, t.crop(t.ResizeSize[1], t.ResizeSize[0]))
	}
	rw, rh := t.cover(src.W, src.H)
	return picture.Resize(src, rw, rh, t.Interpolation, t.crop(rw, rh))
}

// cover returns the smallest size in the proportions of w by h that covers
// ResizeSize: torchvision's Resize(n) for a square, else timm's ResizeKeepRatio.
func (t Transform) cover(w, h int) (int, int) {
	th, tw := t.ResizeSize[0], t.ResizeSize[1]
	if th == tw {
		return picture.ShortSide(w, h, th)
	}
	ratio := min(float64(h)/float64(th), float64(w)/float64(tw))
	return int(math.RoundToEven(float64(w) / ratio)), int(math.RoundToEven(float64(h) / ratio))
}

// crop returns the part of a w by h image that is InputSize large.
func (t Transform) crop(w, h int) image.Rectangle {
	ch, cw := t.InputSize[0], t.InputSize[1]
	if !t.FloorCrop {
		return picture.CentreCrop(w, h, cw, ch)
	}
	at := image.Pt((w-cw)>>1, (h-ch)>>1) // an arithmetic shift rounds down below 0 too
	return image.Rectangle{Min: at, Max: at.Add(image.Pt(cw, ch))}
}
