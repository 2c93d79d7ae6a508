package predictions

import (
	"errors"
	"testing"

	"github.com/swagwrap/swagwrap/internal/task"
)

// Probabilities are the same in memory and on disk, in each pass, and rows with an error have none.
func TestKeep(t *testing.T) {
	defer func(was int) { keptValues = was }(keptValues)
	s := &Schema{Columns: []task.Column{{Name: "confidence"}, {Name: "probs", Shape: []int{3}}, {Name: "after"}}}
	each := func(f func(*Row) error) error {
		for i := range 10 {
			r := &Row{Values: []float64{9, float64(i), 0.5, 0.25, 9}}
			if i == 4 {
				r = &Row{Error: "broken"}
			}
			if err := f(r); err != nil {
				return err
			}
		}
		return nil
	}
	for _, keptValues = range []int{1 << 20, 6, 0} {
		k, err := s.Keep(each)
		if err != nil {
			t.Fatal(err)
		}
		if (k.file != nil) != (keptValues < 30) {
			t.Errorf("%d values in memory: on disk %v", keptValues, k.file != nil)
		}
		for range 2 {
			var first []float64
			if err := k.Each(func(p []float64) error { first = append(first, p...); return nil }); err != nil {
				t.Fatal(err)
			}
			if len(first) != 27 || first[0] != 0 || first[12] != 5 || first[13] != 0.5 || first[26] != 0.25 {
				t.Errorf("%d values in memory: %v", keptValues, first)
			}
		}
		want := errors.New("stop")
		if err := k.Each(func([]float64) error { return want }); err != want {
			t.Error(err)
		}
		k.Close()
	}
	if k, err := s.Keep(func(func(*Row) error) error { return nil }); err != nil || k.Each(func([]float64) error { return errors.New("a row") }) != nil {
		t.Errorf("no rows: %v", err)
	}
}
