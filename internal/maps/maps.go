// Package maps draws what a network says of each pixel of a picture: class, confidence, entropy, mutual information.
package maps

import (
	"encoding/binary"
	"image"
	"image/color"
	"image/color/palette"
	"image/png"
	"io"
	"math"
	"strings"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/task"
)

// WriteArray writes a map as a NumPy array of uint16 for classes, or else of float32.
func WriteArray(w io.Writer, sides [3]int, _ int, c task.Column, values []float32) error {
	dtype, b := "<f4", []byte(nil)
	if c.Kind == task.Class {
		dtype = "<u2"
	}
	b = append(b, numpy.Header(dtype, sides[0], sides[1])...)
	for _, v := range values {
		if c.Kind == task.Class {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		} else {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	_, err := w.Write(b)
	return err
}

// WritePNG writes a map as a picture, for a task of so many classes.
func WritePNG(w io.Writer, sides [3]int, classes int, c task.Column, values []float32) error {
	return png.Encode(w, picture(sides, classes, c, values))
}

// picture returns a map as a picture. Classes are the indices of a palette. Other values are grey levels of 16 bits, as
// shares of the largest possible value: 1 for probabilities, log C for entropies of C classes, C for sizes of sets.
func picture(sides [3]int, classes int, c task.Column, values []float32) image.Image {
	box := image.Rect(0, 0, sides[1], sides[0])
	if c.Kind == task.Class && classes <= 256 {
		p := image.NewPaletted(box, classColours(classes))
		for i, v := range values {
			p.Pix[i] = uint8(v)
		}
		return p
	}
	p, scale := image.NewGray16(box), float64(math.MaxUint16)
	if strings.Contains(c.Name, "entropy") || strings.Contains(c.Name, "information") {
		scale /= math.Log(float64(max(2, classes)))
	}
	if c.Name == task.SizeColumn {
		scale /= float64(max(1, classes))
	}
	if c.Kind == task.Class {
		scale = 1
	}
	for i, v := range values {
		p.SetGray16(i%sides[1], i/sides[1], color.Gray16{Y: uint16(math.Round(min(max(float64(v)*scale, 0), math.MaxUint16)))})
	}
	return p
}

// classColours returns a colour for each class. The first is black, since class 0 is often the background.
func classColours(classes int) (colours color.Palette) {
	colours = append(colours, color.Black)
	for i := 1; i < classes; i++ {
		colours = append(colours, palette.Plan9[(i*97+31)%256]) // neighbours in number differ in colour
	}
	return colours
}

// Panels returns a picture and its maps in two rows. The first row has the picture, the true and the predicted classes. The
// second has the errors, the entropy and the mutual information. target has a class for each pixel, or −1. It is nil if no
// class is known.
func Panels(img image.Image, predicted *image.Paletted, entropy, information image.Image, target []int) image.Image {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	uncertain, disagree := brightness(entropy), brightness(information)
	const gap = 2
	out := image.NewRGBA(image.Rect(0, 0, 3*w+2*gap, 2*h+gap))
	grey := color.RGBA{128, 128, 128, 255}
	for y := range h {
		for x := range w {
			own := predicted.ColorIndexAt(x, y)
			right, wrong := color.Color(grey), color.Color(grey)
			if p := y*w + x; target != nil && target[p] >= 0 {
				right, wrong = predicted.Palette[target[p]], color.Black
				if target[p] != int(own) {
					wrong = color.RGBA{220, 40, 40, 255}
				}
			}
			for k, c := range []color.Color{img.At(b.Min.X+x, b.Min.Y+y), right, predicted.Palette[own], wrong, uncertain(x, y),
				disagree(x, y)} {
				out.Set(k%3*(w+gap)+x, k/3*(h+gap)+y, c)
			}
		}
	}
	return out
}

// brightness returns the colours of a map, whose highest value is the brightest.
func brightness(m image.Image) func(x, y int) color.Color {
	highest, b := uint32(1), m.Bounds()
	for y := range b.Dy() {
		for x := range b.Dx() {
			v, _, _, _ := m.At(x, y).RGBA()
			highest = max(highest, v)
		}
	}
	return func(x, y int) color.Color {
		v, _, _, _ := m.At(x, y).RGBA()
		bright := uint8(255 * v / highest)
		return color.RGBA{bright, bright, bright / 2, 255}
	}
}
