package dataset

import (
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Pictured reports whether d, or a field of it, holds 8-bit pictures that are not normalised yet, so that [Changed] can change
// them.
func Pictured(d Dataset) bool { return pictured(d) != nil }

// pictured returns the first part of d with such pictures, or nil.
func pictured(d Dataset) Dataset {
	parts := []Dataset{d}
	if r, ok := d.(*record); ok {
		parts = r.parts
	}
	for _, p := range parts {
		if _, ok := p.(Bytes); ok && examplesIn(p).pictures != nil {
			return p
		}
	}
	return nil
}

// PictureSize returns the size of the pictures that [Changed] changes.
func PictureSize(d Dataset) (w, h int) {
	d = pictured(d)
	at := sides(*examplesIn(d).pictures, d.Shape())
	return int(at[1]), int(at[0])
}

// Changed returns d with each picture changed after it was resized and cropped, and before it is normalised. change gets
// the index of the picture in d. It must not change its argument, and returns a picture of the same size. Changed
// pictures are kept as far as the pool has memory, because every network reads them again. how describes the change for the ID, in
// values that encoding/json accepts. Other fields stay. Changed panics if d is not [Pictured]. Data with several fields must
// come from [Picked].
func Changed(d Dataset, kept *memory.Pool, change func(p picture.Picture, i int) picture.Picture, how ...any) Dataset {
	own := *examplesIn(d)
	own.n, own.labels, own.name, own.id = d.Len(), d.Labels(), d.Name, IDOf(ID(d), how...)
	if v, ok := d.(*view); ok {
		r := v.Dataset.(*record)
		out := &record{examples: &own, fixed: r.fixed}
		for _, p := range r.parts {
			if p = Picked(p, v.rows); Pictured(p) {
				p = Changed(p, kept.Split(len(r.parts)), change, how...)
			}
			out.parts = append(out.parts, p)
		}
		for _, list := range r.lengths {
			var lengths []int
			for _, i := range v.rows {
				if list != nil {
					lengths = append(lengths, list[i])
				}
			}
			out.lengths = append(out.lengths, lengths)
		}
		return out
	}
	b, s := d.(Bytes), examplesIn(d).pictures
	size := sides(*s, own.shape)
	own.cache = newCache(own.elems, kept, func(dst []byte, i int) ([]byte, error) {
		err := b.Pixels(dst, i)
		if err == nil {
			s.Lay(dst, change(s.Picture(dst, int(size[0]), int(size[1])), i))
		}
		return dst, err
	})
	return newPixels(&own, own.norm, own.cache.load)
}

// altered is a dataset whose values are changed.
type altered struct {
	Dataset
	labels target.Target
	alter  func(v Values, i int)
	length func(field, i int) int
	id     string
}

// Altered returns d with other labels, and with the values of each example altered before they reach the network.
// length replaces [Length]; it may be nil. how is as for [Changed].
func Altered(d Dataset, labels target.Target, alter func(v Values, i int), length func(field, i int) int, how ...any) Dataset {
	if length == nil {
		length = func(field, i int) int { return Length(d, field, i) }
	}
	return &altered{d, labels, alter, length, IDOf(ID(d), how...)}
}

func (d *altered) Read(dst Values, i int) error {
	err := d.Dataset.Read(dst, i)
	if err == nil {
		d.alter(dst, i)
	}
	return err
}

func (d *altered) Labels() target.Target   { return d.labels }
func (d *altered) common() *examples       { return examplesIn(d.Dataset) }
func (d *altered) Fields() []Field         { return Fields(d.Dataset) }
func (d *altered) Length(field, i int) int { return d.length(field, i) }
func (d *altered) ID() string              { return d.id }
