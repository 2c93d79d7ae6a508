package shares

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// mostSteps bounds the passes over the examples, and settled is the gradient at which they end.
const (
	mostSteps = 500
	settled   = 1e-10
)

// A point of the likelihood has factors w and what a pass over the examples finds there, with r = p/(p·w).
type point struct {
	w     []float64
	value float64 // mean log(p·w) − s·w, whose maximum has Σ s·w = 1
	r     *sums
}

// newPoint goes through the examples.
func newPoint(w, training []float64, rows Rows) (*point, error) {
	x := &point{w: w, r: newSums(len(w))}
	r := make([]float64, len(w))
	err := rows(func(p []float64) error {
		sum := floats.Dot(p, w)
		x.value += math.Log(sum)
		x.r.add(floats.ScaleTo(r, 1/sum, p))
		return nil
	})
	x.value = x.value/float64(x.r.n) - floats.Dot(training, w)
	return x, err
}

// fit returns the factors w of the largest likelihood. A step is Newton's where that rises, and otherwise that of expectation and
// maximisation, which always rises: w becomes w·mean(r)/s. Both have the same maximum. settled reports whether it was found.
func fit(training []float64, rows Rows) (w []float64, found bool, err error) {
	x, err := newPoint(slices.Repeat([]float64{1}, len(training)), training, rows)
	for range mostSteps {
		if err != nil {
			return nil, false, err
		}
		mean := x.r.mean()
		slope := floats.SubTo(make([]float64, len(mean)), mean, training)
		steepest := 0.0
		for k, g := range slope {
			steepest = max(steepest, math.Abs(x.w[k]*g))
		}
		if steepest < settled {
			return x.w, true, nil
		}
		next, err2 := newPoint(newton(x, slope), training, rows)
		if err = err2; err == nil && !(next.value > x.value) {
			for k := range mean {
				mean[k] *= x.w[k] / training[k]
			}
			before := x.value
			if next, err = newPoint(mean, training, rows); err == nil && next.value <= before+1e-15 {
				return next.w, steepest < math.Sqrt(settled), nil // the rest is rounding
			}
		}
		x = next
	}
	return x.w, false, err
}

// newton returns the factors after a step of Newton's, which keeps a twentieth of each. Factors near 0 that would fall stay.
func newton(x *point, slope []float64) []float64 {
	const near, kept = 1e-9, 0.05
	var free []int
	for k, g := range slope {
		if x.w[k] > near || g > 0 {
			free = append(free, k)
		}
	}
	all, part, g := x.r.second(), mat.NewDense(len(free), len(free), nil), make([]float64, len(free))
	for i, k := range free {
		g[i] = slope[k]
		for j, m := range free {
			part.Set(i, j, all.At(k, m))
		}
	}
	inverted, _ := inverse(part, 1e-13)
	var step mat.VecDense
	step.MulVec(inverted, mat.NewVecDense(len(g), g))
	next := slices.Clone(x.w)
	for i, k := range free {
		next[k] = max(next[k]+step.AtVec(i), kept*next[k])
	}
	return next
}
