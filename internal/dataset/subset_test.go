package dataset

import (
	"slices"
	"testing"
)

func TestSubset(t *testing.T) {
	d, err := Open([]string{"../../fixtures/mnist/test.npz"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if Subset(d, Order{}) != d || Subset(d, Order{Limit: d.Len()}) != d {
		t.Error("all examples in order are the dataset itself")
	}
	o := Order{Shuffle: true, Seed: 4, Limit: 7}
	s := Subset(d, o)
	if s.Len() != 7 || s.Labels().Len() != 7 {
		t.Fatalf("%d examples, %d labels", s.Len(), s.Labels().Len())
	}
	a, b := make([]float32, 784), make([]float32, 784)
	for k, i := range o.Indices(d.Len()) {
		if err := s.Read(Floats(a), k); err != nil {
			t.Fatal(err)
		}
		if err := d.Read(Floats(b), i); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a, b) || s.Labels().Classes[k] != d.Labels().Classes[i] || s.Name(k) != d.Name(i) {
			t.Errorf("example %d is not %d", k, i)
		}
	}
}
