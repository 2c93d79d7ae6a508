package calibrate

import "math"

// NumberSums holds what positions add to the figures of a regression.
type NumberSums struct {
	Positions int64
	Squared   float64 // Σ (y − mean)²
	Absolute  float64 // Σ |y − mean|
	NLL       float64 // Σ −log density, nats
}

// Merge adds the positions of o.
func (s *NumberSums) Merge(o *NumberSums) {
	s.Positions, s.Squared, s.Absolute, s.NLL = s.Positions+o.Positions, s.Squared+o.Squared, s.Absolute+o.Absolute, s.NLL+o.NLL
}

// RMSE returns the root of the mean squared error over the positions.
func (s *NumberSums) RMSE() float64 { return math.Sqrt(s.Squared / float64(s.Positions)) }

// MAE returns the mean absolute error over the positions.
func (s *NumberSums) MAE() float64 { return s.Absolute / float64(s.Positions) }

// Linearised returns a loss for each example whose mean is the ratio R = Σ sum / Σ n: R + (sum_i − R·n_i) / meanKnown(n). Its
// variance is that of the ratio to first order (Cochran, Sampling Techniques, 1977, section 2.11). So statistics of
// examples hold for means over positions, although examples have different numbers of positions. The examples must
// have a position at least.
func Linearised(sum, n []float64) []float64 {
	total, all := 0.0, 0.0
	for i, v := range sum {
		total, all = total+v, all+n[i]
	}
	ratio, mean := total/all, all/float64(len(n))
	out := make([]float64, len(sum))
	for i, v := range sum {
		out[i] = ratio + (v-ratio*n[i])/mean
	}
	return out
}
