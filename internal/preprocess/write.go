package preprocess

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// A Style is the program whose words a preprocessor_config.json has.
type Style string

// The styles, the most common first.
const (
	HuggingFace Style = "transformers"
	Timm        Style = "timm"
	Own         Style = "swagwrap" // settings that the others have no words for
)

// Config returns resolved settings as a preprocessor_config.json, in the first style that says exactly them. [ReadFile] reads all
// styles.
func (s Settings) Config() (js []byte, style Style, err error) {
	for _, to := range []struct {
		style Style
		words map[string]any
	}{{HuggingFace, s.toHuggingFace()}, {Timm, s.toTimm()}} {
		if js, err = s.exactly(to.words); js != nil || err != nil {
			return append(js, '\n'), to.style, err
		}
	}
	js, err = json.MarshalIndent(s, "", "  ")
	return append(js, '\n'), Own, err
}

// Timm returns resolved settings in timm's words, or nil if it has none for them.
func (s Settings) Timm() map[string]any {
	words := s.toTimm()
	if js, err := s.exactly(words); js == nil || err != nil {
		return nil
	}
	return words
}

// exactly returns the words as JSON, or nil if they are read as other settings.
func (s Settings) exactly(words map[string]any) ([]byte, error) {
	if words == nil {
		return nil, nil
	}
	js, err := json.MarshalIndent(words, "", "  ")
	if err != nil {
		return nil, err
	}
	if read, err := parse(js); err != nil || !s.same(read) {
		return nil, nil
	}
	return js, nil
}

// Equal reports whether other settings, completed for a network's input of this shape, do the same with pictures.
func (s Settings) Equal(other Settings, shape []int64) bool {
	a, err := s.Resolve(shape)
	b, err2 := other.Resolve(shape)
	return err == nil && err2 == nil && a.same(b)
}

// same compares what settings do with 8-bit pixels. s is resolved. Orientation is left to the programs that open files: no
// configuration of Hugging Face or timm has a word for it.
func (s Settings) same(t Settings) bool {
	t.Image.InputSize = orSize(t.Image.InputSize, s.Image.InputSize)
	if t.Image.CropMode != CropNone {
		image, err := t.Image.resolve(s.Image.InputSize[0], s.Image.InputSize[1])
		if err != nil {
			return false
		}
		t.Image = image
	}
	a, b := s.Image, t.Image
	if a.CropMode == CropNone || a.CropMode == Squash && a.ResizeSize == a.InputSize {
		a.CropRoundsDown, b.CropRoundsDown = false, false // nothing is cropped
	}
	if a.CropMode == CropNone {
		a.Interpolation, b.Interpolation = 0, 0
	}
	if t.Channels == "" {
		t.Channels = s.Channels
	}
	return a == b && s.ReduceLabels == t.ReduceLabels && s.Channels == t.Channels && s.scale() == t.scale() &&
		slices.Equal(s.perChannel(s.Mean, 0), s.perChannel(t.Mean, 0)) && slices.Equal(s.perChannel(s.Std, 1), s.perChannel(t.Std, 1))
}

func orSize(a, b [2]int) [2]int {
	if a == [2]int{} {
		return b
	}
	return a
}

// scale returns the factor of 8-bit pixels.
func (s Settings) scale() float64 {
	if s.Scale == 0 {
		return 1.0 / 255
	}
	return s.Scale
}

func (s Settings) perChannel(values []float64, usual float64) []float64 {
	switch len(values) {
	case 0:
		return slices.Repeat([]float64{usual}, s.Planes())
	case 1:
		return slices.Repeat(values, s.Planes())
	}
	return values
}

func (s Settings) toHuggingFace() map[string]any {
	im := s.Image
	words := map[string]any{
		"image_processor_type": "ViTImageProcessor",
		"do_rescale":           true,
		"rescale_factor":       s.scale(),
		"do_resize":            im.CropMode != CropNone,
		"do_normalize":         s.Mean != nil || s.Std != nil,
		"image_mean":           s.perChannel(s.Mean, 0),
		"image_std":            s.perChannel(s.Std, 1),
	}
	if s.Channels != "rgb" {
		return nil
	}
	if s.ReduceLabels { // a key of this processor only
		words["image_processor_type"], words["do_reduce_labels"] = "BeitImageProcessor", true
	}
	if im.CropMode == CropNone {
		words["size"] = map[string]int{"height": im.InputSize[0], "width": im.InputSize[1]}
		return words
	}
	words["resample"] = slices.Index(picture.PillowFilters, im.Interpolation)
	words["size"] = map[string]int{"height": im.ResizeSize[0], "width": im.ResizeSize[1]}
	if im.CropMode == Center {
		if im.ResizeSize[0] != im.ResizeSize[1] || s.ReduceLabels {
			return nil
		}
		words["image_processor_type"], words["do_center_crop"], words["do_convert_rgb"] = "CLIPImageProcessor", true, true
		words["size"] = map[string]int{"shortest_edge": im.ResizeSize[0]}
		words["crop_size"] = map[string]int{"height": im.InputSize[0], "width": im.InputSize[1]}
	}
	return words
}

func (s Settings) toTimm() map[string]any {
	im := s.Image
	if im.CropMode == CropNone || s.scale() != 1.0/255 {
		return nil
	}
	pct := float64(im.InputSize[0]) / float64(im.ResizeSize[0])
	for range 4 { // the quotient may be rounded up
		if int(math.Floor(float64(im.InputSize[0])/pct)) == im.ResizeSize[0] {
			break
		}
		pct = math.Nextafter(pct, 0)
	}
	return map[string]any{
		"input_size":    []int{s.Planes(), im.InputSize[0], im.InputSize[1]},
		"interpolation": im.Interpolation.String(),
		"crop_pct":      pct,
		"crop_mode":     string(im.CropMode),
		"mean":          s.perChannel(s.Mean, 0),
		"std":           s.perChannel(s.Std, 1),
	}
}
