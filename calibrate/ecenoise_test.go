package calibrate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// The range of a calibrated model and the debiased error are NumPy's. Of 1,000 simulated sets the mean has a relative
// standard error below 1 %, and a quantile one below 3 %.
func TestECENoise(t *testing.T) {
	var golden []struct {
		Bins                           int
		Confidence                     []float64
		Correct                        []bool
		ECE, Mean, Low, High, Debiased float64
	}
	testfile.JSON(t, "testdata/ecenoise.json", &golden)
	for _, g := range golden {
		var tops []calibrate.TopLabel
		for i, p := range g.Confidence {
			tops = append(tops, calibrate.TopLabel{Confidence: p, Correct: g.Correct[i]})
		}
		opts := calibrate.ECEOptions{Bins: g.Bins}
		diff(t, "ECE", calibrate.TopLabelECE(tops, opts), g.ECE)
		bins, _ := calibrate.TopLabelReliability(tops, opts)
		diff(t, "debiased", calibrate.DebiasedRMSCE(bins), g.Debiased)
		got := calibrate.NewECENoise(tops, opts, 1)
		for _, x := range []struct {
			name           string
			got, want, tol float64
		}{{"mean", got.Mean, g.Mean, 0.03}, {"low", got.Low, g.Low, 0.1}, {"high", got.High, g.High, 0.1}} {
			if math.Abs(x.got-x.want) > x.tol*x.want {
				t.Errorf("%d bins: %s %v, want %v", g.Bins, x.name, x.got, x.want)
			}
		}
		if again := calibrate.NewECENoise(tops, opts, 1); again != got {
			t.Errorf("another range for the same seed: %v, %v", again, got)
		}
	}
	if got := calibrate.DebiasedRMSCE([]calibrate.ReliabilityBin{{Count: 1, Confidence: 0.9}, {}}); got == got {
		t.Errorf("one prediction: %v", got)
	}
	if got := calibrate.DebiasedRMSCE([]calibrate.ReliabilityBin{{Count: 1, Confidence: 0.9}, {Count: 99, Confidence: 0.9, Accuracy: 1}}); !(got > 0.09) {
		t.Errorf("one of a hundred predictions alone: %v", got)
	}
	if got := calibrate.DebiasedRMSCE([]calibrate.ReliabilityBin{{Count: 1, Confidence: 0.9}, {Count: 98, Confidence: 0.9, Accuracy: 1}}); got == got {
		t.Errorf("one of 99 predictions alone: %v", got)
	}
}

// The ECE of a calibrated model lies in the range of 95 % in 93 to 97 % of samples, for each binning. The debiased error
// has the mean 0 before the root.
func TestECENoiseCoverage(t *testing.T) {
	samples := reliability.Figure(100, 2000)
	slack := 3 * math.Sqrt(0.05*0.95/float64(samples))
	for _, opts := range []calibrate.ECEOptions{{}, calibrate.GuoBins(), {Binning: calibrate.SwagReference}} {
		rng := rand.New(rand.NewPCG(3, uint64(opts.Binning)))
		held := 0
		for seed := range samples {
			tops := make([]calibrate.TopLabel, 600)
			for i := range tops {
				p := math.Pow(rng.Float64(), 0.2)
				tops[i] = calibrate.TopLabel{Confidence: p, Correct: rng.Float64() < p}
			}
			ece := calibrate.TopLabelECE(tops, opts)
			if r := calibrate.NewECENoise(tops, opts, uint64(seed)); r.Low <= ece && ece <= r.High {
				held++
			}
		}
		if share := float64(held) / float64(samples); share < 0.93-slack || share > 0.97+slack {
			t.Errorf("%v: %d of %d within the range", opts, held, samples)
		}
	}
}
