package dataset

import "github.com/swagwrap/swagwrap/internal/target"

// Part returns the examples [first, end) of d, with their names in d. Its sources are those of d. It panics if the
// range is empty or not within d.
func Part(d Dataset, first, end int) Dataset {
	if first < 0 || first >= end || end > d.Len() {
		panic("dataset: part out of range")
	}
	return newView(view{Dataset: d, first: first, n: end - first, id: []any{"part", first, end}})
}

// Subset returns the examples of d that o visits, in the order of o. It returns d itself if these are all examples in
// their order.
func Subset(d Dataset, o Order) Dataset {
	if !o.Shuffle && (o.Limit <= 0 || o.Limit >= d.Len()) {
		return d
	}
	return Picked(d, o.Indices(d.Len()))
}

// Picked returns the given examples of d, in that order. An example may be there several times.
func Picked(d Dataset, rows []int) Dataset {
	return newView(view{Dataset: d, rows: rows, n: len(rows), labels: d.Labels().Pick(rows), id: []any{"subset", rows}})
}

// Load prepares the examples [first, end) of d for reading, and drops all others. It has an effect only with
// [Options].Parted. No other method of d may run at the same time.
func Load(d Dataset, first, end int) error {
	if p := examplesIn(d).loaded; p != nil {
		return p.Load(first, end)
	}
	return nil
}

// LoadRows is like [Load] for the given examples, in ascending order. It returns their true values. The examples of a
// [Part] are already loaded.
func LoadRows(d Dataset, rows []int) (target.Target, error) {
	switch d.(type) {
	case *view, *bytesView:
	default:
		if p := examplesIn(d).loaded; p != nil {
			return p.LoadRows(rows)
		}
	}
	return d.Labels().Pick(rows), nil
}

// view is a selection of the examples of a dataset: a range, or a list of rows.
type view struct {
	Dataset
	n      int
	first  int   // index of the first example of a range
	rows   []int // nil for a range
	labels target.Target
	id     []any // how the selection was made
}

func newView(v view) Dataset {
	if b, ok := v.Dataset.(Bytes); ok {
		return &bytesView{v, b}
	}
	return &v
}

func (v *view) Len() int                     { return v.n }
func (v *view) Name(i int) string            { return v.Dataset.Name(v.at(i)) }
func (v *view) Read(dst Values, i int) error { return v.Dataset.Read(dst, v.at(i)) }
func (v *view) common() *examples            { return examplesIn(v.Dataset) }
func (v *view) Fields() []Field              { return Fields(v.Dataset) }
func (v *view) Length(field, i int) int      { return Length(v.Dataset, field, v.at(i)) }
func (v *view) positionsUsed(i, n int) int   { return positionsUsed(v.Dataset, v.at(i), n) }
func (v *view) ID() string                   { return IDOf(ID(v.Dataset), v.id...) }

func (v *view) Labels() target.Target {
	if v.rows != nil {
		return v.labels
	}
	end := v.first + v.n
	if all := examplesIn(v.Dataset).loaded; all != nil {
		if t := all.Labels(v.first, end); !t.None() {
			return t
		}
	}
	return v.Dataset.Labels().Part(v.first, end)
}

// at returns the index of an example in the whole dataset.
func (v *view) at(i int) int {
	switch {
	case i < 0 || i >= v.n:
		panic("dataset: example out of range")
	case v.rows != nil:
		return v.rows[i]
	}
	return v.first + i
}

// bytesView is a view whose examples are uint8 values.
type bytesView struct {
	view
	all Bytes
}

func (v *bytesView) Pixels(dst []byte, i int) error      { return v.all.Pixels(dst, v.at(i)) }
func (v *bytesView) Normalize(dst []float32, src []byte) { v.all.Normalize(dst, src) }
