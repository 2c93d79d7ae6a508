package calibrate

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/chance"
)

// The number of simulated data sets of [NewECENoise] is noiseDraws, or less for many predictions, but at least
// fewestDraws.
const (
	noiseDraws  = 1000
	fewestDraws = 200
	noiseWork   = 5e7 // predictions × data sets
)

// ecenoiseStream separates the random numbers of [NewECENoise] from other uses of a seed.
const ecenoiseStream = 0x6563656e6f697365

// NewECENoise returns the calibration error that a perfectly calibrated model with the same confidences would show: its
// mean, and the range of the central 95 %. An error within the range is no sign of bad calibration. The labels are
// simulated: each prediction is correct with the probability of its confidence, independently. Bins of equal mass and
// of equal width depend on the confidences alone, so they stay as they are. This is the consistency resampling of
// Bröcker and Smith ("Increasing the reliability of reliability diagrams", Weather and Forecasting 2007). NewECENoise
// sorts g.
func NewECENoise(g []TopLabel, opts ECEOptions, seed uint64) chance.Interval {
	order(g)
	bins := reliability(g, opts)
	draws := int(max(fewestDraws, min(noiseDraws, noiseWork/float64(max(1, len(g))))))
	rng := rand.NewPCG(seed, ecenoiseStream)
	errors := make([]float64, draws)
	first := 0
	for _, b := range bins {
		if opts.Binning == SwagReference { // leaves out predictions on edges
			first, _ = slices.BinarySearchFunc(g, b.Lower, func(x TopLabel, lower float64) int {
				if x.Confidence <= lower {
					return -1
				}
				return 1
			})
		}
		in := g[first:][:b.Count]
		first += b.Count
		for r := range errors {
			gap := 0.0 // Σ confidence − correct
			for _, x := range in {
				gap += x.Confidence
				if float64(rng.Uint64()<<11>>11)/(1<<53) < x.Confidence { // rand.Float64, without its interface
					gap--
				}
			}
			errors[r] += math.Abs(gap) / float64(len(g))
		}
	}
	slices.Sort(errors)
	return chance.Interval{
		Mean: stat.Mean(errors, nil),
		Low:  stat.Quantile(0.025, stat.Empirical, errors, nil),
		High: stat.Quantile(0.975, stat.Empirical, errors, nil),
	}
}

// DebiasedRMSCE returns the root of the squared calibration error over bins, without the part that finite bins add:
//
//	√max(0, Σ_b n_b/n ((confidence_b − accuracy_b)² − accuracy_b(1 − accuracy_b)/(n_b − 1)))
//
// The sum is an unbiased estimate for the given bins (Kumar, Liang and Ma, "Verified uncertainty calibration", NeurIPS
// 2019, definition 5.1). It is 0 where the sum is negative. The term of a bin with one prediction is not defined. Such bins add nothing,
// and the result is NaN if more than one in a hundred predictions is alone in its bin.
func DebiasedRMSCE(bins []ReliabilityBin) float64 {
	sum, n, alone := 0.0, 0, 0
	for _, b := range bins {
		n += b.Count
		switch gap := b.Confidence - b.Accuracy; {
		case b.Count == 1:
			alone++
		case b.Count > 1:
			sum += float64(b.Count) * (gap*gap - b.Accuracy*(1-b.Accuracy)/float64(b.Count-1))
		}
	}
	if 100*alone > n || n == 0 {
		return math.NaN()
	}
	return math.Sqrt(max(0, sum/float64(n)))
}
