package probe

import (
	"errors"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/target"
)

// numbered is a data set whose example i is the number i, twice.
type numbered struct {
	dataset.Dataset
	n   int
	bad func(i int) bool
}

func (d numbered) Len() int              { return d.n }
func (d numbered) Shape() []int64        { return []int64{2} }
func (d numbered) Labels() target.Target { return target.Target{} }
func (d numbered) Read(dst dataset.Values, i int) error {
	if d.bad != nil && d.bad(i) {
		return errors.New("damaged")
	}
	dst.Floats[0], dst.Floats[1] = float32(i), float32(i)
	return nil
}

func TestHold(t *testing.T) {
	for name, test := range map[string]struct {
		n     int
		bytes int64
		want  int
	}{
		"fewer than a sample": {10, 1 << 20, 10},
		"many":                {100_000, 1 << 20, Examples},
		"little memory":       {1000, 80, 10},
		"no memory":           {1000, 1, 1},
	} {
		s, err := Hold(numbered{n: test.n}, test.bytes, 2)
		if err != nil || s.Len() != test.want {
			t.Errorf("%s: %v, %d examples, want %d", name, err, s.Len(), test.want)
		}
		for i := range s.Len() {
			first, end := i*test.n/test.want, (i+1)*test.n/test.want
			if row := int(s.Values(i).Floats[0]); row < first || row >= end {
				t.Errorf("%s: example %d is %d, want one of %d to %d", name, i, row, first, end-1)
			}
		}
	}
	again := func() []int { s, _ := Hold(numbered{n: 5000}, 1<<20, 2); return s.rows }
	if a, b := again(), again(); !slices.Equal(a, b) {
		t.Error("two samples of the same data differ")
	}
	s, err := Hold(numbered{n: 100, bad: func(i int) bool { return i%2 == 0 }}, 1<<20, 2)
	if err != nil || s.Len() != 50 || s.Unreadable != 50 {
		t.Errorf("half of it damaged: %v, %d held, %d unreadable", err, s.Len(), s.Unreadable)
	}
	s, err = Hold(numbered{n: 3, bad: func(int) bool { return true }}, 1<<20, 2)
	if err == nil || s.Len() != 0 {
		t.Errorf("all of it damaged: %v, %d held", err, s.Len())
	}
}
