package report

import (
	"image"

	"golang.org/x/image/draw"
)

// pixelArt bounds the longest side, in pixels, of images whose pixels are shown as squares when enlarged. Smoothing
// 28 pixels would hide what the network sees.
const pixelArt = 64

// shrink returns img in its own proportions with no side longer than size. It returns small images unchanged.
func shrink(img image.Image, size int) image.Image {
	b := img.Bounds()
	if max(b.Dx(), b.Dy()) <= size {
		return img
	}
	return resize(draw.CatmullRom, img, size)
}

// fill returns img scaled until its longer side is size, or a little less if its pixels stay squares of equal size.
func fill(img image.Image, size int) image.Image {
	longer := max(img.Bounds().Dx(), img.Bounds().Dy())
	if longer <= pixelArt && longer <= size {
		return resize(draw.NearestNeighbor, img, size/longer*longer)
	}
	return resize(draw.CatmullRom, img, size)
}

// resize scales img until its longer side is size. A grey image stays grey, which halves its file.
func resize(by draw.Scaler, img image.Image, size int) image.Image {
	b := img.Bounds()
	longer := max(b.Dx(), b.Dy())
	to := image.Rect(0, 0, max(1, (b.Dx()*size+longer/2)/longer), max(1, (b.Dy()*size+longer/2)/longer))
	var dst draw.Image = image.NewRGBA(to)
	if _, ok := img.(*image.Gray); ok {
		dst = image.NewGray(to)
	}
	by.Scale(dst, to, img, b, draw.Src, nil)
	return dst
}
