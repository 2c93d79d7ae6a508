package open

import "testing"

// A trained row turns, and a row with weight decay alone gets smaller.
func TestTrained(t *testing.T) {
	before := []float32{1, -2, 3, 0.5}
	for _, c := range []struct {
		name  string
		after []float32
		want  bool
	}{
		{"at rest", before, false},
		{"weight decay", []float32{0.98, -1.96, 2.94, 0.49}, false},
		{"weight decay, rounded", []float32{0.98, -1.96, 2.9399, 0.4901}, false},
		{"trained", []float32{1.2, -1.9, 2.8, 0.9}, true},
		{"trained with weight decay", []float32{0.9, -2.1, 2.9, 0.8}, true},
	} {
		if got := trained(before, c.after); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if trained(make([]float32, 2), make([]float32, 2)) || !trained(make([]float32, 2), []float32{0, 1}) {
		t.Error("a row of zeros")
	}
}
