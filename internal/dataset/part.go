package dataset

import "github.com/swagwrap/swagwrap/internal/truth"

// Part returns the examples [first, end) of d, with their names in d. Its sources are those of d. It panics if the
// range is empty or not within d.
func Part(d Dataset, first, end int) Dataset {
	if first < 0 || first >= end || end > d.Len() {
		panic("dataset: part out of range")
	}
	p := part{d, first, end}
	if b, ok := d.(Bytes); ok {
		return &bytesPart{p, b}
	}
	return &p
}

// Load prepares the examples [first, end) of d for reading, and drops all others. It has an effect only with
// [Options].Parted. No other method of d may run at the same time.
func Load(d Dataset, first, end int) error {
	if p := of(d).loaded; p != nil {
		return p.Load(first, end)
	}
	return nil
}

// LoadRows is like [Load] for the given examples, in ascending order. It returns their true values. The examples of a
// [Part] are already loaded.
func LoadRows(d Dataset, rows []int) (truth.Truth, error) {
	switch d.(type) {
	case *part, *bytesPart:
	default:
		if p := of(d).loaded; p != nil {
			return p.LoadRows(rows)
		}
	}
	return d.Labels().Pick(rows), nil
}

type part struct {
	Dataset
	first, end int
}

func (p *part) Len() int                     { return p.end - p.first }
func (p *part) Name(i int) string            { return p.Dataset.Name(p.at(i)) }
func (p *part) Read(dst Values, i int) error { return p.Dataset.Read(dst, p.at(i)) }
func (p *part) common() *examples            { return of(p.Dataset) }
func (p *part) Fields() []Field              { return Fields(p.Dataset) }
func (p *part) Length(field, i int) int      { return Length(p.Dataset, field, p.at(i)) }

func (p *part) Labels() truth.Truth {
	if all := of(p.Dataset).loaded; all != nil {
		if t := all.Labels(p.first, p.end); !t.None() {
			return t
		}
	}
	return p.Dataset.Labels().Part(p.first, p.end)
}

// at returns the index of an example in the whole dataset.
func (p *part) at(i int) int {
	if i < 0 || i >= p.Len() {
		panic("dataset: example out of range")
	}
	return p.first + i
}

type bytesPart struct {
	part
	all Bytes
}

func (p *bytesPart) Pixels(dst []byte, i int) error      { return p.all.Pixels(dst, p.at(i)) }
func (p *bytesPart) Normalize(dst []float32, src []byte) { p.all.Normalize(dst, src) }
