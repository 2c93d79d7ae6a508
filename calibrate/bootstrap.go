package calibrate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

const (
	badPairs     = "calibrate: losses are not paired, or there are none"
	badResamples = "calibrate: number of resamples is negative"
	badLevel     = "calibrate: level is not between 0 and 1"
)

// BootstrapOptions are the options of [PairedBootstrap]. The zero value is ready
// to use.
type BootstrapOptions struct {
	Resamples int     // 0 means 2000
	Level     float64 // coverage, between 0 and 1; 0 means 0.95
	Seed      uint64
}

// Interval is a mean with a confidence interval.
type Interval struct {
	Mean, Low, High float64
}

// PairedBootstrap returns the mean of a−b and its percentile bootstrap interval
// (Efron and Tibshirani 1993, chapter 13). a and b are the losses of two methods
// on the same images, such as two results of [NegLogLikelihoods]: what the
// images have in common cancels, which makes the interval much narrower than one
// for each method. If it is all on one side of 0, the methods differ on images
// like these. It is too narrow for fewer than some 30 images, and says nothing
// about how the methods vary from one training run to the next.
//
// An infinite loss is kept, not clipped: the mean is then infinite, and so is
// every resample with that image in it. All three numbers are NaN if the mean
// does not exist, because both losses of an image are infinite or the
// differences are infinite in both directions, or if a loss is NaN.
//
// PairedBootstrap panics if a and b differ in length or are empty, or if an
// option is out of its range.
func PairedBootstrap(a, b []float64, opts BootstrapOptions) Interval {
	if len(a) != len(b) || len(a) == 0 {
		panic(badPairs)
	}
	resamples := cmp.Or(opts.Resamples, 2000)
	if resamples < 0 {
		panic(badResamples)
	}
	level := cmp.Or(opts.Level, 0.95)
	if !(0 < level && level < 1) {
		panic(badLevel)
	}

	diff := floats.SubTo(make([]float64, len(a)), a, b)
	mean := stat.Mean(diff, nil)
	if math.IsNaN(mean) {
		return Interval{mean, mean, mean}
	}
	rng := rand.New(rand.NewPCG(opts.Seed, bootstrapStream))
	means := make([]float64, resamples)
	for r := range means {
		var sum float64
		for range diff {
			sum += diff[rng.IntN(len(diff))]
		}
		means[r] = sum / float64(len(diff))
	}
	slices.Sort(means)
	// Cutting off equally many at both ends, without interpolation, makes the
	// interval of b−a the mirror image of this one, and holds for infinities.
	cut := int(math.Round((1 - level) / 2 * float64(resamples)))
	cut = min(cut, (resamples-1)/2) // a tiny level leaves the median
	return Interval{Mean: mean, Low: means[cut], High: means[resamples-1-cut]}
}
