package chance_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
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
		Variances  []float64
	}

	Draws struct {
		All                   []float64
		Without               [][]float64
		Weights               []float64
		Bias, Variance, Third float64
	}

	Difference []struct {
		Losses                                      []float64
		Fits, Draws, DoF, Bias, Third, Low, High, P float64
		Other, Many                                 [2]float64
	}
}

func readNoise(t *testing.T) (g noiseGolden) {
	t.Helper()
	testfile.JSON(t, "testdata/noise.json", &g)
	return g
}

func TestHolm(t *testing.T) {
	for _, want := range readNoise(t).Holm {
		testfile.Near(t, "adjusted", chance.Holm(want.P), want.Adjusted)
	}
	// What is no number takes no part.
	got := chance.Holm([]float64{0.03, math.NaN(), 0.02})
	if got[0] != 0.04 || got[1] == got[1] || got[2] != 0.04 {
		t.Errorf("%v", got)
	}
}

func TestSignTest(t *testing.T) {
	for _, want := range readNoise(t).Sign {
		testfile.Near(t, "p", chance.SignTest(want.Won, want.Lost), want.P)
	}
}

// The variance of a temperature is that of analytic derivatives. The numerical ones differ by the square of their step, 1e-4.
func TestRefit(t *testing.T) {
	g := readNoise(t).Refit
	at := func(logits []float64, labels []int, T float64) calibrate.Predictions {
		return calibrate.Predictions{Classes: g.Classes, Probs: calibrate.Softmax(nil, logits, g.Classes, T), Labels: labels}
	}
	got, err := chance.NewRefit(func(factor float64) ([]float64, [][]float64, error) {
		fitted, applied := at(g.Fit, g.FitLabels, g.T*factor), at(g.Test, g.TestLabels, g.T*factor)
		return calibrate.NegLogLikelihoods(nil, fitted), [][]float64{calibrate.NegLogLikelihoods(nil, applied), calibrate.Briers(nil, applied)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for l, want := range g.Variances {
		if math.Abs(got.Variances[l]-want) > 1e-3*want {
			t.Errorf("loss %d: %v, want %v", l, got.Variances[l], want)
		}
	}
	for i := range g.FitLabels[:20] { // fits without one of the examples
		rest, labels := slices.Concat(g.Fit[:i*g.Classes], g.Fit[(i+1)*g.Classes:]), slices.Concat(g.FitLabels[:i], g.FitLabels[i+1:])
		without, err := calibrate.FitTemperature(rest, g.Classes, labels)
		if err != nil {
			t.Fatal(err)
		}
		want := calibrate.NegLogLikelihoods(nil, at(g.Fit[i*g.Classes:(i+1)*g.Classes], g.FitLabels[i:i+1], without.T))[0]
		if math.Abs(got.Unseen[i]-want) > 1e-3 {
			t.Errorf("without example %d: %v, want %v", i, got.Unseen[i], want)
		}
	}
	// This loss jumps by 0.002 at a factor of 1.004. The standard error of the number's logarithm is 0.05, so the number may
	// pass the jump. The variance is then ½·0.002².
	got, err = chance.NewRefit(func(factor float64) ([]float64, [][]float64, error) {
		fitted, x := make([]float64, 400), math.Log(factor)
		for i := range fitted {
			e := x - float64(2*(i%2)-1)
			fitted[i] = e * e
		}
		jump := 0.0
		if x > 0.004 {
			jump = 0.002
		}
		return fitted, [][]float64{{jump}}, nil
	})
	if err != nil || math.Abs(got.Variances[0]-2e-6) > 1e-9 {
		t.Errorf("a jump adds %v, %v", got, err)
	}
	// Examples that do not determine a temperature add nothing.
	got, err = chance.NewRefit(func(float64) ([]float64, [][]float64, error) { return []float64{1, 1}, [][]float64{{1, 2}}, nil })
	if err != nil || got.Variances[0] != 0 || got.Unseen != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestDraws(t *testing.T) {
	want := readNoise(t).Draws
	got := chance.NewDraws(want.All, want.Without, want.Weights)
	testfile.Near(t, "bias", got.Bias, want.Bias)
	testfile.Near(t, "variance", got.Variance, want.Variance)
	testfile.Near(t, "third cumulant", got.Third, want.Third)
	if got.DoF != float64(len(want.Weights)-1) {
		t.Errorf("%v degrees of freedom", got.DoF)
	}
	if d := chance.NewDraws(want.All, want.Without[:1], want.Weights[:1]); !math.IsInf(d.Variance, 1) {
		t.Errorf("one group gives %+v", d)
	}
	// Infinite losses that no member changes leave the rest finite.
	inf := math.Inf(1)
	with := slices.Clone(want.Without)
	for g := range with {
		with[g] = append(slices.Clone(with[g]), inf)
	}
	if d := chance.NewDraws(append(slices.Clone(want.All), inf), with, want.Weights); !(d.Variance < 1) {
		t.Errorf("with an infinite loss %+v", d)
	}
}

// A mean of the members' own values has the jackknife of a mean: no bias, and the variance of group means less the
// part of single examples. Half the square of a mean of draws of variance 1 has a bias of 1/2S, which the jackknife
// finds.
func TestDrawsClosedForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	const groups, examples = 10, 4000
	means, weights := make([]float64, groups), slices.Repeat([]float64{2}, groups)
	total := 0.0
	for g := range means {
		means[g] = rng.NormFloat64()
		total += means[g]
	}
	losses := func(of func(mean float64) float64, sum, count float64) []float64 {
		return slices.Repeat([]float64{of(sum / count)}, examples)
	}
	draws := func(of func(mean float64) float64) chance.Draws {
		var without [][]float64
		for _, m := range means {
			without = append(without, losses(of, total-m, groups-1))
		}
		return chance.NewDraws(losses(of, total, groups), without, weights)
	}
	variance := stat.Variance(means, nil)
	if got := draws(func(m float64) float64 { return m }); math.Abs(got.Bias) > 1e-12 {
		t.Errorf("bias %v of a mean", got.Bias)
	}
	got := draws(func(m float64) float64 { return m * m / 2 })
	testfile.Near(t, "bias of a square", got.Bias, variance/groups/2)
}

// Draws with an effect on all examples and one on single examples, both of known size. Only the first counts.
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
	got := chance.Replicated(losses)
	// The part of single examples also contains the common effect once for each example.
	if want := common * common * (1 - 1./images); math.Abs(got.Variance-want) > 5*(want+own*own/images)*math.Sqrt(2./draws) {
		t.Errorf("variance %v, want %v", got.Variance, want)
	}
	if got.DoF != draws-1 || got.Bias != 0 {
		t.Errorf("%+v", got)
	}
	if one := chance.Replicated(losses[:1]); !math.IsInf(one.Variance, 1) {
		t.Errorf("one draw gives %+v", one)
	}
	if both := got.Plus(got); both.Variance != 2*got.Variance || both.DoF != 2*got.DoF {
		t.Errorf("twice the same: %+v of %+v", both, got)
	}
}

// Intervals for other draws hold in 93 to 97 %, from three units of chance on. The losses of the draws and of the examples are normal,
// and the variances of both are estimates. The draws' is what their spread exceeds that of single examples by, at least 0.
func TestOtherDrawsCoverage(t *testing.T) {
	t.Parallel()
	trials := reliability.Figure(400, 40_000)
	rng := rand.New(rand.NewPCG(3, 0))
	for _, units := range []int{3, 4, 10} {
		for _, drawn := range []float64{0, 1, 4} { // variance of the draws, relative to that of examples
			for _, single := range []float64{0, 0.25} {
				held, dof := 0, float64(units-1)
				spread := distuv.ChiSquared{K: dof, Src: rng}
				for range trials {
					mean := rng.NormFloat64() * math.Sqrt(1+single+drawn)
					d := chance.Difference{Interval: chance.Interval{Mean: mean}, Standard: math.Sqrt(1 + single), DoF: 1e6}
					i := d.OtherDraws(chance.Draws{Variance: max(0, (drawn+single)*spread.Rand()/dof-single), DoF: dof})
					if i.Low <= 0 && 0 <= i.High {
						held++
					}
				}
				share, slack := float64(held)/float64(trials), 3.5*math.Sqrt(0.05*0.95/float64(trials))
				if share < 0.93-slack || share > 0.97+slack {
					t.Errorf("%d units, variance %v of draws, %v of single examples: holds in %.3f", units, drawn, single, share)
				}
			}
		}
	}
}

func TestDifference(t *testing.T) {
	for i, want := range readNoise(t).Difference {
		got := chance.NewDifference(want.Losses, want.Fits)
		draws := chance.Draws{Variance: want.Draws, DoF: want.DoF, Bias: want.Bias, Third: want.Third}
		other, many := got.OtherDraws(draws), got.ManyDraws(draws)
		for what, pair := range map[string][2]float64{"low": {got.Low, want.Low}, "high": {got.High, want.High}, "p": {got.P, want.P}, "other low": {other.Low, want.Other[0]},
			"other high": {other.High, want.Other[1]}, "many low": {many.Low, want.Many[0]}, "many high": {many.High, want.Many[1]}} {
			if math.Abs(pair[0]-pair[1]) > 1e-9 {
				t.Errorf("%d: %s %v, want %v", i, what, pair[0], pair[1])
			}
		}
		if other.Mean != got.Mean || math.Abs(many.Mean-got.Mean+want.Bias) > 1e-15 {
			t.Errorf("%d: centers %v and %v of %v", i, other.Mean, many.Mean, got.Mean)
		}
	}
	inf := math.Inf(1)
	if d := chance.NewDifference([]float64{0.1, 0.2}, 0).OtherDraws(chance.Draws{Variance: inf}); !math.IsInf(d.Low, -1) || !math.IsInf(d.High, 1) {
		t.Errorf("unknown draws: %+v", d)
	}
	if d := chance.NewDifference([]float64{inf, 1}, 0); d.P == d.P || d.Low == d.Low || !math.IsInf(d.Mean, 1) {
		t.Errorf("infinite: %+v", d)
	}
	if d := chance.NewDifference([]float64{0, 0}, 0); d.P != 1 || d.Low != 0 || d.High != 0 {
		t.Errorf("no difference: %+v", d)
	}
	if d := chance.NewDifference([]float64{1, 1}, 0); d.P != 0 {
		t.Errorf("a constant difference: %+v", d)
	}
	if d := chance.NewDifference([]float64{1}, 0); d.P != 1 || !math.IsInf(d.High, 1) {
		t.Errorf("one example: %+v", d)
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

// Where members matter only in pairs, the jackknife gives twice the variance, and V2 corrects it. Member g gives example i
// the probability (1 + z_gi)/2, and z_g has the mean 0 over examples. So the mean loss has no effect of single members,
// up to third order.
func TestDrawsPairs(t *testing.T) {
	const groups, times, examples, copies = 12, 300, 5, 2000
	rng := rand.New(rand.NewPCG(4, 0))
	var means []float64
	told, plain := 0.0, 0.0
	weights := slices.Repeat([]float64{1}, groups)
	for range times {
		total, z := make([]float64, examples), make([][]float64, groups)
		for g := range z {
			z[g] = make([]float64, examples)
			for i := range z[g] {
				z[g][i] = rng.Float64() - 0.5
			}
			floats.AddConst(-stat.Mean(z[g], nil), z[g])
			floats.Add(total, z[g])
		}
		// Each example has many copies, so that the part of single examples does not matter.
		loss := func(without []float64, count float64) []float64 {
			out := make([]float64, 0, copies*examples)
			for i, s := range total {
				s = -math.Log((1 + (s-without[i])/count) / 2)
				out = append(out, slices.Repeat([]float64{s}, copies)...)
			}
			return out
		}
		all := loss(make([]float64, examples), groups)
		var without [][]float64
		for g := range z {
			without = append(without, loss(z[g], groups-1))
		}
		means = append(means, stat.Mean(all, nil))
		told += chance.NewDraws(all, without, weights).Variance / times
		rest := make([]float64, groups)
		for g, l := range without {
			rest[g] = stat.Mean(l, nil)
		}
		plain += (groups - 1) * (groups - 1) * stat.Variance(rest, nil) / groups / times
	}
	// The variance of 300 means has a relative standard error of 8 %. The lower bound V2/2 lifts the estimate.
	if want := stat.Variance(means, nil); told < want/1.5 || told > 1.8*want || plain < 1.8*want {
		t.Errorf("variance %v, plain %v, want about %v", told, plain, want)
	}
}
