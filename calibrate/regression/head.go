package regression

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/word"
)

// VarianceHead describes the output of a network that stands for a variance or a standard deviation. Its value is its name in flags and
// files.
type VarianceHead string

const (
	ByVariance    VarianceHead = "variance"     // v
	ByLogVariance VarianceHead = "log-variance" // log v
	BySoftplus    VarianceHead = "softplus"     // x with v = log(1 + eˣ)
	ByStd         VarianceHead = "std"          // √v
	ByLogStd      VarianceHead = "log-std"      // log √v
	BySoftplusStd VarianceHead = "softplus-std" // x with √v = log(1 + eˣ)
)

// VarianceHeads returns all variance heads.
func VarianceHeads() []VarianceHead {
	return []VarianceHead{ByVariance, ByLogVariance, BySoftplus, ByStd, ByLogStd, BySoftplusStd}
}

// Plain reports whether the output is the variance or the standard deviation itself, which is above 0.
func (h VarianceHead) Plain() bool { return h == ByVariance || h == ByStd }

// Check returns an error unless h is one of [VarianceHeads].
func (h VarianceHead) Check() error {
	var known []string
	for _, v := range VarianceHeads() {
		known = append(known, string(v))
	}
	if err := word.Check(string(h), known...); err != nil {
		return fmt.Errorf("variance head %w", err)
	}
	return nil
}

// Variance returns the variance for the output x. It fails if that is not a positive finite number. This happens for
// NaN, for a negative x of [ByVariance] and [ByStd], and for an x so large that the variance is out of float64's range. Variance
// panics on an unknown head.
func (h VarianceHead) Variance(x float64) (float64, error) {
	v := x
	switch h {
	case ByVariance:
	case ByLogVariance:
		v = math.Exp(x)
	case BySoftplus:
		v = softplus(x)
	case ByStd:
		v = x * math.Abs(x)
	case ByLogStd:
		v = math.Exp(2 * x)
	case BySoftplusStd:
		v = softplus(x) * softplus(x)
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

func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
