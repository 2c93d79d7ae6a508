package calibrate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

const (
	badPairs     = "calibrate: losses are not paired, or there are none"
	badResamples = "calibrate: number of resamples is negative"
	badLevel     = "calibrate: level is not between 0 and 1"
)

// BootstrapOptions are the options of [PairedBootstrap] and its like. The zero value is
// ready to use.
type BootstrapOptions struct {
	Resamples int     // 0 means 2000
	Level     float64 // coverage, between 0 and 1; 0 means 0.95
	Seed      uint64
}

// PairedBootstrap returns the mean of a−b and its percentile bootstrap interval
// (Efron and Tibshirani 1993, chapter 13). a and b are the losses of two methods
// on the same images, such as two results of [NegLogLikelihoods], [Briers] or [Errors]: what the
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
	return MeanBootstrap(difference(a, b), opts)
}

// MeanBootstrap is [PairedBootstrap] of one method: the mean of its losses and
// the interval for images like these. To compare two methods, do not see whether
// their intervals overlap, but use PairedBootstrap.
func MeanBootstrap(losses []float64, opts BootstrapOptions) Interval {
	if len(losses) == 0 {
		panic(badPairs)
	}
	opts.check()
	mean := stat.Mean(losses, nil)
	if math.IsNaN(mean) {
		return Interval{mean, mean, mean}
	}
	means := make([]float64, 0, opts.resamples())
	opts.resample(len(losses), func(rows []int) { means = append(means, meanOf(losses, rows)) })
	return opts.interval(mean, means)
}

// Counts calls f with how often each of n images, and each of m others, is in each
// resample: memory to use again.
func (o BootstrapOptions) Counts(n, m int, f func(images, others []float64)) {
	o.check()
	images, others := make([]float64, n), make([]float64, m)
	rng := rand.New(rand.NewPCG(o.Seed, bootstrapStream))
	for range o.resamples() {
		for _, counts := range [][]float64{images, others} {
			clear(counts)
			for range counts {
				counts[rng.IntN(len(counts))]++
			}
		}
		f(images, others)
	}
}

// resample calls f with the rows of each resample of n images, memory to use again.
func (o BootstrapOptions) resample(n int, f func(rows []int)) {
	resample(rand.New(rand.NewPCG(o.Seed, bootstrapStream)), n, o.resamples(), f)
}

func resample(rng *rand.Rand, n, resamples int, f func(rows []int)) {
	rows := make([]int, n)
	for range resamples {
		for i := range rows {
			rows[i] = rng.IntN(n)
		}
		f(rows)
	}
}

func (o BootstrapOptions) resamples() int { return cmp.Or(o.Resamples, 2000) }

func (o BootstrapOptions) level() float64 { return cmp.Or(o.Level, 0.95) }

func (o BootstrapOptions) check() {
	if o.resamples() < 0 {
		panic(badResamples)
	}
	checkLevel(o.level())
}

func checkLevel(level float64) {
	if !(0 < level && level < 1) { // also catches NaN
		panic(badLevel)
	}
}

// interval cuts the tails off the values of the resamples, which it sorts.
func (o BootstrapOptions) interval(mean float64, values []float64) Interval {
	slices.Sort(values)
	// Cutting off equally many at both ends, without interpolation, makes the
	// interval of b−a the mirror image of this one, and holds for infinities.
	n := len(values)
	cut := int(math.Round((1 - o.level()) / 2 * float64(n)))
	cut = min(cut, (n-1)/2) // a tiny level leaves the median
	return Interval{Mean: mean, Low: values[cut], High: values[n-1-cut]}
}
