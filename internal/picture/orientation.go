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
		row := q.Row(y)
		for x := range q.W {
			sx, sy := at(x, y)
			copy(row[x*p.C:(x+1)*p.C], p.Row(sy)[sx*p.C:])
		}
	}
	return q
}
