package preprocess

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/picture"
)

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
