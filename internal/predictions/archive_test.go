package predictions

import (
	"bytes"
	"slices"
	"testing"
)

// What is written is read again, with the labels beside it.
func TestArchive(t *testing.T) {
	var b bytes.Buffer
	a := NewArchive(&b)
	check(t, a.Floats("probs_swag", []float64{0.25, 0.75, 1, 0}, 2, 2))
	check(t, a.Ints("labels", []int{1, 0}, 2))
	check(t, a.Close())
	p, err := Read(saved(t, "x.npz", b.Bytes()), ReadOptions{Key: "probs_swag"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Values, []float64{0.25, 0.75, 1, 0}) || !slices.Equal(p.Labels, []int{1, 0}) || !p.Probabilities {
		t.Errorf("%+v", p)
	}
}
