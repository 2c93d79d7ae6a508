package dataset

import (
	"slices"
	"testing"
)

// A subset has the examples that are visited, in that order, with their labels
// and names.
func TestSubset(t *testing.T) {
	d, err := Open([]string{"testdata/plain.npz"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if all := Subset(d, Order{Limit: d.Len()}); all != d {
		t.Error("all examples in their order are another dataset")
	}
	o := Order{Shuffle: true, Seed: 3, Limit: 3}
	s := Subset(d, o)
	rows := o.Indices(d.Len())
	if s.Len() != 3 || len(s.Labels()) != 3 {
		t.Fatalf("%d examples with %d labels, want 3", s.Len(), len(s.Labels()))
	}
	for k, i := range rows {
		x, y := make([]float32, 24), make([]float32, 24)
		if err := s.Read(x, k); err != nil {
			t.Fatal(err)
		}
		if err := d.Read(y, i); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x, y) || s.Name(k) != d.Name(i) || s.Labels()[k] != d.Labels()[i] {
			t.Errorf("example %d is %s, want %s", k, s.Name(k), d.Name(i))
		}
	}
	if unlabelled, err := Open([]string{"testdata/u8.npy"}, Options{}); err != nil || Subset(unlabelled, o).Labels() != nil {
		t.Errorf("labels out of none, or error %v", err)
	}
}
