package regression_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
)

// After the scaling nothing is left to scale, the log-likelihood is the one that was
// guaranteed, and a mixture keeps its shape.
func TestVarianceScalingApplies(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	var y, means, variances []float64
	var mixtures []regression.Mixture
	for range 200 {
		m := random(rng, 5)
		moments := m.Moments()
		mixtures = append(mixtures, m)
		means, variances = append(means, moments.Mean), append(variances, moments.Variance())
		y = append(y, moments.Mean+2*moments.Std()*rng.NormFloat64())
	}
	s, err := regression.FitVarianceScaling(y, means, variances)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(s.Factor-4) > 1 || s.After < s.Before {
		t.Errorf("factor %v of errors twice the deviation; log-likelihood %v, then %v", s.Factor, s.Before, s.After)
	}
	var after float64
	for i, m := range mixtures {
		scaled := s.Mixture(m)
		want := s.Moments(m.Moments())
		diff(t, "moments", scaled.Moments(), want)
		variances[i] = want.Variance()
		after += scaled.Score(y[i]).Gaussian.LogLikelihood / 200
		at := m.Moments().Mean + (y[i]-means[i])/math.Sqrt(s.Factor)
		diff(t, "shape", scaled.CDF(y[i]), m.CDF(at))
	}
	diff(t, "log-likelihood", after, s.After)
	again, err := regression.FitVarianceScaling(y, means, variances)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "what is left", again.Factor, 1.0)
}

func TestFitsRefuse(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		y, means, variances []float64
		want                string
	}{
		{nil, nil, nil, "no rows, want at least one"},
		{[]float64{1, nan}, []float64{0, 0}, []float64{1, 1}, "row 1: target NaN, want a finite number"},
		{[]float64{1, 2}, []float64{0, nan}, []float64{1, 1}, "row 1: member 0: mean NaN, want a finite number"},
		{[]float64{1, 2}, []float64{0, 0}, []float64{1, -1}, "row 1: member 0: variance -1, want a positive finite number"},
		{[]float64{1, 2}, []float64{1, 2}, []float64{1, 1}, "every prediction is exact: no variance is likeliest"},
		{[]float64{1e200}, []float64{0}, []float64{1}, "factor of the variance +Inf, want a positive finite number"},
		{[]float64{3}, []float64{1}, []float64{1}, ""}, // one row will do
	} {
		_, err := regression.FitVarianceScaling(tt.y, tt.means, tt.variances)
		refused(t, err, tt.want)
	}
	for _, tt := range []struct {
		y, means []float64
		members  int
		weights  []float64
		want     string
	}{
		{nil, nil, 1, nil, "no rows, want at least one"},
		{[]float64{1}, []float64{1, 2}, 2, nil, "every prediction is exact: no variance is likeliest"},
		{[]float64{1}, []float64{1, 2}, 2, []float64{0, 1}, ""}, // the exact one has no weight
		{[]float64{1}, []float64{1, 2}, 2, []float64{0, 2}, "row 0: weights sum to 2, want 1 within 1e-09"},
		{[]float64{1, 2}, []float64{1, nan}, 1, nil, "row 1: member 0: mean NaN, want a finite number"},
		{[]float64{1e200}, []float64{0}, 1, nil, "the mean squared error is too large for float64"},
	} {
		_, err := regression.FitMixtureNoise(tt.y, tt.means, tt.members, tt.weights)
		refused(t, err, tt.want)
	}
	for _, tt := range []struct {
		pits []float64
		want string
	}{
		{nil, "no rows, want at least one"},
		{[]float64{0.5, 1.01}, "row 1: PIT value 1.01, want 0 to 1"},
		{[]float64{nan}, "row 0: PIT value NaN, want 0 to 1"},
	} {
		_, err := regression.FitIsotonic(tt.pits)
		refused(t, err, tt.want)
	}
}

// The noise found is likelier than any other, also where the likelihood has two maxima.
func TestMixtureNoiseIsGlobal(t *testing.T) {
	// Most rows have a member close by, some have none within 3.
	var y, means []float64
	rng := rand.New(rand.NewPCG(13, 14))
	for i := range 60 {
		near := 0.01 * rng.NormFloat64()
		if i%3 == 0 {
			near = 3 + rng.Float64()
		}
		y, means = append(y, 0), append(means, near, 5)
	}
	found, err := regression.FitMixtureNoise(y, means, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	value := func(variance float64) (sum float64) {
		for i := range y {
			sum += regression.Mixture{Means: means[2*i : 2*i+2], Variances: []float64{variance, variance}}.LogDensity(0)
		}
		return sum
	}
	best := value(found)
	for x := -12.0; x < 5; x += 0.01 {
		if v := value(math.Exp(x)); v > best+1e-9 {
			t.Fatalf("variance %v has log-likelihood %v, and %v, which was found, %v", math.Exp(x), v, found, best)
		}
	}
}

// Recalibrated by a map fitted on many rows, intervals of other rows hold what they
// should, which they did not before.
func TestIsotonicRecalibrates(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	fit, test := drawn(rng, 4000, 0.25), drawn(rng, 4000, 0.25)
	pits := make([]float64, len(fit))
	for i, s := range fit {
		pits[i] = s.Mixture.PIT
	}
	r, err := regression.FitIsotonic(pits)
	if err != nil || r.Warnings != nil {
		t.Fatal(err, r.Warnings)
	}
	var before, after, usual float64
	var uniform []float64
	for _, s := range test {
		d := regression.Mixture{Means: []float64{s.Moments.Mean}, Variances: []float64{s.Moments.Aleatoric}}
		low, high := r.Interval(d, 0.9)
		if low < s.Y && s.Y < high {
			after += 1 / float64(len(test))
		}
		if low, high = d.Interval(0.9); low < s.Y && s.Y < high {
			before += 1 / float64(len(test))
		}
		marks := r.Marks(d, s.Y)
		uniform = append(uniform, marks.PIT)
		if marks.Low <= s.Y && s.Y <= marks.High {
			usual += 1 / float64(len(test))
		}
		diff(t, "CDF of the quantile", r.CDF(d, r.Quantile(d, 0.3)), 0.3)
	}
	if before > 0.65 || math.Abs(after-0.9) > 0.03 || math.Abs(usual-0.95) > 0.02 {
		t.Errorf("coverage %v before and %v after, want 0.9; %v of 0.95", before, after, usual)
	}
	for _, count := range regression.PITHistogram(uniform, 0) {
		if math.Abs(float64(count)-400) > 120 {
			t.Errorf("PIT histogram after: %v", regression.PITHistogram(uniform, 0))
			break
		}
	}
}

// One row, equal values, and values where the distribution function is 0 or 1.
func TestIsotonicEdges(t *testing.T) {
	d := regression.Gaussian{Variance: 1}
	r, err := regression.FitIsotonic([]float64{0.5})
	if err != nil || len(r.Warnings) != 1 {
		t.Fatal(err, r.Warnings)
	}
	diff(t, "map of one", mapValues([]float64{0, 0.25, 0.5, 0.9, 1}, r.Apply), []float64{0, 0.5, 1, 1, 1})
	if low, high := r.Interval(d, 1); !math.IsInf(low, -1) || high != 0 {
		t.Errorf("whole interval [%v, %v]", low, high)
	}
	r, err = regression.FitIsotonic([]float64{0, 0, 1, 0.5})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "map", mapValues([]float64{0, 0.25, 0.5, 0.75, 1}, r.Apply), []float64{0.5, 0.625, 0.75, 0.875, 1})
	diff(t, "inverse", mapValues([]float64{0, 0.4, 0.5, 0.75, 1}, r.Inverse), []float64{0, 0, 0, 0.5, 1})
	if low, high := r.Interval(d, 0.95); !math.IsInf(low, -1) || math.IsNaN(high) || math.IsInf(high, 0) {
		t.Errorf("interval [%v, %v]", low, high)
	}
	r, err = regression.FitIsotonic([]float64{0.3, 0.3, 0.3})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "inverse of equal values", r.Inverse(0.5), 0.15)
}
