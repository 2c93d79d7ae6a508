// Package masks reads labels from pictures: a mask has a label for each pixel of one picture.
//
// A mask has the name of its picture, with another extension, in a folder of its own. All masks may have the same suffix
// behind that name, or words for masks instead of words that all pictures have. Then each picture must have a mask.
//
// # Invariants
//
// A mask is opened like a picture: it must be a regular file, and its memory belongs to the same budget. Its size is
// compared with that of its picture before its pixels are read. A number that is no label is an error.
package masks

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Pictures are the pictures that masks belong to.
type Pictures struct {
	Len  int
	Open func(i int) (*listing.Example, error)
	// Whole says that they are whole folders, so that a mask without a picture is an error.
	Whole bool
	// Transform resizes and crops each picture. Masks are resized and cropped in the same way, with the nearest pixel.
	Transform preprocess.Transform
	// Decoder decodes pictures and masks. Its budget limits the memory of both. A mask is turned by its own orientation.
	Decoder listing.Decoder
}

type masks struct {
	Pictures
	dir  string
	of   []string // the mask of each picture
	kind target.Kind
	at   target.Positions
}

// Open pairs the masks in a folder with pictures. It returns their labels, which are read later, and a SHA-256 of their
// names and sizes.
func Open(dir string, kind target.Kind, at target.Positions, of Pictures) (labels target.Target, sum string, err error) {
	if kind == target.Labels || at.Width > 1 {
		return labels, "", fmt.Errorf("%s: a folder of masks has one class or number for each pixel, and the network predicts %d: want "+
			"an array, %s", dir, at.Width, setting.Labels.With("FILE.npy"))
	}
	m := &masks{Pictures: of, dir: dir, kind: kind, at: at}
	if m.of, err = m.pair(); err != nil {
		return labels, "", err
	}
	return target.Lazy(of.Len, m.load), m.sum(), nil
}

// sum identifies the masks by their names and sizes, as listings do with pictures.
func (m *masks) sum() string {
	sum := sha256.New()
	for _, at := range m.of {
		size := int64(-1)
		if info, err := os.Stat(at); err == nil {
			size = info.Size()
		}
		fmt.Fprintf(sum, "%s\x00%d\n", at, size)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// load reads the labels of picture i. The mask is resized and cropped as the picture, with the nearest pixel.
func (m *masks) load(i int) (t target.Target, err error) {
	picture, err := m.Open(i)
	if err != nil {
		return t, err
	}
	w, h, err := picture.Size(m.Decoder)
	if err != nil {
		return t, file.Error(picture.Path(), err)
	}
	read := m.readLevels
	if strings.EqualFold(filepath.Ext(m.of[i]), ".npy") {
		read = m.readArray
	}
	err = read(listing.File(m.of[i]), w, h, func(n numbers) error {
		place, count, err := m.transform(w, h)
		if err == nil {
			t, err = m.labels(n, w, place, count)
		}
		return err
	})
	return t, file.Error(m.of[i], err)
}

// numbers are those of the pixels of a mask, row by row.
type numbers interface {
	Int64(k int) (v int64, ok bool) // ok is false if int64 cannot represent it
	Float64(k int) float64
}

// fits fails if a mask does not have the size of its picture.
func (m *masks) fits(maskW, maskH, w, h int) error {
	if maskW == w && maskH == h {
		return nil
	}
	turned := ""
	if maskW == h && maskH == w {
		other := picture.Apply
		if m.Decoder.Orientation == picture.Apply {
			other = picture.Ignore
		}
		turned = fmt.Sprintf(". The picture may have an orientation, and the mask is that of the picture with %s",
			setting.Preprocess.With("orientation="+string(other)))
	}
	return fmt.Errorf("a mask of %d×%d pixels, and its picture has %d×%d%s", maskW, maskH, w, h, turned)
}

// memory returns about how many bytes the labels of a mask take.
func (m *masks) memory(w, h int) int64 {
	const resized, label = 2, 8 // bytes of a pixel
	t := m.Transform.InputSize
	return resized*int64(w)*int64(h) + label*max(int64(w)*int64(h), 2*int64(t[0])*int64(t[1]))
}

// readLevels calls use with the numbers of a mask in a picture file. The picture has w×h pixels.
func (m *masks) readLevels(mask *listing.Example, w, h int, use func(numbers) error) error {
	maskW, maskH, err := mask.Size(m.Decoder)
	if err == nil {
		err = m.fits(maskW, maskH, w, h)
	}
	if err != nil {
		return err
	}
	return mask.Levels(m.Decoder, m.memory(w, h), func(l picture.Levels) error {
		if err := m.fits(l.W, l.H, w, h); err != nil { // the file has changed meanwhile
			return err
		}
		return use(levels{l})
	})
}

// levels are the numbers of a picture.
type levels struct{ picture.Levels }

func (l levels) Int64(k int) (int64, bool) { return int64(l.At(k)), true }
func (l levels) Float64(k int) float64     { return float64(l.At(k)) }

// readArray calls use with the numbers of a mask in a .npy file of shape [H W].
func (m *masks) readArray(mask *listing.Example, w, h int, use func(numbers) error) error {
	f, release, off, size, err := mask.Open()
	if err != nil {
		return err
	}
	defer release()
	array, err := numpy.New(io.NewSectionReader(f, off, size), size)
	if err != nil {
		return err
	}
	if array.Keys != nil {
		return errors.New("an .npz file, want one array")
	}
	of, shape, err := array.Shape("")
	switch {
	case err != nil:
		return err
	case len(shape) != 2:
		return fmt.Errorf("an array of shape %d, want [H W]", shape)
	case m.kind == target.Classes && of.Kind == 'f':
		return fmt.Errorf("%s values, want an integer type (class numbers)", of.Name)
	}
	if err := m.fits(shape[1], shape[0], w, h); err != nil {
		return err
	}
	n := int64(w)*int64(h)*int64(of.Size) + m.memory(w, h)
	return m.Decoder.Decode(fmt.Sprintf("reading %d×%d pixels", w, h), 0, n, func() error {
		x, err := array.Read("", numpy.Values)
		if err != nil {
			return err
		}
		return use(x)
	})
}

// labels returns the labels of count pixels. Pixel k is place(k) of a mask of width w, or outside of it if that is
// below 0.
func (m *masks) labels(n numbers, w int, place func(k int) int, count int) (t target.Target, err error) {
	t.Positions = count
	if m.kind == target.Classes {
		t.Classes = make([]int, count)
	} else {
		t.Values, t.Width = make([]float64, count), 1
	}
	for k := range count {
		at := place(k)
		switch {
		case m.kind == target.Classes && at < 0:
			t.Classes[k] = target.Unknown
		case m.kind == target.Classes:
			v, ok := n.Int64(at)
			if t.Classes[k], err = m.at.Class(v, ok); err != nil {
				return t, fmt.Errorf("position (%d, %d): %w", at/w, at%w, err)
			}
		case at < 0:
			t.Values[k] = math.NaN()
		default:
			if t.Values[k] = n.Float64(at); math.IsInf(t.Values[k], 0) {
				return t, fmt.Errorf("position (%d, %d): %v, want a number, or NaN where it is not known", at/w, at%w, t.Values[k])
			}
		}
	}
	return t, nil
}

// transform resizes and crops a mask of w×h pixels as its picture, by the nearest pixel. It returns the pixel of the mask
// for each of count pixels, or −1 for pixels outside.
func (m *masks) transform(w, h int) (place func(k int) int, count int, err error) {
	t := m.Transform
	if whole := t.InputSize == [2]int{}; t.CropMode == preprocess.CropNone && (whole || w == t.InputSize[1] && h == t.InputSize[0]) {
		return func(k int) int { return k }, w * h, nil
	}
	t.Interpolation = picture.Nearest
	// Pixels of a picture have 8 bits. So the number of each pixel, plus 1, is moved in parts.
	parts := []int{0, 8, 16, 24}
	index := make([]uint32, t.InputSize[0]*t.InputSize[1])
	for _, shift := range parts {
		if w*h>>shift == 0 {
			break
		}
		from := picture.New(w, h, 1)
		for i := range from.Pix {
			from.Pix[i] = byte((i + 1) >> shift)
		}
		to, err := t.Apply(from)
		if err != nil {
			return nil, 0, err
		}
		for i, v := range to.Pix {
			index[i] |= uint32(v) << shift
		}
	}
	return func(k int) int { return int(index[k]) - 1 }, len(index), nil
}
