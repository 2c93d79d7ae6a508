package dataset

import (
	"math"
	"testing"
)

// The numbers are those of torch.nn.functional.interpolate(mode="bilinear", align_corners=False) in float64.
func TestEnlarge(t *testing.T) {
	t.Parallel()
	from := []float64{0, 10, 1, 20, 2, 40, 3, 80, 5, 160, 8, 320} // 2×3 pixels of two numbers
	for _, tt := range []struct {
		h, w int
		want []float64
	}{
		{2, 3, []float64{0, 10, 1, 20, 2, 40, 3, 80, 5, 160, 8, 320}},
		{3, 5, []float64{0, 10, 0.39999999999999997, 14, 1, 20, 1.5999999999999999, 31.999999999999996, 2, 40, 1.4999999999999998, 44.99999999999999, 2.0999999999999996, 62.99999999999999, 2.9999999999999996, 89.99999999999999, 4.199999999999999, 143.99999999999997, 5, 179.99999999999997, 3, 80, 3.8000000000000003, 112.00000000000001, 5, 160, 6.8, 256, 8, 319.99999999999994}},
		{1, 2, []float64{1.875, 56.25, 4.5, 157.5}},
		{4, 2, []float64{0.25, 12.5, 1.75, 35, 1.0625, 34.375, 3.125, 96.25, 2.6875, 78.125, 5.875, 218.75, 3.5, 100, 7.25, 280}},
	} {
		got := Enlarge(from, 2, 3, 2, tt.h, tt.w)
		if len(got) != len(tt.want) {
			t.Fatalf("%d×%d: %d numbers, want %d", tt.h, tt.w, len(got), len(tt.want))
		}
		for i, v := range got {
			if math.Abs(v-tt.want[i]) > 1e-12*320 {
				t.Errorf("%d×%d: number %d is %v, want %v", tt.h, tt.w, i, v, tt.want[i])
			}
		}
	}
}
