package dataset

import (
	"fmt"
	"sort"
	"sync"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Tiling cuts pictures into overlapping squares, for pictures that are too large for the network or of different sizes.
type Tiling struct {
	Size    int // length of a side, in pixels
	Overlap int // how far neighbours overlap, in pixels; less than Size
}

// starts returns where tiles begin along a side of n pixels. The last tile ends with the picture, as in MMSegmentation and
// MONAI. A picture smaller than a tile has one.
func (t Tiling) starts(n int) (out []int) {
	step := t.Size - t.Overlap
	for at := 0; ; at += step {
		if at+t.Size >= n {
			return append(out, max(0, n-t.Size))
		}
		out = append(out, at)
	}
}

// Tiles is a dataset whose examples are the tiles of image files, one picture after the other, row by row.
type Tiles struct {
	*pixels
	Tiling
	// PictureName and PictureLabels are those of whole pictures.
	PictureName   func(k int) string
	PictureLabels target.Target

	pictures []size2
	first    []int // tile of each picture, and the number of tiles

	mu   sync.Mutex
	kept picture.Picture // the last picture that was decoded
	at   int             // its number, or −1
}

type size2 struct{ h, w int }

func (o Options) openTiles(e *examples, of string, at func(i int) (*listing.Example, error), decoder listing.Decoder) (Dataset, error) {
	t := &Tiles{Tiling: o.Tiling, PictureName: e.name, PictureLabels: e.labels, at: -1}
	p, err := o.preprocess()
	if err == nil && p.Image.CropMode != preprocess.CropNone {
		err = fmt.Errorf("the preprocessing resizes pictures (%s), and tiles keep their size: leave out %s, or fit without resizing",
			p.Image.CropMode, setting.Tile)
	}
	shape := append([]int64{}, o.Shape...)
	if err == nil && len(shape) == 3 {
		p.Image.InputSize = [2]int{}
		for _, side := range sides(p, shape) {
			if side > 0 && side != int64(t.Size) {
				err = fmt.Errorf("tiles of %d×%d pixels, and the network takes %d", t.Size, t.Size, o.Shape)
			}
		}
		p.Image.InputSize = [2]int{t.Size, t.Size}
	}
	if err == nil {
		p, err = p.Resolve(shape)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	n := 0
	for k := range e.n {
		h, w, err := headerSize(at, k, decoder)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name(k), err)
		}
		t.first, t.pictures = append(t.first, n), append(t.pictures, size2{h, w})
		n += len(t.starts(h)) * len(t.starts(w))
	}
	own := *e
	own.n, own.labels = n, target.Target{}
	t.first = append(t.first, own.n)
	own.name = func(i int) string {
		k, _, _, y, x := t.Place(i)
		return fmt.Sprintf("%s (tile at %d, %d)", t.PictureName(k), x, y)
	}
	own.setShape(p.Shape())
	norm, err := p.Normalizer(own.shape, true)
	if err != nil {
		return nil, err
	}
	t.pixels = newPixels(&own, norm, func(dst []byte, i int) ([]byte, error) {
		k, _, _, y, x := t.Place(i)
		whole, err := t.picture(k, func() (got picture.Picture, err error) {
			x, err := at(k)
			if err == nil {
				err = x.Picture(e.counted(decoder, k), p.Channels == "grey", func(p picture.Picture) error {
					got = p
					got.Pix = append([]byte(nil), p.Pix...)
					return nil
				})
			}
			return got, err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.PictureName(k), err)
		}
		p.Lay(dst, cut(whole, y, x, t.Size))
		return dst, nil
	})
	return t, nil
}

// headerSize reads the size of picture k from its header.
func headerSize(at func(i int) (*listing.Example, error), k int, decoder listing.Decoder) (h, w int, err error) {
	e, err := at(k)
	if err == nil {
		w, h, err = e.Size(decoder)
	}
	return h, w, err
}

// picture returns picture k. Tiles of one picture follow each other, so it keeps the last one.
func (t *Tiles) picture(k int, read func() (picture.Picture, error)) (picture.Picture, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at != k {
		p, err := read()
		if err != nil {
			return p, err
		}
		t.kept, t.at = p, k
	}
	return t.kept, nil
}

// cut returns a square of a picture. Pixels outside are the nearest of the picture.
func cut(p picture.Picture, y, x, side int) picture.Picture {
	out := picture.New(side, side, p.C)
	for r := range side {
		from, to := p.Row(min(y+r, p.H-1)), out.Row(r)
		n := min(side, p.W-x)
		copy(to, from[x*p.C:(x+n)*p.C])
		for c := n; c < side; c++ {
			copy(to[c*p.C:(c+1)*p.C], from[(p.W-1)*p.C:])
		}
	}
	return out
}

// Pictures returns the number of pictures.
func (t *Tiles) Pictures() int { return len(t.pictures) }

// First returns the first tile of picture k, or the number of tiles for k = Pictures.
func (t *Tiles) First(k int) int { return t.first[k] }

// Place returns the picture of tile i and its height and width, and the upper left corner of the tile in it. Parts of a
// tile that lie outside a small picture repeat its last pixels.
func (t *Tiles) Place(i int) (k, h, w, y, x int) {
	k = sort.SearchInts(t.first, i+1) - 1
	s := t.pictures[k]
	across := t.starts(s.w)
	in := i - t.first[k]
	return k, s.h, s.w, t.starts(s.h)[in/len(across)], across[in%len(across)]
}
