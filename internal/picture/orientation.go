package picture

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/word"
)

// Orientation says what the tag of orientation does that cameras write into files: JPEG, PNG and WebP have it in their Exif
// block, and TIFF among its tags.
type Orientation string

const (
	// Pillow turns TIFF files and no others, as PIL.Image.open does. The loaders of torchvision and timm use it.
	Pillow Orientation = "pillow"
	// Ignore turns no file.
	Ignore Orientation = "ignore"
	// Apply turns all files, as PIL.ImageOps.exif_transpose, Hugging Face's datasets and OpenCV do.
	Apply Orientation = "apply"
)

// ParseOrientation returns the orientation with a name.
func ParseOrientation(name string) (Orientation, error) {
	all := []Orientation{Pillow, Ignore, Apply}
	if i := slices.Index(all, Orientation(name)); i >= 0 {
		return all[i], nil
	}
	return "", fmt.Errorf("orientation %w", &word.Unknown{Word: name, Want: []string{string(Pillow), string(Ignore), string(Apply)}})
}

// Oriented returns the file with another treatment of its orientation. The empty one is [Pillow], which [Open] chooses.
func (f File) Oriented(o Orientation) File {
	swapped := f.turns() >= 5
	f.orientation = o
	if swapped != (f.turns() >= 5) {
		f.W, f.H = f.H, f.W
	}
	return f
}

// Sideways reports whether the file has an orientation that [Pillow] does not apply and [Apply] does.
func (f File) Sideways() bool { return f.tag != 0 && f.kind != tiffKind }

// turns returns the orientation that Decode undoes, or 0.
func (f File) turns() int {
	if f.orientation == Apply || f.orientation != Ignore && f.kind == tiffKind {
		return f.tag
	}
	return 0
}

// upright returns the place of a stored pixel for each pixel (x, y) of the upright picture. w and h are the stored size.
func upright(orientation, w, h int) func(x, y int) (storedX, storedY int) {
	flipX := orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8
	flipY := orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7
	swap := orientation >= 5
	return func(x, y int) (int, int) {
		if swap {
			x, y = y, x
		}
		if flipX {
			x = w - 1 - x
		}
		if flipY {
			y = h - 1 - y
		}
		return x, y
	}
}

// orient turns an image upright, given its orientation, 2 to 8. Any other one changes nothing.
func orient(p Picture, orientation int) Picture {
	if orientation < 2 || orientation > 8 {
		return p
	}
	q := New(p.W, p.H, p.C)
	if orientation >= 5 {
		q.W, q.H = p.H, p.W
	}
	at := upright(orientation, p.W, p.H)
	for y := range q.H {
		x0, y0 := at(0, y)
		x1, y1 := at(1, y)
		from, step := (y0*p.W+x0)*p.C, ((y1-y0)*p.W+x1-x0)*p.C // along a row, the stored pixels are at equal distances
		for row := q.Row(y); len(row) > 0; row, from = row[p.C:], from+step {
			row[0] = p.Pix[from]
			if p.C == 3 {
				row[1], row[2] = p.Pix[from+1], p.Pix[from+2]
			}
		}
	}
	return q
}
