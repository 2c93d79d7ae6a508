package regression_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// approx is the tolerance that testdata/make.py speaks of.
var approx = cmpopts.EquateApprox(1e-9, 1e-9)

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, approx); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

type quality struct {
	regression.Quality
	PIT []int
}

// golden is testdata/golden.json, which testdata/make.py writes.
type golden struct {
	Mixtures []struct {
		Name                         string
		Means, Variances, Weights, Y []float64
		Mean, Aleatoric, Epistemic   float64
		CDF, CRPS                    []float64
		LogDensity                   []float64 `json:"log_density"`
		GaussianLogDensity           []float64 `json:"gaussian_log_density"`
		GaussianCDF                  []float64 `json:"gaussian_cdf"`
		GaussianCRPS                 []float64 `json:"gaussian_crps"`
		Levels, Quantiles            []float64
		GaussianQuantiles            []float64 `json:"gaussian_quantiles"`
	}
	Metrics struct {
		Targets, Members    int
		Y, Means, Variances []float64
		Of                  []struct {
			RMSE, MAE, Std, Aleatoric, Epistemic, ENCE, ENCE7 float64
			Mixture, Gaussian                                 quality
			PITs                                              []float64
		}
	}
	Scaling struct {
		Y, Means, Variances   []float64
		Factor, Before, After float64
	}
	Isotonic struct{ PITs, Grid, Map, Levels, Inverse []float64 }
	Noise    []struct {
		Y, Means, Weights []float64
		Members           int
		Variance          float64
	}
	Heads struct{ Raw, Softplus, Exp []float64 }
	Units struct {
		Mean, Std, Y float64
		ZMean        float64 `json:"z_mean"`
		ZVariance    float64 `json:"z_variance"`
		LogDensity   float64 `json:"log_density"`
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	var g golden
	testfile.JSON(t, "testdata/golden.json", &g)
	if len(g.Mixtures) < 9 || len(g.Metrics.Of) < 2 || len(g.Noise) < 5 || len(g.Heads.Raw) == 0 || len(g.Isotonic.Grid) == 0 || len(g.Scaling.Y) == 0 {
		t.Fatal("testdata/golden.json lacks problems")
	}
	return g
}

func mapValues(x []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = f(v)
	}
	return out
}

func TestMixtures(t *testing.T) {
	for _, want := range readGolden(t).Mixtures {
		t.Run(want.Name, func(t *testing.T) {
			m := regression.Mixture{Means: want.Means, Variances: want.Variances, Weights: want.Weights}
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
			moments := m.Moments()
			diff(t, "mean", moments.Mean, want.Mean)
			diff(t, "aleatoric", moments.Aleatoric, want.Aleatoric)
			diff(t, "epistemic", moments.Epistemic, want.Epistemic)
			diff(t, "log density", mapValues(want.Y, m.LogDensity), want.LogDensity)
			diff(t, "CDF", mapValues(want.Y, m.CDF), want.CDF)
			diff(t, "CRPS", mapValues(want.Y, m.CRPS), want.CRPS)
			diff(t, "quantiles", mapValues(want.Levels, m.Quantile), want.Quantiles)
			g := moments.Gaussian()
			diff(t, "Gaussian log density", mapValues(want.Y, g.LogDensity), want.GaussianLogDensity)
			diff(t, "Gaussian CDF", mapValues(want.Y, g.CDF), want.GaussianCDF)
			diff(t, "Gaussian CRPS", mapValues(want.Y, g.CRPS), want.GaussianCRPS)
			diff(t, "Gaussian quantiles", mapValues(want.Levels, g.Quantile), want.GaussianQuantiles)

			// 1e-9 absolute tells nothing of what is smaller: ends of tiny members are held
			// to a millionth of their standard deviation.
			for k, p := range want.Levels {
				if d := math.Abs(m.Quantile(p) - want.Quantiles[k]); d > 1e-6*moments.Std() {
					t.Errorf("quantile at %v is off by %v", p, d)
				}
			}
			for k, y := range want.Y {
				if got := m.CRPS(y); math.Abs(got-want.CRPS[k]) > 1e-9*math.Abs(want.CRPS[k]) {
					t.Errorf("CRPS at %v is %v, want %v", y, got, want.CRPS[k])
				}
			}
		})
	}
}

func TestEvaluate(t *testing.T) {
	g := readGolden(t)
	problem, of := g.Metrics, g.Metrics.Members
	scores := make([]regression.Score, len(problem.Y))
	for k, y := range problem.Y {
		scores[k] = regression.Mixture{Means: problem.Means[k*of : (k+1)*of], Variances: problem.Variances[k*of : (k+1)*of]}.Score(y)
	}
	e := regression.Evaluate(scores, problem.Targets)
	var means [2]float64
	for i, want := range problem.Of {
		got := e.Targets[i]
		diff(t, "metrics", got, regression.Metrics{
			N: len(want.PITs), RMSE: want.RMSE, MAE: want.MAE, Std: want.Std, Aleatoric: want.Aleatoric, Epistemic: want.Epistemic, ENCE: want.ENCE,
			Mixture: want.Mixture.Quality, Gaussian: want.Gaussian.Quality,
		})
		var column []regression.Score
		for k := i; k < len(scores); k += problem.Targets {
			column = append(column, scores[k])
			diff(t, "PIT", scores[k].Mixture.PIT, want.PITs[k/problem.Targets])
		}
		diff(t, "ENCE of 7 bins", regression.ENCE(column, 7), want.ENCE7)
		diff(t, "PIT histogram", regression.PITHistogram(want.PITs, 0), want.Mixture.PIT)
		means[0] += want.Mixture.LogLikelihood / 2
		means[1] += want.RMSE / 2
	}
	diff(t, "mean over targets", [2]float64{e.Mean.Mixture.LogLikelihood, e.Mean.RMSE}, means)
}

func TestVarianceScaling(t *testing.T) {
	want := readGolden(t).Scaling
	s, err := regression.FitVarianceScaling(want.Y, want.Means, want.Variances)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "scaling", s, regression.VarianceScaling{Factor: want.Factor, Before: want.Before, After: want.After})
}

func TestIsotonic(t *testing.T) {
	want := readGolden(t).Isotonic
	r, err := regression.FitIsotonic(want.PITs)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "map", mapValues(want.Grid, r.Apply), want.Map)
	diff(t, "inverse", mapValues(want.Levels, r.Inverse), want.Inverse)
}

func TestNoise(t *testing.T) {
	for _, want := range readGolden(t).Noise {
		got, err := regression.FitMixtureNoise(want.Y, want.Means, want.Members, want.Weights)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "variance", got, want.Variance)
	}
}

func TestVarianceHeads(t *testing.T) {
	want := readGolden(t).Heads
	squares := func(values []float64) (out []float64) {
		for _, v := range values {
			out = append(out, v*v)
		}
		return out
	}
	for head, values := range map[regression.VarianceHead][]float64{regression.BySoftplus: want.Softplus, regression.ByLogVariance: want.Exp,
		regression.BySoftplusStd: squares(want.Softplus), regression.ByLogStd: squares(want.Exp)} {
		for i, v := range values {
			if math.IsInf(v, 1) { // of 700, squared
				continue
			}
			if got, err := head.Variance(want.Raw[i]); err != nil || math.Abs(got-v) > 1e-12*v {
				t.Errorf("%s of %v: %v, %v, want %v", head, want.Raw[i], got, err, v)
			}
		}
	}
}

func TestUnits(t *testing.T) {
	want := readGolden(t).Units
	u := regression.Units{Mean: want.Mean, Std: want.Std}
	moments := u.Moments(regression.Moments{Mean: want.ZMean, Aleatoric: want.ZVariance})
	diff(t, "log density", moments.Gaussian().LogDensity(want.Y), want.LogDensity)
}
