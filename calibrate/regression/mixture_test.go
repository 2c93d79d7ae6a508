package regression_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/swagwrap/swagwrap/calibrate/regression"
)

// random returns a mixture of scales that differ by orders of magnitude.
func random(rng *rand.Rand, members int) regression.Mixture {
	m := regression.Mixture{}
	for range members {
		m.Means = append(m.Means, 3*rng.NormFloat64())
		m.Variances = append(m.Variances, math.Exp(6*rng.Float64()-4))
	}
	return m
}

// The density between the ends of an interval integrates to its level, and the CRPS is
// the integral of (F(x) − 1[x ≥ y])².
func TestNumericalIntegration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	integral := func(f func(float64) float64, a, b float64) (sum float64) {
		const panels = 400
		for i := range panels {
			at := func(k int) float64 { return a + (b-a)*float64(k)/panels }
			sum += quad.Fixed(f, at(i), at(i+1), 10, nil, 0)
		}
		return sum
	}
	for _, members := range []int{1, 2, 7, 30} {
		for range 5 {
			m := random(rng, members)
			for _, level := range []float64{0.5, 0.95, 0.999} {
				low, high := m.Interval(level)
				got := integral(func(x float64) float64 { return math.Exp(m.LogDensity(x)) }, low, high)
				diff(t, "share of the interval", got, level)
			}
			y := 4 * rng.NormFloat64()
			low, high := min(y, m.Quantile(1e-18)), max(y, -regression.Mixture{Means: mapValues(m.Means, func(x float64) float64 { return -x }), Variances: m.Variances}.Quantile(1e-18))
			below := integral(func(x float64) float64 { return math.Pow(m.CDF(x), 2) }, low, y)
			above := integral(func(x float64) float64 { return math.Pow(1-m.CDF(x), 2) }, y, high)
			diff(t, "CRPS", m.CRPS(y), below+above)
		}
	}
}

// Quantiles are where the distribution function says, rise, and are those of a single
// Gaussian where all members are.
func TestQuantileInverts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		m := random(rng, 1+rng.IntN(12))
		last := math.Inf(-1)
		for _, p := range []float64{1e-300, 1e-20, 1e-3, 0.025, 0.3, 0.5, 0.7, 0.975, 0.999} {
			q := m.Quantile(p)
			if got := m.CDF(q); math.Abs(got-p) > 1e-11*p {
				t.Fatalf("CDF of the quantile at %v is %v: %+v", p, got, m)
			}
			if q <= last {
				t.Fatalf("quantile at %v is %v, not above %v", p, q, last)
			}
			last = q
		}
	}
	g := regression.Gaussian{Mean: 2, Variance: 1e-12}
	same := regression.Mixture{Means: []float64{2, 2, 2}, Variances: []float64{1e-12, 1e-12, 1e-12}}
	idle := regression.Mixture{Means: []float64{2, 50}, Variances: []float64{1e-12, 9}, Weights: []float64{1, 0}}
	for _, p := range []float64{0, 0.025, 0.5, 0.975, 1} {
		if q := g.Quantile(p); same.Quantile(p) != q || idle.Quantile(p) != q {
			t.Errorf("quantile at %v: %v and %v, want %v", p, same.Quantile(p), idle.Quantile(p), q)
		}
	}
}

// Between members of tiny variances the distribution function is flat: a quantile there
// is where it has the level.
func TestQuantileWhereFlat(t *testing.T) {
	m := regression.Mixture{Variances: make([]float64, 40)}
	for s := range m.Variances {
		m.Means = append(m.Means, float64(s))
		m.Variances[s] = 1e-12
	}
	low, high := m.Interval(regression.Level) // one member in 40 on either side
	if low < 0 || low > 1 || high < 38 || high > 39 {
		t.Errorf("interval [%v, %v], want its ends between members 0 and 1, 38 and 39", low, high)
	}
	if got := m.CDF(high) - m.CDF(low); math.Abs(got-0.95) > 1e-12 {
		t.Errorf("the interval holds %v", got)
	}
}

// Far from all members nothing is NaN, or infinite where the true value is not.
func TestFarTails(t *testing.T) {
	m := regression.Mixture{Means: []float64{0, 1}, Variances: []float64{1e-12, 1}}
	for _, y := range []float64{-1e150, -1e6, -40, 1e-3, 40, 1e6, 1e150} {
		s := m.Score(y)
		want := -math.Log(2) - (math.Log(2*math.Pi)+(y-1)*(y-1))/2
		if math.Abs(y) > 1 && math.Abs(s.Mixture.LogLikelihood-want) > 1e-12*math.Abs(want) {
			t.Errorf("log density at %v: %v, want %v", y, s.Mixture.LogLikelihood, want)
		}
		for what, x := range map[string]float64{
			"log density": s.Mixture.LogLikelihood, "Gaussian's": s.Gaussian.LogLikelihood, "CRPS": s.Mixture.CRPS, "Gaussian's CRPS": s.Gaussian.CRPS,
			"PIT": s.Mixture.PIT, "low": s.Mixture.Low, "high": s.Mixture.High,
		} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%s at %v: %v", what, y, x)
			}
		}
		if math.Abs(y) > 1 && math.Abs(s.Mixture.CRPS-math.Abs(y-0.5)) > 0.6 {
			t.Errorf("CRPS at %v: %v, want about the distance", y, s.Mixture.CRPS)
		}
	}
	// (y − μ)² is beyond float64, z² is not.
	g := regression.Gaussian{Variance: 1e300}
	if got := g.LogDensity(1e160); math.Abs(got+5e19) > 1e6 {
		t.Errorf("log density %v, want −5e19", got)
	}
}

func TestMixtureCheck(t *testing.T) {
	tests := []struct {
		m    regression.Mixture
		want string
	}{
		{regression.Mixture{Means: []float64{0, 1}, Variances: []float64{1, 2}}, ""},
		{regression.Mixture{Means: []float64{0, 1}, Variances: []float64{1, -2}}, "member 1: variance -2, want a positive finite number"},
		{regression.Mixture{Means: []float64{0}, Variances: []float64{0}}, "member 0: variance 0, want a positive finite number"},
		{regression.Mixture{Means: []float64{0}, Variances: []float64{math.NaN()}}, "member 0: variance NaN, want a positive finite number"},
		{regression.Mixture{Means: []float64{math.Inf(1)}, Variances: []float64{1}}, "member 0: mean +Inf, want a finite number"},
		{regression.Mixture{Means: []float64{0, 1}, Variances: []float64{1, 2}, Weights: []float64{0.5, 0.4}}, "weights sum to 0.9, want 1 within 1e-09"},
		{regression.Mixture{Means: []float64{0, 1}, Variances: []float64{1, 2}, Weights: []float64{1.5, -0.5}}, "member 1: weight -0.5, want 0 or more"},
	}
	for _, tt := range tests {
		refused(t, tt.m.Check(), tt.want)
	}
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func panics(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s does not panic", what)
		}
	}()
	f()
}

func TestPanics(t *testing.T) {
	m := regression.Mixture{Means: []float64{0}, Variances: []float64{1}}
	r, err := regression.FitIsotonic([]float64{0.5})
	if err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]func(){
		"no members":         func() { regression.Mixture{}.CDF(0) },
		"lengths":            func() { regression.Mixture{Means: []float64{0}}.Moments() },
		"weights":            func() { regression.Mixture{Means: m.Means, Variances: m.Variances, Weights: []float64{1, 0}}.CRPS(0) },
		"level":              func() { m.Quantile(1.1) },
		"NaN level":          func() { m.Interval(math.NaN()) },
		"no scores":          func() { regression.Evaluate(nil, 1) },
		"not n × targets":    func() { regression.Evaluate(make([]regression.Score, 3), 2) },
		"bins":               func() { regression.ENCE(make([]regression.Score, 3), -1) },
		"PIT bins":           func() { regression.PITHistogram(nil, -1) },
		"PIT":                func() { regression.PITHistogram([]float64{1.5}, 0) },
		"map":                func() { r.Apply(-0.1) },
		"inverse":            func() { r.Inverse(math.NaN()) },
		"rows":               func() { _, _ = regression.FitVarianceScaling([]float64{1}, nil, nil) },
		"members":            func() { _, _ = regression.FitMixtureNoise([]float64{1, 2}, []float64{1, 2, 3}, 2, nil) },
		"head":               func() { _, _ = regression.VarianceHead("sigma").Variance(1) },
		"no ENCE of nothing": func() { regression.ENCE(nil, 0) },
	} {
		panics(t, what, f)
	}
}
