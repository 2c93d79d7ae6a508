package table

import (
	"slices"
	"testing"
)

// Numbers in float16 are those of NumPy: 0.1 is 0.0999755859375.
func TestHalf(t *testing.T) {
	columns, err := read("testdata/half.parquet", nil, []string{"half", "list"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := columns["half"].Floats, []float64{0.5, -2, 65504, 5.9604644775390625e-08}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := columns["list"].Floats, []float64{0.25, 1, 2, 0.0999755859375}; !slices.Equal(got, want) || !slices.Equal(columns["list"].Lengths, []int{1, 0, 2, 1}) {
		t.Errorf("%v of lengths %v, want %v", got, columns["list"].Lengths, want)
	}
}
