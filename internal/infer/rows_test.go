package infer

import (
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
)

// Exporters write the size of a stacked axis as a product with the name of the batch.
func TestStacked(t *testing.T) {
	input := onnxio.Value{Shape: []int64{-1, 6}, Dims: []string{"batch", ""}}
	for dim, want := range map[string]int{
		"batch": 1, "4*batch": 4, "batch*5": 5, "4 * batch": 4, "(4*batch)": 4, "2*3*batch": 6,
		"": 0, "batch*seq": 0, "batch*batch": 0, "4": 0, "4*other": 0, "batch + 1": 0, "-1*batch": 0,
	} {
		if got := stacked(onnxio.Value{Shape: []int64{-1, 4}, Dims: []string{dim, ""}}, input); got != want {
			t.Errorf("%q: %d, want %d", dim, got, want)
		}
	}
	if got := stacked(onnxio.Value{}, input); got != 0 {
		t.Errorf("no shape: %d", got)
	}
}
