// Package probe checks a network and its data before a run is trusted. It decides the form of the scores, compares
// the examples with those of training, and tests whether an example's scores depend on its batch.
//
// Every check looks at a [Sample], a few examples from all over the data. A check adds to a [Report]. A report holds
// the decisions that a run keeps and the warnings that stay with its results.
//
// # Concurrency
//
// A Sample may be read from several goroutines. A Report belongs to one.
package probe

import (
	"cmp"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/splitmix"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/weights"
)

// Examples is the number of examples in a Sample, if the data has as many and memory allows.
const Examples = 256

// seed chooses the examples: "intake" in ASCII. It is fixed, so that all jobs that share
// the data see the same examples.
const seed = 0x696e74616b65

// A Sample is examples from all over a data set, in memory. It is a [dataset.Dataset].
type Sample struct {
	dataset.Dataset
	// Unreadable examples were chosen, but could not be read.
	Unreadable int

	values []dataset.Values
	rows   []int // indices of the examples in the data
	labels target.Target
}

// Hold reads up to [Examples] examples into at most so many bytes, but at least one example, as [Spread] chooses them. So a sample of
// sorted data holds every class that is not rare.
//
// Goroutines of the given number share the reading. Examples that cannot be read are counted. If none can be read,
// the sample is empty, and the error is that of the first. An error of [dataset.Fatal] ends the reading.
func Hold(d dataset.Dataset, bytes int64, goroutines int) (*Sample, error) {
	return HoldFew(d, Examples, bytes, goroutines)
}

// HoldFew is Hold for fewer examples than [Examples].
func HoldFew(d dataset.Dataset, examples int, bytes int64, goroutines int) (*Sample, error) {
	size, err := dataset.SizeOf(d)
	if err != nil {
		return nil, err
	}
	n := min(examples, d.Len(), int(max(1, bytes/max(1, size.Bytes()))))
	s := &Sample{Dataset: d}
	rows := Spread(n, d.Len())
	labels, failed := dataset.LoadRows(d, rows)
	if failed != nil {
		return nil, failed
	}
	values, errs := make([]dataset.Values, n), make([]error, n)
	var g errgroup.Group
	g.SetLimit(goroutines)
	for k, row := range rows {
		g.Go(weights.Guarded(func() error {
			values[k] = size.Make(1)
			if errs[k] = d.Read(values[k], row); dataset.Fatal(errs[k]) {
				return errs[k]
			}
			return nil
		}))
	}
	if failed := g.Wait(); failed != nil {
		return nil, failed
	}
	var held []int // numbers of the rows that could be read
	for k, row := range rows {
		if errs[k] != nil {
			err = cmp.Or(err, dataset.Unreadable(errs[k]))
			s.Unreadable++
			continue
		}
		s.values, s.rows, held = append(s.values, values[k]), append(s.rows, row), append(held, k)
	}
	if len(s.rows) == 0 {
		return s, err
	}
	s.labels = labels.Pick(held)
	return s, nil
}

// Spread returns the indices of n of so many examples, in ascending order: one of each stretch, chosen by a fixed seed.
func Spread(n, of int) []int {
	rows := make([]int, min(n, of))
	for k := range rows {
		first, end := k*of/len(rows), (k+1)*of/len(rows)
		rows[k] = first + int(splitmix.Nth(seed, uint64(k))%uint64(end-first))
	}
	return rows
}

// spread returns the indices of at most n examples from all over the sample.
func (s *Sample) spread(n int) (rows []int) {
	n = min(n, s.Len())
	for k := range n {
		rows = append(rows, k*s.Len()/n)
	}
	return rows
}

// Len returns the number of examples in the sample.
func (s *Sample) Len() int { return len(s.rows) }

// Values are those of example i, in the order of [dataset.Dataset.Read]. They must not be
// changed.
func (s *Sample) Values(i int) dataset.Values { return s.values[i] }

// Labels returns the labels of the examples.
func (s *Sample) Labels() target.Target { return s.labels }

// Name returns the name that example i has in the data.
func (s *Sample) Name(i int) string { return s.Dataset.Name(s.rows[i]) }

// Fields returns the fields of the data.
func (s *Sample) Fields() []dataset.Field { return dataset.Fields(s.Dataset) }

// Length returns the length that example i has in the data.
func (s *Sample) Length(field, i int) int { return dataset.Length(s.Dataset, field, s.rows[i]) }

// Read copies example i.
func (s *Sample) Read(dst dataset.Values, i int) error {
	dst.Copy(s.values[i])
	return nil
}
