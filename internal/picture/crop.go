package picture

import (
	"image"
	"math"
)

// ShortSide returns the size that torchvision's Resize(size) gives a w by h image. The shorter side becomes size, and
// the longer one keeps the proportions, rounded down.
func ShortSide(w, h, size int) (int, int) {
	// Divide in floating point, as Python does.
	long := int(float64(size*max(w, h)) / float64(min(w, h)))
	if w <= h {
		return size, long
	}
	return long, size
}

// CentreCrop returns the part of a w by h image that torchvision's CenterCrop((ch, cw)) keeps. If the image is
// smaller, the rectangle extends beyond it, and [Resize] makes that part black.
func CentreCrop(w, h, cw, ch int) image.Rectangle {
	start := func(have, want int) int {
		if have < want {
			return -((want - have) / 2) // the odd pixel of padding comes last
		}
		return int(math.RoundToEven(float64(have-want) / 2))
	}
	at := image.Pt(start(w, cw), start(h, ch))
	return image.Rectangle{at, at.Add(image.Pt(cw, ch))}
}
