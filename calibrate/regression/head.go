package regression

import (
	"fmt"
	"math"
)

const badDst = "regression: length of dst does not match"

// VarianceHead is what a network gives out in place of a variance. Its value is its
// name in flags and files.
type VarianceHead string

const (
	ByVariance    VarianceHead = "variance"     // v itself
	ByLogVariance VarianceHead = "log-variance" // log v
	BySoftplus    VarianceHead = "softplus"     // x with v = log(1 + eˣ)
)

// VarianceHeads lists them.
func VarianceHeads() []VarianceHead { return []VarianceHead{ByVariance, ByLogVariance, BySoftplus} }

// Check returns an error for a name that is none of [VarianceHeads].
func (h VarianceHead) Check() error {
	for _, known := range VarianceHeads() {
		if h == known {
			return nil
		}
	}
	return fmt.Errorf("no variance head %q, want one of %q", string(h), VarianceHeads())
}

// Variance returns the variance that x stands for. It is an error if that is not a
// positive finite number, as with NaN, a negative x of [ByVariance], and numbers so far
// out that float64 has no such variance. Variance panics on an unknown head.
func (h VarianceHead) Variance(x float64) (float64, error) {
	v := x
	switch h {
	case ByVariance:
	case ByLogVariance:
		v = math.Exp(x)
	case BySoftplus:
		v = max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	default:
		panic("regression: unknown variance head")
	}
	if err := checkVariance(v); err != nil {
		if h != ByVariance {
			return 0, fmt.Errorf("%s %v: %w", h, x, err)
		}
		return 0, err
	}
	return v, nil
}

// Apply stores the variances that raw outputs stand for in dst, which has their length
// and may be the same slice; nil allocates one. Errors are those of Variance and name
// the place of the first at fault.
func (h VarianceHead) Apply(dst, raw []float64) ([]float64, error) {
	if dst == nil {
		dst = make([]float64, len(raw))
	}
	if len(dst) != len(raw) {
		panic(badDst)
	}
	for i, x := range raw {
		v, err := h.Variance(x)
		if err != nil {
			return nil, fmt.Errorf("output %d: %w", i, err)
		}
		dst[i] = v
	}
	return dst, nil
}
