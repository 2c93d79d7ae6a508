// Package montage shows the most and the least certain images of a run with their predictions, as a page.
//
// # Invariants
//
// Output depends only on the tiles and the images. Names are escaped, and control characters are shown as "�".
//
// # Concurrency
//
// A Montage must not be used by two goroutines at once.
package montage

import (
	"cmp"
	"errors"
	"fmt"
	"image"
	"math"
	"slices"

	"golang.org/x/image/draw"

	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Montage picks examples from a stream of any length. It keeps only the examples that it would show.
type Montage struct {
	Title string
	Note  string // below the title: the ensemble and the data
	// Words explain the tiles and the sections.
	Words task.Selection
	// Name returns the name of the example with an index, as in output rows.
	Name func(index int) string
	// Image returns the image of the example with an index. It is called once for each tile, and the image is not
	// kept. If it fails, this tile shows the error instead.
	Image func(index int) (image.Image, error)

	most     int // the most pictures of a section
	examples int
	sections [4]top // certain, uncertain, disagreement, wrong
}

// New returns a montage of at most n examples for each section; n must be positive.
func New(n int) *Montage { return &Montage{most: n} }

// noDisagreement is the disagreement below which members agree up to rounding. Networks compute in float32, and
// averages of equal probabilities differ in their last bits.
const noDisagreement = 1e-9

// Add offers an example. Examples may come in any order. Of equal ones the lower index is shown first. An example with
// numbers that are not finite is skipped, because it could not be scored.
func (m *Montage) Add(index int, t task.Tile) {
	if sum := t.Uncertainty + t.Disagreement + t.Error; sum-sum != 0 {
		return
	}
	m.examples++
	for i, key := range [4]float64{-t.Uncertainty, t.Uncertainty, t.Disagreement, t.Error} {
		if i < 2 || i == 2 && t.Disagreement > noDisagreement || i == 3 && t.Wrong {
			m.sections[i].add(example{key, index, t}, m.most)
		}
	}
}

// An example has the key that orders the section.
type example struct {
	key   float64
	index int
	task.Tile
}

// top holds the examples with the highest keys, in order.
type top []example

// add keeps e if it is among the best n so far. In a long stream almost no example is, so the common case is one
// comparison.
func (t *top) add(e example, n int) {
	before := func(a, b example) int { return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(a.index, b.index)) }
	if len(*t) == n && before(e, (*t)[n-1]) > 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(*t, e, before)
	*t = slices.Insert(*t, at, e)
	*t = (*t)[:min(len(*t), n)]
}

// A section has examples with something in common.
type section struct {
	Heading, Explanation string
	examples             []example
}

// shown returns the sections that are not empty, the most extreme examples first. If there are few examples, none is in
// both the certain and the uncertain section.
func (m *Montage) shown() (sections []section) {
	for i, examples := range m.sections {
		switch i {
		case 0:
			examples = examples[:min(len(examples), (m.examples+1)/2)]
		case 1:
			examples = examples[:min(len(examples), m.examples/2)]
		}
		if len(examples) > 0 {
			sections = append(sections, section{m.Words.Sections[i][0], m.Words.Sections[i][1], examples})
		}
	}
	return sections
}

// image returns the image of an example. It fails if the image has no pixels.
func (m *Montage) image(index int) (image.Image, error) {
	img, err := m.Image(index)
	if err != nil {
		return nil, errors.New(text.Clean(err.Error()))
	}
	if b := img.Bounds(); b.Empty() {
		return nil, fmt.Errorf("an image of %d×%d pixels", b.Dx(), b.Dy())
	}
	return img, nil
}

func longer(img image.Image) int { return max(img.Bounds().Dx(), img.Bounds().Dy()) }

// isPixelArt reports whether the pixels of an image are shown as squares when enlarged. Smoothing 28 pixels would hide
// what the network sees.
func isPixelArt(img image.Image) bool { return longer(img) <= 64 }

// resize scales img until its longer side is size. A grey image stays grey, which halves its file.
func resize(img image.Image, size int) image.Image {
	b, scale := img.Bounds(), float64(size)/float64(longer(img))
	side := func(n int) int { return max(1, int(math.Round(float64(n)*scale))) }
	to := image.Rect(0, 0, side(b.Dx()), side(b.Dy()))
	var dst draw.Image = image.NewRGBA(to)
	if _, ok := img.(*image.Gray); ok {
		dst = image.NewGray(to)
	}
	draw.CatmullRom.Scale(dst, to, img, b, draw.Src, nil)
	return dst
}
