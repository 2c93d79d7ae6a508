package detect_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/detect"
)

// The difference of two AUROCs is that of AUROC, and its standard error that
// of the definition, a sum over all pairs of images, and about that of a bootstrap
// over both sides.
func TestAUROCDifference(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	draw := func(n int, shift float64) (a, b []float64) {
		for range n {
			x := shift + rng.NormFloat64()
			a = append(a, math.Round(4*(x+0.5*rng.NormFloat64()))) // with ties
			b = append(b, math.Round(4*(x+rng.NormFloat64())))
		}
		return a, b
	}
	aIn, bIn := draw(150, 0)
	aOut, bOut := draw(90, 1)
	got := detect.AUROCDifference(aIn, aOut, bIn, bOut)
	if want := detect.AUROC(aIn, aOut) - detect.AUROC(bIn, bOut); math.Abs(got.Mean-want) > 1e-12 {
		t.Errorf("difference %v, want %v", got.Mean, want)
	}

	// By pairs.
	better := func(out, in float64) float64 {
		switch {
		case out > in:
			return 1
		case out == in:
			return 0.5
		}
		return 0
	}
	byOut, byIn := make([]float64, len(aOut)), make([]float64, len(aIn))
	for i := range aOut {
		for j := range aIn {
			d := better(aOut[i], aIn[j]) - better(bOut[i], bIn[j])
			byOut[i] += d / float64(len(aIn))
			byIn[j] += d / float64(len(aOut))
		}
	}
	se := math.Sqrt(stat.Variance(byOut, nil)/float64(len(byOut)) + stat.Variance(byIn, nil)/float64(len(byIn)))
	if half := (got.High - got.Low) / 2; math.Abs(half/se-1.959964) > 1e-6 {
		t.Errorf("half the interval is %v standard errors, want 1.96", half/se)
	}

	// By bootstrap: 2,000 resamples know a standard deviation to 1.6 %, and the two
	// differ by terms of order 1/n.
	var draws []float64
	pick := func(from []float64, rows []int) (out []float64) {
		for _, r := range rows {
			out = append(out, from[r])
		}
		return out
	}
	rows := func(n int) (out []int) {
		for range n {
			out = append(out, rng.IntN(n))
		}
		return out
	}
	for range 2000 {
		in, out := rows(len(aIn)), rows(len(aOut))
		draws = append(draws, detect.AUROC(pick(aIn, in), pick(aOut, out))-detect.AUROC(pick(bIn, in), pick(bOut, out)))
	}
	if sd := stat.StdDev(draws, nil); math.Abs(sd/se-1) > 0.08 {
		t.Errorf("standard error %v, by bootstrap %v", se, sd)
	}
	if one := detect.AUROCDifference(aIn, aOut[:1], bIn, bOut[:1]); !math.IsNaN(one.Low) {
		t.Errorf("interval of one image: %v", one)
	}
}

// Scores that separate all examples have an exact interval, which is that of so many pairs without a common example.
func TestPerfectAUROC(t *testing.T) {
	low, high := []float64{1, 1, 2, 3}, []float64{4, 5, 6, 4, 9, 8, 7}
	const least = 0.3976353643835142 // scipy.stats.binomtest(4, 4).proportion_ci().low
	if i := detect.AUROCInterval(low, high); i.Mean != 1 || math.Abs(i.Low-least) > 1e-12 || i.High != 1 {
		t.Errorf("%v", i)
	}
	if i := detect.AUROCInterval(high, low); i.Mean != 0 || i.Low != 0 || math.Abs(i.High-(1-least)) > 1e-12 {
		t.Errorf("%v", i)
	}
}
