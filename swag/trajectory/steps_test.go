package trajectory

import (
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

func TestSteps(t *testing.T) {
	nan := float32(math.NaN())
	long := make(weights.Slice, blockLen+3) // two blocks
	long[blockLen+1] = 3
	moved := make(weights.Slice, len(long))
	moved[0], moved[blockLen+1] = 4, 3
	broken := make(weights.Slice, len(long))
	broken[2], broken[blockLen+2] = 1e20, nan
	got, err := Steps(t.Context(), []weights.Vector{long, moved, broken, long}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Step{{Norm: 3}, {Norm: 5, Moved: 4}, {Norm: 0, Moved: 5, Implausible: 2, First: 2, Value: 1e20}, {Norm: 3, Moved: 3}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("step %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if none, err := Steps(t.Context(), nil, nil); err != nil || len(none) != 0 {
		t.Errorf("no iterates: %v, %v", none, err)
	}
}
