package dataset

import (
	"fmt"
	"strings"

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

// Damaged are test examples that are damaged in several severities: see package shift.
type Damaged struct {
	Corruptions []string
	Severities  []int
	Examples    int // of the test data
	// Each is the number of corruptions of each example. At each severity, row j of the damaged data is example j/Each with
	// corruption j modulo their number.
	Each int
	// Rows has the example of each row, as an index in the test data.
	Rows []int
	// Sets are the damaged data by severity. Those of a text are by severity and then by corruption.
	Sets  []Dataset
	Texts bool // examples are the documents of a text
	// Clean are the examples themselves, for networks that score positions. nil stands for all test data.
	Clean Dataset
}

// Named returns the severities in words.
func (d *Damaged) Named() string {
	first, last := d.Severities[0], d.Severities[len(d.Severities)-1]
	switch n := len(d.Severities); {
	case n == 1:
		return fmt.Sprintf("severity %d", first)
	case last-first == n-1 && n > 2:
		return fmt.Sprintf("severities %d to %d", first, last)
	default:
		return fmt.Sprintf("severities %s and %d", strings.Trim(strings.ReplaceAll(fmt.Sprint(d.Severities[:n-1]), " ", ", "), "[]"), last)
	}
}

// With returns the examples with corruption c, as indexes in the test data.
func (d *Damaged) With(c int) (examples []int) {
	for i := c; i < len(d.Rows); i += len(d.Corruptions) {
		examples = append(examples, d.Rows[i])
	}
	return examples
}

// Unit returns the word for a damaged example: "image", "example", or "document" for a part of a text.
func (d *Damaged) Unit(test Dataset) string {
	if d.Texts {
		return "document"
	}
	return Unit(test)
}

// Chosen returns the damaged examples, as indexes in the test data.
func (d *Damaged) Chosen() (out []int) {
	for j := 0; j < len(d.Rows); j += d.Each {
		out = append(out, d.Rows[j])
	}
	return out
}

// Severity returns the severity of set k−1. Clean examples are set 0 and have severity 0.
func (d *Damaged) Severity(k int) int {
	if k == 0 {
		return 0
	}
	return d.Severities[k-1]
}
