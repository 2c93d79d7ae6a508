package swag

import (
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
	"github.com/swagwrap/swagwrap/weights"
)

// stretchLen is the number of weights that pass through a recurrence together. Their moments stay in the L1 cache
// while the iterates pass.
const stretchLen = 1 << 10

// eachStretch calls f for consecutive stretches [lo, hi) of n weights.
func eachStretch(n int, f func(lo, hi int)) {
	for lo := 0; lo < n; lo += stretchLen {
		f(lo, min(lo+stretchLen, n))
	}
}

// MaxPower is the largest exponent of rising weights: see [FitOptions.Power]. Beyond it the last few iterates have all the weight.
const MaxPower = 100

// kept returns the weight of the first n−1 models in the mean of n, (1−1/n)^(power+1). An integer power has the same bits on every
// processor.
func kept(n, power int) float64 {
	product := 1.0
	for range power + 1 {
		product *= 1 - 1/float64(n)
	}
	return product
}

// share returns the weight of model n in the mean of the first n models. Without a power it is 1/n.
func share(n, power int) float64 {
	if power == 0 {
		return 1 / float64(n)
	}
	return 1 - kept(n, power)
}

// Before returns the weight of the models before model n in the mean of n, as a multiple of that of model n: n−1 without a power. So
// the running means are mean_(n−1) = mean_n − (θ_n − mean_n)/Before(n).
func (o Options) Before(n int) float64 {
	if o.Power == 0 {
		return float64(n - 1)
	}
	return kept(n, o.Power) / share(n, o.Power)
}

// running updates mean and variance, the moments of the first seen models, with the iterates theta, one per row. It
// sets the rows of deviations to those of the last iterates from the mean that includes them: Algorithm 1. Weights of models
// rise with the power.
//
// It is Welford's recurrence in float64, written for the variance with divisor n. So the stored moments are all that
// the next iterate needs, and a continued fit has the bits of one that never stopped. Sums of squares would cancel
// where the mean is large compared with the deviation.
func running(theta [][]float32, seen, power int, mean, variance []float64, deviations [][]float32) {
	first := len(theta) - len(deviations)
	eachStretch(len(mean), func(lo, hi int) {
		for t, row := range theta {
			welford(mean[lo:hi], variance[lo:hi], row[lo:hi], share(seen+t+1, power))
			if t >= first {
				subtract(deviations[t-first][lo:hi], row[lo:hi], mean[lo:hi])
			}
		}
	})
}

// Average returns the mean of models that [Fit] computes, as float32. It is read from the models each time. Their weights rise with
// the power, as [FitOptions.Power] says.
func Average(theta []weights.Vector, power int) weights.Vector {
	return weights.Func{N: theta[0].Len(), Read: func(dst []float32, off int64) error {
		length := min(len(dst), defaultBlock)
		rows, mean, variance := dense.Rows[float32](len(theta), length), make([]float64, length), make([]float64, length)
		for lo := 0; lo < len(dst); lo += length {
			part := dst[lo:min(lo+length, len(dst))]
			for t, v := range theta {
				rows[t] = rows[t][:len(part)]
				if err := v.ReadAt(rows[t], off+int64(lo)); err != nil {
					return err
				}
			}
			mean, variance = mean[:len(part)], variance[:len(part)]
			clear(mean)
			clear(variance)
			running(rows, 0, power, mean, variance, nil)
			for i, v := range mean {
				part[i] = float32(v)
			}
		}
		return nil
	}}
}

// about sets mean to the given one, and variance to the second moment of the iterates about it. The rows of deviations
// are those of the last iterates from the given mean; see [Given].
func about(theta [][]float32, given []float32, mean, variance []float64, deviations [][]float32) {
	first := len(theta) - len(deviations)
	for i, v := range given {
		mean[i] = float64(v)
	}
	eachStretch(len(mean), func(lo, hi int) {
		for t, row := range theta {
			for i, v := range row[lo:hi] {
				d := float64(v) - mean[lo+i]
				variance[lo+i] += float64(d * d)
			}
			if t >= first {
				subtract(deviations[t-first][lo:hi], row[lo:hi], mean[lo:hi])
			}
		}
		for i := range variance[lo:hi] {
			variance[lo+i] /= float64(len(theta))
		}
	})
}

// reference is running as the authors' code computes it (swag/posteriors/swag.py, collect_model and sample). It uses
// float32 throughout, the mean of squares instead of the variance, and a lower bound on the variance.
func reference(theta [][]float32, mean, variance []float64, deviations [][]float32) {
	const least = 1e-30 // var_clamp
	first := len(theta) - len(deviations)
	m, squares := make([]float32, stretchLen), make([]float32, stretchLen)
	eachStretch(len(mean), func(lo, hi int) {
		clear(m)
		clear(squares)
		for t, row := range theta {
			n, next := float32(t), float32(t+1)
			for i, v := range row[lo:hi] {
				m[i] = float32(m[i]*n)/next + v/next
				squares[i] = float32(squares[i]*n)/next + float32(v*v)/next
				if t >= first {
					deviations[t-first][lo+i] = v - m[i]
				}
			}
		}
		for i := range hi - lo {
			mean[lo+i] = float64(m[i])
			variance[lo+i] = float64(max(squares[i]-float32(m[i]*m[i]), least))
		}
	})
}

// mixedDeviations sets each row of deviations to a combination of the iterates' deviations from mean. The same row of
// mixing holds the coefficients.
func mixedDeviations(theta [][]float32, mixing [][]float64, mean []float64, deviations [][]float32) {
	work, sum := dense.Rows[float64](len(theta), stretchLen), make([]float64, stretchLen)
	eachStretch(len(mean), func(lo, hi int) {
		for t, row := range theta {
			for i, v := range row[lo:hi] {
				work[t][i] = float64(v) - mean[lo+i]
			}
		}
		for k, weights := range mixing {
			s := sum[:hi-lo]
			clear(s)
			for t, w := range weights {
				blas64.Axpy(w, blas64.Vector{N: hi - lo, Inc: 1, Data: work[t]}, blas64.Vector{N: hi - lo, Inc: 1, Data: s})
			}
			for i, v := range s {
				deviations[k][lo+i] = float32(v)
			}
		}
	})
}
