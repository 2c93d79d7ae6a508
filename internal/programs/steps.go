package programs

import (
	"math"

	"github.com/swagwrap/swagwrap/weights/statefile"
)

// squares returns the sum of squared differences of at most most elements of two tensors, and their number.
func squares(a, b *statefile.Tensor, most int64) (sum float64, n int) {
	x, y := make([]float32, min(most, a.Len())), make([]float32, min(most, a.Len()))
	a.DType.Float32s(x, a.Stretch(0, int64(len(x))))
	b.DType.Float32s(y, b.Stretch(0, int64(len(y))))
	for i, v := range x {
		d := float64(y[i]) - float64(v)
		sum += d * d
	}
	return sum, len(x)
}

// rms returns the root mean square over the files and over the n weights of each.
func rms(sums []float64, n int) float64 {
	total := 0.
	for _, s := range sums {
		total += s
	}
	if n == 0 || len(sums) == 0 {
		return 0
	}
	return math.Sqrt(total / float64(n) / float64(len(sums)))
}
