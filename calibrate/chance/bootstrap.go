package chance

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

const (
	badPairs     = "chance: losses are not paired, or there are none"
	badResamples = "chance: number of resamples is negative"
	badLevel     = "chance: level is not between 0 and 1"
)

// bootstrapStream separates the resamples from other uses of a seed.
const bootstrapStream = 2

// BootstrapOptions are the options of [PairedBootstrap] and similar functions. The zero value is ready to use.
type BootstrapOptions struct {
	Resamples int     // 0 means 2000
	Level     float64 // coverage, between 0 and 1; 0 means 0.95
	Seed      uint64
}

// PairedBootstrap returns the mean of a−b and its percentile bootstrap interval (Efron and Tibshirani 1993, chapter
// 13). The losses a and b are those of two methods on the same examples, such as their negative log-likelihoods, Brier
// scores or errors. What the examples contribute to both cancels, so the interval is much narrower than one for
// each method. If it does not contain 0, the methods differ on examples like these. It is too narrow for fewer than
// about 30 examples, and says nothing about the variation between training runs.
//
// An infinite loss is kept, not clipped. The mean is then infinite, and so is every resample that contains the example.
// All three numbers are NaN if the mean does not exist. This happens if a loss is NaN, if both losses of an example are
// infinite, or if differences are infinite in both directions.
//
// PairedBootstrap panics if a and b differ in length or are empty, or if an option is out of its range.
func PairedBootstrap(a, b []float64, opts BootstrapOptions) Interval {
	if len(a) != len(b) || len(a) == 0 {
		panic(badPairs)
	}
	return MeanBootstrap(floats.SubTo(make([]float64, len(a)), a, b), opts)
}

// MeanBootstrap is [PairedBootstrap] for one method: the mean of its losses and the interval for examples like these.
// Do not compare two methods by whether their intervals overlap; use PairedBootstrap.
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

// FigureBootstrap returns figures of n examples and their percentile bootstrap intervals. The function figures computes them
// from some examples. A resample has some examples several times.
func FigureBootstrap(n int, figures func(rows []int) []float64, opts BootstrapOptions) []Interval {
	opts.check()
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	found := figures(all)
	values := make([][]float64, len(found))
	opts.resample(n, func(rows []int) {
		for k, v := range figures(rows) {
			values[k] = append(values[k], v)
		}
	})
	out := make([]Interval, len(found))
	for k, v := range found {
		out[k] = opts.interval(v, values[k])
	}
	return out
}

// resample calls f with the rows of each resample of n examples. The slice is reused.
func (o BootstrapOptions) resample(n int, f func(rows []int)) {
	rng, rows := rand.New(rand.NewPCG(o.Seed, bootstrapStream)), make([]int, n)
	for range o.resamples() {
		for i := range rows {
			rows[i] = rng.IntN(n)
		}
		f(rows)
	}
}

func meanOf(values []float64, rows []int) float64 {
	sum := 0.0
	for _, i := range rows {
		sum += values[i]
	}
	return sum / float64(len(rows))
}

func (o BootstrapOptions) resamples() int { return cmp.Or(o.Resamples, 2000) }

func (o BootstrapOptions) level() float64 { return cmp.Or(o.Level, 0.95) }

func (o BootstrapOptions) check() {
	if o.resamples() < 0 {
		panic(badResamples)
	}
	if level := o.level(); !(0 < level && level < 1) { // also catches NaN
		panic(badLevel)
	}
}

// interval cuts the tails off the values of the resamples. It sorts the values.
func (o BootstrapOptions) interval(mean float64, values []float64) Interval {
	slices.Sort(values)
	// Equal cuts at both ends without interpolation make the interval of b−a the mirror image, and work for
	// infinities.
	n := len(values)
	cut := int(math.Round((1 - o.level()) / 2 * float64(n)))
	cut = min(cut, (n-1)/2) // a tiny level leaves the median
	return Interval{Mean: mean, Low: values[cut], High: values[n-1-cut]}
}
