package preprocess

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// View turns examples back into pictures: what the network sees, as a person does.
type View struct {
	settings Settings // resolved
	norm     Normalizer
}

// View returns the view of examples of that shape, which [H W] is too. It fails
// where they are no pictures.
func (s Settings) View(shape []int64) (View, error) {
	whole := slices.Clone(shape)
	if len(whole) == 2 {
		whole = slices.Insert(whole, 0, 1) // an array of grey images
	}
	s.Image = Transform{} // was applied already, and does not say what the shape means
	s, err := s.Resolve(whole)
	if err != nil {
		return View{}, fmt.Errorf("examples of shape %d cannot be shown: %w", shape, err)
	}
	n, err := s.Normalizer(whole, false)
	return View{s, n}, err
}

// Bytes returns the picture that pixels in the network's layout and order of
// channels are. It may share memory with them.
func (v View) Bytes(pixels []byte) picture.Picture {
	return v.settings.Picture(pixels, v.settings.Image.InputSize[0], v.settings.Image.InputSize[1])
}

// Floats does so for what the network takes, and overwrites it. Mean and standard
// deviation are taken out; values that are not in [0, 1] then were normalised
// before they were stored, and the smallest becomes black and the largest white.
func (v View) Floats(values []float32) picture.Picture {
	v.norm.undo(values)
	lo, hi := float64(slices.Min(values)), float64(slices.Max(values))
	const rounding = 1e-5 // of taking the normalisation out again
	if lo >= -rounding && hi <= 1+rounding {
		lo, hi = 0, 1
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
