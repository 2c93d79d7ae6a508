package statedict

import (
	"math"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

// Rounding moves a weight to the nearest bfloat16. A member nearer to SWA than that becomes SWA.
func TestCompare(t *testing.T) {
	t.Parallel()
	b := newBlock(3)
	copy(b.mean, []float32{1, 1, 1})
	copy(b.member, []float32{1.001, 1.01, 1}) // bfloat16 has steps of 1/128 above 1
	s, same := b.compare(weights.BF16, false)
	if same != 1 {
		t.Errorf("%d weights are those of SWA, want 1", same)
	}
	wantErr := math.Pow(float64(float32(1.001))-1, 2) + math.Pow(float64(float32(1.01))-(1+1.0/128), 2)
	wantDistance := math.Pow(float64(float32(1.001))-1, 2) + math.Pow(float64(float32(1.01))-1, 2)
	if math.Abs(s.err-wantErr) > 1e-12 || math.Abs(s.distance-wantDistance) > 1e-12 {
		t.Errorf("squares %v, want %v and %v", s, wantErr, wantDistance)
	}
	b.variance = []float64{4, 5, 6}
	if s, _ := b.compare(weights.BF16, true); s.distance != 15 {
		t.Errorf("the spread of SWA is %v, want 15", s.distance)
	}
}

func TestFormatOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Format{"a.pt": Torch, "a.PTH": Torch, "a.bin": Torch, "a.safetensors": Safetensors, "a.npz": NPZ, "a.onnx": None, "a": None, "a/": Folder, ".": Folder, "-": None, "": None} {
		if got := FormatOf(name); got != want {
			t.Errorf("%q is of format %d, want %d", name, got, want)
		}
		if Foreign(name) || !Foreign(strings.TrimSuffix(name, "/")+".h5") {
			t.Errorf("%q: a foreign format", name)
		}
	}
}
