package webpage

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// Steps says in sentences how a picture becomes what the network takes. s is resolved. bytes says that the network takes
// pixels, and does the rest itself.
func Steps(s preprocess.Settings, bytes bool) []string {
	size := func(hw [2]int) string { return fmt.Sprintf("%d×%d pixels", hw[1], hw[0]) }
	im := s.Image
	var first string
	switch im.CropMode {
	case preprocess.CropNone:
		first = fmt.Sprintf("A picture must have %s. It is not resized.", size(im.InputSize))
	case preprocess.Squash:
		first = fmt.Sprintf("A picture is resized to %s (%s), without keeping its proportions.", size(im.ResizeSize), im.Interpolation)
	default:
		first = fmt.Sprintf("A picture is resized (%s) until it covers %s, in its proportions.", im.Interpolation, size(im.ResizeSize))
	}
	steps := []string{first}
	if im.CropMode != preprocess.CropNone && im.ResizeSize != im.InputSize || im.CropMode == preprocess.Center {
		steps = append(steps, fmt.Sprintf("The middle of it is cut out: %s.", size(im.InputSize)))
	}
	switch s.Channels {
	case "grey":
		steps = append(steps, "Colours become grey.")
	case "bgr":
		steps = append(steps, "The network takes blue, green, red.")
	}
	turned := "Exif orientation is not applied, as in training with torchvision"
	switch s.Orientation {
	case "apply":
		turned = "pictures are turned as their Exif orientation says"
	case "ignore":
		turned = "no picture is turned as its orientation says"
	}
	opened := "Alpha is dropped, and " + turned + "."
	if bytes {
		return append(steps, "The network takes the pixels, 0 to 255.", opened)
	}
	last := "Values are divided by 255"
	switch s.Scale {
	case 0:
	case 1:
		last = "Values stay 0 to 255"
	default:
		last = fmt.Sprintf("Values are multiplied by %g", s.Scale)
	}
	if len(s.Mean) > 0 {
		last += ", less " + list(s.Mean)
	}
	if len(s.Std) > 0 {
		last += ", divided by " + list(s.Std)
	}
	return append(steps, last+".", opened)
}

func list(values []float64) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprintf("%g", v))
	}
	return strings.Join(texts, ", ")
}
