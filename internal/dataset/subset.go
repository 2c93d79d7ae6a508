package dataset

import "github.com/swagwrap/swagwrap/internal/truth"

// subset is a selection of the examples of a dataset.
type subset struct {
	Dataset
	rows   []int
	labels truth.Truth
}

// Subset returns the examples of d that o visits, in the order of o. It returns d itself if these are all examples in
// their order.
func Subset(d Dataset, o Order) Dataset {
	if !o.Shuffle && (o.Limit <= 0 || o.Limit >= d.Len()) {
		return d
	}
	s := &subset{Dataset: d, rows: o.Indices(d.Len())}
	s.labels = d.Labels().Pick(s.rows)
	return s
}

func (s *subset) common() *examples            { return of(s.Dataset) }
func (s *subset) Len() int                     { return len(s.rows) }
func (s *subset) Labels() truth.Truth          { return s.labels }
func (s *subset) Fields() []Field              { return Fields(s.Dataset) }
func (s *subset) Length(field, i int) int      { return Length(s.Dataset, field, s.rows[i]) }
func (s *subset) Name(i int) string            { return s.Dataset.Name(s.rows[i]) }
func (s *subset) Read(dst Values, i int) error { return s.Dataset.Read(dst, s.rows[i]) }
