package calibrate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/testfile"
)

// noiseGolden is testdata/noise.json; noise.py says what is in it.
type noiseGolden struct {
	Holm []struct{ P, Adjusted []float64 }

	Sign []struct {
		Won, Lost int
		P         float64
	}

	Refit struct {
		Classes    int
		Fit, Test  []float64
		FitLabels  []int `json:"fit_labels"`
		TestLabels []int `json:"test_labels"`
		T          float64
		Resamples  []struct {
			Fit, Test []float64
			T, NLL    float64
		}
	}

	Jackknife struct {
		All                 []float64
		Without             [][]float64
		Weights             []float64
		Bias, Variance, Own float64
		Corrected           []float64
	}

	Difference []struct {
		Mean, Images, Draws, Own, DoF, Bias, Low, High, P float64
		N                                                 int
	}
}

func readNoise(t *testing.T) (g noiseGolden) {
	t.Helper()
	testfile.JSON(t, "testdata/noise.json", &g)
	return g
}

func TestHolm(t *testing.T) {
	for _, want := range readNoise(t).Holm {
		diff(t, "adjusted", calibrate.Holm(want.P), want.Adjusted)
	}
	// What is no number takes no part.
	got := calibrate.Holm([]float64{0.03, math.NaN(), 0.02})
	if got[0] != 0.04 || got[1] == got[1] || got[2] != 0.04 {
		t.Errorf("%v", got)
	}
}

func TestSignTest(t *testing.T) {
	for _, want := range readNoise(t).Sign {
		diff(t, "p", calibrate.SignTest(want.Won, want.Lost), want.P)
	}
}

// A temperature fitted anew to a resample is SciPy's, and so is the loss at it.
func TestRefit(t *testing.T) {
	g := readNoise(t).Refit
	nll := func(logits []float64, labels []int, T float64) []float64 {
		return calibrate.NegLogLikelihoods(nil, calibrate.Predictions{Classes: g.Classes, Probs: calibrate.Softmax(nil, logits, g.Classes, T), Labels: labels})
	}
	x, err := calibrate.NewTempered(g.T, func(T float64) ([]float64, [][]float64, error) {
		return nll(g.Fit, g.FitLabels, T), [][]float64{nll(g.Test, g.TestLabels, T)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range g.Resamples {
		sums := []float64{0}
		got := x.Resample(sums, want.Fit, want.Test)
		if math.Abs(got-want.T) > 1e-6*want.T || math.Abs(sums[0]-want.NLL) > 1e-6*want.NLL {
			t.Errorf("resample %d: T = %.9f, NLL %.9f, want %.9f and %.9f", i, got, sums[0], want.T, want.NLL)
		}
	}
	// A resample that is all right, or all wrong, ends at half or twice the temperature.
	for label, want := range map[int]float64{0: g.T / 2, 1: g.T * 2} {
		x, err := calibrate.NewTempered(g.T, func(T float64) ([]float64, [][]float64, error) {
			l := nll([]float64{3, 0, 0, 0}, []int{label}, T)
			return l, [][]float64{l}, nil
		})
		if got := x.Resample([]float64{0}, []float64{1}, []float64{1}); err != nil || math.Abs(got-want) > 0.01*want {
			t.Errorf("label %d: T = %v, want about %v; %v", label, got, want, err)
		}
	}
}

func TestJackknife(t *testing.T) {
	want := readNoise(t).Jackknife
	got, corrected := calibrate.Jackknife(want.All, want.Without, nil, want.Weights)
	diff(t, "bias", got.Bias, want.Bias)
	diff(t, "variance", got.Variance, want.Variance)
	diff(t, "own", got.Own, want.Own)
	diff(t, "corrected", corrected, want.Corrected)
	if got.DoF != 3 {
		t.Errorf("%v degrees of freedom", got.DoF)
	}
	if d, _ := calibrate.Jackknife(want.All, want.Without[:1], nil, want.Weights[:1]); !math.IsInf(d.Variance, 1) {
		t.Errorf("one group tells %+v", d)
	}
}

// What is a mean of the members themselves has the jackknife of a mean: no bias, and the variance of
// group means. Half the square of a mean of draws of variance 1 is biased by 1/2S, which
// the jackknife finds.
func TestJackknifeClosedForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	const groups, size = 10, 3
	var means []float64
	total := 0.0
	for range groups {
		sum := 0.0
		for range size {
			sum += rng.NormFloat64()
		}
		means, total = append(means, sum/size), total+sum
	}
	mean := total / (groups * size)
	weights, one := make([]float64, groups), func(v float64) []float64 { return []float64{v} }
	var without, squares [][]float64
	for g, m := range means {
		rest := (total - m*size) / (groups*size - size)
		weights[g], without, squares = size, append(without, one(rest)), append(squares, one(rest*rest/2))
	}
	got, _ := calibrate.Jackknife(one(mean), without, nil, weights)
	diff(t, "variance", got.Variance, stat.Variance(means, nil)/groups)
	if math.Abs(got.Bias) > 1e-12 {
		t.Errorf("bias %v of a mean", got.Bias)
	}
	// Of a square the bias is exactly half the estimated variance of the mean.
	got, _ = calibrate.Jackknife(one(mean*mean/2), squares, nil, weights)
	diff(t, "bias of a square", got.Bias, stat.Variance(means, nil)/groups/2)
}

// With an effect of each draw on all images and one on single images, both of known
// size, the two are told apart.
func TestReplicated(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	const draws, images, common, own = 400, 300, 0.3, 2.0
	var losses [][]float64
	for range draws {
		shift, l := common*rng.NormFloat64(), make([]float64, images)
		for i := range l {
			l[i] = float64(i) + shift + own*rng.NormFloat64()
		}
		losses = append(losses, l)
	}
	got := calibrate.Replicated(losses)
	if want := common*common + own*own/images; math.Abs(got.Variance-want) > 5*want*math.Sqrt(2./draws) {
		t.Errorf("variance %v, want %v", got.Variance, want)
	}
	if want := (common*common + own*own) / images; math.Abs(got.Own-want) > 5*want*math.Sqrt(2./draws/images) {
		t.Errorf("own %v, want %v", got.Own, want)
	}
	if got.DoF != draws-1 || got.Bias != 0 {
		t.Errorf("%+v", got)
	}
	if one := calibrate.Replicated(losses[:1]); !math.IsInf(one.Variance, 1) {
		t.Errorf("one draw tells %+v", one)
	}
	if both := got.Plus(got); both.Variance != 2*got.Variance || both.DoF != 2*got.DoF {
		t.Errorf("two of a kind: %+v of %+v", both, got)
	}
}

func TestDifference(t *testing.T) {
	for i, want := range readNoise(t).Difference {
		got := calibrate.NewDifference(want.Mean, want.Images, want.N, calibrate.Draws{Variance: want.Draws, Own: want.Own, DoF: want.DoF, Bias: want.Bias})
		if math.Abs(got.Low-want.Low) > 1e-9 || math.Abs(got.High-want.High) > 1e-9 || math.Abs(got.P-want.P) > 1e-9 {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	inf := math.Inf(1)
	if d := calibrate.NewDifference(0.1, 1e-6, 100, calibrate.Draws{Variance: inf}); d.P != 1 || !math.IsInf(d.Low, -1) || !math.IsInf(d.High, 1) {
		t.Errorf("draws of which nothing is known: %+v", d)
	}
	if d := calibrate.NewDifference(inf, inf, 100, calibrate.Draws{}); d.P == d.P || d.Low == d.Low || !math.IsInf(d.Mean, 1) {
		t.Errorf("infinite: %+v", d)
	}
	if d := calibrate.NewDifference(0, 0, 100, calibrate.Draws{}); d.P != 1 || d.Low != 0 || d.High != 0 {
		t.Errorf("the same: %+v", d)
	}
	if d := calibrate.NewDifference(1, 0, 100, calibrate.Draws{}); d.P != 0 {
		t.Errorf("a constant difference: %+v", d)
	}
}

// Counts are those of resamples: as many as there are images, by chance equal.
func TestCounts(t *testing.T) {
	total, square, resamples := 0., 0., 0
	calibrate.BootstrapOptions{Resamples: 500, Seed: 1}.Counts(20, 0, func(images, others []float64) {
		resamples++
		sum := 0.
		for _, c := range images {
			sum += c
			square += c * c / 20
		}
		if total += sum; sum != 20 || len(others) != 0 {
			t.Errorf("a resample of %v images, %d others", sum, len(others))
		}
	})
	// E c² is 2 − 1/n, with a standard deviation of less than 0.5 a resample.
	if mean := square / 500; resamples != 500 || math.Abs(mean-1.95) > 5*0.5/math.Sqrt(500) {
		t.Errorf("%d resamples, mean square %v", resamples, mean)
	}
}

// Folds are those that CrossFit judges each other by.
func TestFolds(t *testing.T) {
	seen := make([]bool, 7)
	for _, rows := range calibrate.Folds(7, 2, 3) {
		for _, i := range rows {
			if seen[i] {
				t.Errorf("image %d twice", i)
			}
			seen[i] = true
		}
	}
	for i, ok := range seen {
		if !ok {
			t.Errorf("image %d in no fold", i)
		}
	}
}

// A mean over pairs of groups has, if nothing else varies, a jackknife of twice its variance;
// leaving out pairs tells. B is symmetric and of variance 1, and θ_J the mean of its upper half.
func TestJackknifePairs(t *testing.T) {
	const groups, times = 10, 400
	rng := rand.New(rand.NewPCG(4, 0))
	plain, told := 0., 0.
	weights := slices.Repeat([]float64{1}, groups)
	for range times {
		var b [groups][groups]float64
		for g := range groups {
			for o := range g {
				b[g][o] = rng.NormFloat64()
				b[o][g] = b[g][o]
			}
		}
		mean := func(but ...int) []float64 {
			sum, n := 0., float64(groups-len(but))
			for g := range groups {
				for o := range groups {
					if !slices.Contains(but, g) && !slices.Contains(but, o) {
						sum += b[g][o]
					}
				}
			}
			return []float64{sum / (n * n)}
		}
		var without, pairs [][]float64
		for g := range groups {
			without = append(without, mean(g))
			for o := g + 1; o < groups; o++ {
				pairs = append(pairs, mean(g, o))
			}
		}
		a, _ := calibrate.Jackknife(mean(), without, nil, weights)
		d, _ := calibrate.Jackknife(mean(), without, pairs, weights)
		plain, told = plain+a.Variance/times, told+d.Variance/times
	}
	const want = 2. / (groups * (groups - 1)) // of the mean of 45 independent numbers, 1/45
	// What is left is at least x, which makes it somewhat more.
	if plain < 1.7*want || told < want || told > 1.4*want {
		t.Errorf("variance %v, and %v where pairs tell, want about %v and %v", plain, told, 2*want, want)
	}
}
