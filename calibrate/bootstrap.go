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

// BootstrapOptions are the options of [PairedBootstrap] and its like. The zero value is ready
// to use.
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

// BootstrapMetric returns metric of all n images and its bootstrap interval, for
// what is no mean over images, such as a calibration error or the difference of
// two. metric gets n rows, of which some come several times, and must not keep
// them. It is called once for each resample.
//
// Noise can only make a calibration error larger, so that it is larger on
// resamples than on the images themselves, by what Efron and Tibshirani (1993,
// chapter 10) call the bootstrap estimate of bias. The interval is that of the
// percentiles, moved by the bias, so that it lies about the metric of all images
// and not beside it. It says how far the metric would vary with other images, and
// nothing about the bias that it has itself.
//
// All three numbers are NaN if metric of all images is NaN. BootstrapMetric panics
// if n is less than 1, or if an option is out of its range.
func BootstrapMetric(n int, metric func(rows []int) float64, opts BootstrapOptions) Interval {
	if n < 1 {
		panic(badPairs)
	}
	opts.check()
	value := metric(allRows(n))
	if math.IsNaN(value) {
		return Interval{value, value, value}
	}
	values := make([]float64, 0, opts.resamples())
	opts.resample(n, func(rows []int) { values = append(values, metric(rows)) })
	bias := stat.Mean(values, nil) - value
	interval := opts.interval(value, values)
	if !math.IsNaN(bias) && !math.IsInf(bias, 0) {
		interval.Low -= bias
		interval.High -= bias
	}
	return interval
}

// ECEBootstrap returns ECE(a) − ECE(b) for two methods on the same images and its
// bootstrap interval; see [BootstrapMetric]. It takes a sort of the images for
// each resample and method, some seconds for 2,000 resamples of 10,000 images.
//
// ECEBootstrap panics if a and b differ in their number of images, and where
// [ECE] and BootstrapMetric do.
func ECEBootstrap(a, b Predictions, ece ECEOptions, opts BootstrapOptions) Interval {
	a.check()
	b.check()
	if a.Len() != b.Len() {
		panic(badPairs)
	}
	ga, gb := topLabels(a), topLabels(b)
	buffer := make([]TopLabel, a.Len())
	of := func(g []TopLabel, rows []int) float64 {
		for k, i := range rows {
			buffer[k] = g[i]
		}
		return TopLabelECE(buffer, ece)
	}
	return BootstrapMetric(a.Len(), func(rows []int) float64 { return of(ga, rows) - of(gb, rows) }, opts)
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
