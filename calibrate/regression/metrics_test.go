package regression_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
)

// drawn returns scores of Gaussians whose true values are drawn from them, with
// variances that are stated as factor times what they are.
func drawn(rng *rand.Rand, n int, factor float64) []regression.Score {
	scores := make([]regression.Score, n)
	for i := range scores {
		mean, variance := rng.NormFloat64(), 0.1+rng.Float64()
		y := mean + math.Sqrt(variance)*rng.NormFloat64()
		scores[i] = regression.Mixture{Means: []float64{mean}, Variances: []float64{factor * variance}}.Score(y)
	}
	return scores
}

// What is calibrated is found to be, and what is not is not.
func TestEvaluateKnowsCalibration(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	scores := drawn(rng, 20000, 1)
	right := regression.Evaluate(scores, 1).Mean
	if math.Abs(right.Mixture.Coverage-0.95) > 0.005 || right.ENCE > 0.03 {
		t.Errorf("coverage %v, ENCE %v of calibrated predictions", right.Mixture.Coverage, right.ENCE)
	}
	var pits []float64
	for _, s := range scores {
		pits = append(pits, s.Mixture.PIT)
	}
	counts := regression.PITHistogram(pits, 0)
	for _, count := range counts {
		if math.Abs(float64(count)-2000) > 5*math.Sqrt(2000) {
			t.Errorf("PIT histogram of calibrated predictions: %v", counts)
		}
	}
	sure := regression.Evaluate(drawn(rng, 20000, 0.25), 1).Mean
	if math.Abs(sure.Mixture.Coverage-0.673) > 0.02 || math.Abs(sure.ENCE-1) > 0.05 { // Φ(0.98), and errors of twice the size
		t.Errorf("coverage %v, ENCE %v of predictions twice as sure", sure.Mixture.Coverage, sure.ENCE)
	}
	// Of one member the mixture is the Gaussian; 1.96 is not quite its quantile.
	diff(t, "log-likelihood", sure.Mixture.LogLikelihood, sure.Gaussian.LogLikelihood)
	diff(t, "CRPS", sure.Mixture.CRPS, sure.Gaussian.CRPS)
	diff(t, "width", sure.Mixture.Width*1.96/1.959963984540054, sure.Gaussian.Width)
}

// With moments alone there is no score of the mixture, and all of the Gaussian.
func TestScoreOfMoments(t *testing.T) {
	m := regression.Mixture{Means: []float64{0, 1}, Variances: []float64{1, 2}}
	whole, moments := m.Score(0.7), m.Moments().Score(0.7)
	diff(t, "Gaussian", moments.Gaussian, whole.Gaussian)
	if !math.IsNaN(moments.Mixture.LogLikelihood) || !math.IsNaN(moments.Mixture.Low) {
		t.Errorf("marks of an unknown mixture: %+v", moments.Mixture)
	}
	e := regression.Evaluate([]regression.Score{moments}, 1).Mean
	if q := e.Mixture; !math.IsNaN(q.LogLikelihood) || !math.IsNaN(q.Coverage) {
		t.Errorf("quality of unknown mixtures: %+v", q)
	}
	if e.Gaussian.Coverage != 1 {
		t.Errorf("quality of the Gaussian: %+v", e.Gaussian)
	}
}

func TestErrorBins(t *testing.T) {
	score := func(variance, miss float64) regression.Score {
		return regression.Moments{Aleatoric: variance}.Score(miss)
	}
	equal := []regression.Score{score(4, 2), score(4, -2), score(4, 2), score(4, 2)}
	if got := regression.ErrorBins(equal, 3); len(got) != 1 || got[0] != (regression.ErrorBin{Count: 4, RMV: 2, RMSE: 2}) {
		t.Errorf("equal variances are cut apart: %+v", got)
	}
	if got := regression.ENCE(equal, 3); got != 0 {
		t.Errorf("ENCE %v, want 0", got)
	}
	if got := regression.ENCE(equal[:1], 0); got != 0 {
		t.Errorf("ENCE of one %v, want 0", got)
	}
	// Two bins, 1 of 2 and 3 of 1 too little; the order does not count.
	mixed := []regression.Score{score(1, 2), score(9, 0), score(1, -2), score(9, 0), score(9, 0)}
	diff(t, "ENCE", regression.ENCE(mixed, 2), 1.0)
	want := regression.ErrorBins(mixed, 2)
	slices.Reverse(mixed)
	diff(t, "bins", regression.ErrorBins(mixed, 2), want)
}

func TestPITHistogram(t *testing.T) {
	diff(t, "histogram", regression.PITHistogram([]float64{0, 0.24, 0.25, 0.999, 1}, 4), []int{2, 1, 0, 2})
	diff(t, "histogram", regression.PITHistogram(nil, 0), make([]int, 10))
}

func TestEvaluateWarns(t *testing.T) {
	far := regression.Mixture{Means: []float64{0}, Variances: []float64{1e-300}}.Score(1e200)
	e := regression.Evaluate([]regression.Score{far, far}, 2)
	if got := len(e.Mean.Warnings); got != 2 || !math.IsInf(e.Mean.Mixture.LogLikelihood, -1) {
		t.Errorf("%d warnings, want those of the log-likelihood and the bins once: %v", got, e.Mean.Warnings)
	}
}
