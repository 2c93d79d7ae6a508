// Package masks reads labels from pictures: a mask has a label for each pixel of one picture.
//
// A mask has the name of its picture, with another extension, in a folder of its own. All masks may have the same ending
// behind that name.
package masks

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // decoders of masks
	"image/png"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	_ "golang.org/x/image/tiff"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Pictures are the pictures that masks belong to.
type Pictures struct {
	Len  int
	Open func(i int) (*listing.Example, error)
	// Whole says that they are whole folders, so that a mask without a picture is an error.
	Whole bool
	// Transform resizes and crops each picture. Masks are resized and cropped in the same way, with the nearest pixel.
	Transform preprocess.Transform
}

type masks struct {
	Pictures
	dir  string
	of   []string // the mask of each picture
	kind truth.Kind
	at   truth.Positions
}

// extensions are the formats of masks. JPEG changes the numbers.
var extensions = []string{".png", ".tif", ".tiff", ".gif", ".npy"}

// Open pairs the masks in a folder with pictures. It returns their labels, which are read later, and a SHA-256 of their
// names and sizes.
func Open(dir string, kind truth.Kind, at truth.Positions, of Pictures) (labels truth.Truth, sum string, err error) {
	if kind == truth.Labels || at.Width > 1 {
		return labels, "", fmt.Errorf("%s: a folder of masks has one class or number for each pixel, and the network predicts %d: want an array, --labels FILE.npy", dir, at.Width)
	}
	m := &masks{Pictures: of, dir: dir, of: make([]string, of.Len), kind: kind, at: at}
	found, err := m.list()
	if err == nil {
		err = m.pair(found)
	}
	if err != nil {
		return labels, "", err
	}
	return truth.Lazy(of.Len, m.load), m.sum(), nil
}

// list returns the masks by their path below the folder without the extension.
func (m *masks) list() (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(m.dir, func(at string, d fs.DirEntry, err error) error {
		ext := filepath.Ext(at)
		if err != nil || d.IsDir() || !slices.Contains(extensions, strings.ToLower(ext)) {
			return err
		}
		rel, err := filepath.Rel(m.dir, at)
		if err != nil {
			return err
		}
		stem := filepath.ToSlash(strings.TrimSuffix(rel, ext))
		if other := found[stem]; other != "" {
			return fmt.Errorf("%s: %s is a mask of the same picture", at, other)
		}
		found[stem] = at
		return nil
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: a folder without masks (%s)", m.dir, strings.Join(extensions, " "))
	}
	return found, err
}

// pair finds the mask of each picture.
func (m *masks) pair(found map[string]string) error {
	stems := make([]string, len(m.of))
	for i := range m.of {
		e, err := m.Open(i)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(e.Path())
		stems[i] = strings.TrimSuffix(name, path.Ext(name))
	}
	ending := m.ending(found, stems[0])
	used, missing := map[string]int{}, []string(nil)
	for i, stem := range stems {
		key, ok := below(found, stem, ending)
		if !ok {
			missing = append(missing, stem)
			continue
		}
		if j, twice := used[key]; twice {
			return fmt.Errorf("%s: would be the mask of two pictures: %s and %s", found[key], stems[j], stem)
		}
		used[key], m.of[i] = i, found[key]
	}
	if missing != nil {
		return fmt.Errorf("%s: %d of %d pictures have no mask: %s", m.dir, len(missing), len(stems), first(missing))
	}
	if extra := len(found) - len(used); m.Whole && extra > 0 {
		var names []string
		for _, key := range slices.Sorted(maps.Keys(found)) {
			if _, ok := used[key]; !ok {
				names = append(names, found[key])
			}
		}
		return fmt.Errorf("%s: %d masks have no picture: %s", m.dir, extra, first(names))
	}
	return nil
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

// first lists the first names of several.
func first(names []string) string {
	const shown = 5
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// below finds the mask of a picture, at the longest end of its path.
func below(found map[string]string, stem, ending string) (string, bool) {
	for rest := stem; ; {
		if found[rest+ending] != "" {
			return rest + ending, true
		}
		_, after, more := strings.Cut(rest, "/")
		if !more {
			return "", false
		}
		rest = after
	}
}

// ending returns what masks have behind the names of pictures, such as "_mask". It is that of the first picture.
func (m *masks) ending(found map[string]string, stem string) string {
	if _, ok := below(found, stem, ""); ok {
		return ""
	}
	base := path.Base(stem)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if rest, ok := strings.CutPrefix(path.Base(key), base); ok && !(rest[0] >= '0' && rest[0] <= '9') {
			return rest
		}
	}
	return ""
}

// load reads the labels of picture i. The mask is resized and cropped as the picture, with the nearest pixel.
func (m *masks) load(i int) (t truth.Truth, err error) {
	at := m.of[i]
	defer func() {
		if err != nil {
			err = file.Error(at, err)
		}
	}()
	values, w, h, err := m.read(at)
	if err != nil {
		return t, err
	}
	picture, err := m.Open(i)
	if err != nil {
		return t, err
	}
	if pw, ph, err := picture.Size(); err != nil {
		return t, err
	} else if pw != w || ph != h {
		return t, fmt.Errorf("a mask of %d×%d pixels, and its picture has %d×%d", w, h, pw, ph)
	}
	if values, err = m.transform(values, w, h); err != nil {
		return t, err
	}
	t.Positions = len(values)
	if m.kind == truth.Classes {
		t.Classes = make([]int, len(values))
		for k, v := range values {
			if t.Classes[k] = truth.Unknown; v == v {
				t.Classes[k] = m.at.Class(int(v))
			}
		}
		return t, nil
	}
	t.Values, t.Width = values, 1
	return t, nil
}

// read returns the numbers of a mask, row by row.
func (m *masks) read(at string) (values []float64, w, h int, err error) {
	if strings.EqualFold(filepath.Ext(at), ".npy") {
		return m.readArray(at)
	}
	data, err := os.ReadFile(at)
	if err != nil {
		return nil, 0, 0, file.Cause(err)
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err == nil {
		err = picture.CheckSize(c.Width, c.Height)
	}
	if err != nil {
		return nil, 0, 0, err
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, 0, 0, err
	}
	b := img.Bounds()
	w, h = b.Dx(), b.Dy()
	values = make([]float64, 0, w*h)
	scale := greyScale(data)
	for y := range h {
		switch p := img.(type) {
		case *image.Gray:
			for _, v := range p.Pix[y*p.Stride:][:w] {
				values = append(values, float64(v/scale))
			}
		case *image.Gray16:
			for x := range w {
				values = append(values, float64(binary.BigEndian.Uint16(p.Pix[y*p.Stride+2*x:])))
			}
		case *image.Paletted: // the index is the number
			for _, v := range p.Pix[y*p.Stride:][:w] {
				values = append(values, float64(v))
			}
		default:
			return nil, 0, 0, errors.New("a mask in colours, and colours are no class numbers: save it with a palette (mode P), or as grey levels that are the numbers (mode L or I;16)")
		}
	}
	return values, w, h, nil
}

// greyScale returns the factor by which Go's decoder multiplies grey levels of 1, 2 or 4 bits.
func greyScale(data []byte) byte {
	const depth = 24 // the place of the number of bits in a PNG file
	if _, err := png.DecodeConfig(bytes.NewReader(data)); err != nil {
		return 1
	}
	if bits := data[depth]; bits < 8 {
		return 255 / (1<<bits - 1)
	}
	return 1
}

// readArray reads a mask from a .npy file of shape [H W].
func (m *masks) readArray(at string) (values []float64, w, h int, err error) {
	f, err := numpy.Open(at)
	if err != nil {
		return nil, 0, 0, err
	}
	defer f.Close()
	x, err := f.Read("", numpy.Values)
	switch {
	case err != nil:
		return nil, 0, 0, err
	case len(x.Shape) != 2:
		return nil, 0, 0, fmt.Errorf("an array of shape %d, want [H W]", x.Shape)
	case m.kind == truth.Classes && x.Type.Kind == 'f':
		return nil, 0, 0, fmt.Errorf("%s values, want an integer type (class numbers)", x.Type.Name)
	}
	return x.Float64s(), x.Shape[1], x.Shape[0], nil
}

// transform resizes and crops numbers as the pictures, by the nearest pixel. Pixels outside the picture become NaN.
func (m *masks) transform(values []float64, w, h int) ([]float64, error) {
	t := m.Transform
	if whole := t.InputSize == [2]int{}; t.CropMode == preprocess.CropNone && (whole || w == t.InputSize[1] && h == t.InputSize[0]) {
		return values, nil
	}
	t.Interpolation = picture.Nearest
	// Pixels of a picture have 8 bits. So the number of each pixel, plus 1, is moved in parts.
	parts := []int{0, 8, 16, 24}
	out := []float64(nil)
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
			return nil, err
		}
		for i, v := range to.Pix {
			index[i] |= uint32(v) << shift
		}
	}
	for _, k := range index {
		if k == 0 {
			out = append(out, math.NaN())
		} else {
			out = append(out, values[k-1])
		}
	}
	return out, nil
}
