package ensemble_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func TestMix(t *testing.T) {
	t.Parallel()
	type shares struct {
		members []int
		weights []float64
	}
	third := 1. / 3
	for _, tc := range []struct {
		posteriors, members int
		ratio               []float64
		antithetic, alone   bool
		want                shares
		err                 string
	}{
		{posteriors: 1, members: 30, want: shares{[]int{30}, []float64{1}}},
		{posteriors: 3, members: 30, want: shares{[]int{10, 10, 10}, []float64{third, third, third}}},
		{posteriors: 3, members: 5, want: shares{[]int{2, 2, 1}, []float64{third, third, third}}},
		{posteriors: 3, members: 3, want: shares{[]int{1, 1, 1}, []float64{third, third, third}}},
		{posteriors: 2, members: 5, ratio: []float64{7, 3}, want: shares{[]int{3, 2}, []float64{0.7, 0.3}}},
		{posteriors: 1, members: 2, ratio: []float64{42}, want: shares{[]int{2}, []float64{1}}},
		// Pairs stay together, or they would not lie about one mean.
		{posteriors: 2, members: 6, antithetic: true, want: shares{[]int{4, 2}, []float64{0.5, 0.5}}},
		{posteriors: 2, members: 4, antithetic: true, want: shares{[]int{2, 2}, []float64{0.5, 0.5}}},
		{posteriors: 3, members: 8, antithetic: true, want: shares{[]int{4, 2, 2}, []float64{third, third, third}}},
		{posteriors: 1, members: 5, antithetic: true, want: shares{[]int{5}, []float64{1}}},
		{posteriors: 2, members: 7, antithetic: true, want: shares{[]int{4, 3}, []float64{0.5, 0.5}}},
		// Too few for pairs.
		{posteriors: 1, members: 1, antithetic: true, alone: true, want: shares{[]int{1}, []float64{1}}},
		{posteriors: 2, members: 3, antithetic: true, alone: true, want: shares{[]int{2, 1}, []float64{0.5, 0.5}}},
		{posteriors: 3, members: 2, err: "members: 2, want at least 3, 1 from each of 3 posteriors"},
		{posteriors: 2, members: 2, ratio: []float64{1}, err: "1 weights for 2 posteriors"},
		{posteriors: 2, members: 2, ratio: []float64{1, 0}, err: "weight 0: want a finite number above 0"},
		{posteriors: 2, members: 2, ratio: []float64{-1, -1}, err: "weight -1: "},
		{posteriors: 2, members: 2, ratio: []float64{1, math.NaN()}, err: "weight NaN: "},
		{posteriors: 2, members: 2, ratio: []float64{math.Inf(1), 1}, err: "weight +Inf: "},
		{posteriors: 2, members: 2, ratio: []float64{1e300, 1e-300}, err: "weight 1e-300: is negligible compared with the others"},
		{posteriors: 2, members: 2, ratio: []float64{1e308, 1e308}, err: "weight 1e+308: "},
	} {
		e := &ensemble.Ensemble{Sampling: ensemble.Draw{Antithetic: tc.antithetic}}
		err := e.Mix(tc.posteriors, tc.members, tc.ratio)
		if tc.err != "" {
			infertest.WantError(t, err, tc.err)
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", tc, err)
		}
		var got shares
		for _, c := range e.Components {
			got.members, got.weights = append(got.members, c.Members), append(got.weights, c.Weight)
		}
		if e.Sampling.Antithetic == tc.alone && tc.antithetic || !slices.Equal(got.members, tc.want.members) || !slices.Equal(got.weights, tc.want.weights) {
			t.Errorf("%+v, want %+v", got, tc.want)
		}
	}
}

func mixed(posteriors, members int, ratio []float64, antithetic bool) ([]ensemble.Component, error) {
	e := &ensemble.Ensemble{Sampling: ensemble.Draw{Antithetic: antithetic}}
	err := e.Mix(posteriors, members, ratio)
	return e.Components, err
}

// mixture makes an ensemble of the networks, with statistics, and reads it back
// from its file.
func mixture(t *testing.T, e *infer.Engine, networks []*infer.Network, components []ensemble.Component, s ensemble.Draw, bn batchnorm.Training) *ensemble.Ensemble {
	t.Helper()
	mix := &ensemble.Ensemble{Path: filepath.Join(t.TempDir(), "e.safetensors"), Components: components, Sampling: s}
	err := mix.EachMember(t.Context(), nil, networks, 0, func(m ensemble.Member) error {
		fresh, err := batchnorm.Recompute(t.Context(), infer.Run{Engine: e}, m.Network, m.Parameters, bn)
		c := &mix.Components[m.Component]
		c.Posterior = ensemble.Reference{Path: m.Network.Posterior.Path, ID: m.Network.Posterior.ID}
		c.Statistics = append(c.Statistics, fresh.Statistics)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, mix)
	mix, err = ensemble.Open(mix.Path)
	if err != nil {
		t.Fatal(err)
	}
	return mix
}

// score averages the members of an ensemble.
func score(t *testing.T, e *infer.Engine, mix *ensemble.Ensemble, networks []*infer.Network, data dataset.Dataset) *infer.Sums {
	t.Helper()
	s, err := ensemble.NewScorer(t.Context(), e, ensemble.Scoring{Ensemble: mix, Networks: networks, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	sums := &infer.Sums{}
	err = s.Run(t.Context(), 0, nil, func(c *infer.Chunk) error {
		sums.Init("", data.Len(), c.Task)
		copy(sums.Outcome[c.First*c.Task.About().Width:], c.Outcome)
		copy(sums.Entropy[c.First:], c.Entropy)
		sums.Members, sums.Weight = c.Sums.Members, c.Weight
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// Five members of two posteriors, weighed 0.7 to 0.3: the average of the
// averages of each posterior's own members, drawn by the numbers that they have
// in the mixture. The two differ by the order of float64 sums alone.
func TestMixture(t *testing.T) {
	t.Parallel()
	e, networks := engine(t), infertest.Halves(t)
	bn, val := infertest.Training(t), infertest.Digits(t, "val.npz")
	bn.Order.Limit = 200
	components, err := mixed(2, 5, []float64{0.7, 0.3}, false)
	if err != nil {
		t.Fatal(err)
	}
	sampling := ensemble.Draw{Seed: 4, Scale: 0.5, Covariance: swag.LowRankPlusDiagonal.String()}
	got := score(t, e, mixture(t, e, networks, components, sampling, bn), networks, val)

	var mean, entropy [2][]float64
	for i, numbers := range [][]int{{0, 1, 2}, {3, 4}} {
		alone := &infer.Sums{}
		for _, k := range numbers {
			s, err := swag.NewSampler(networks[i].Posterior, swag.SampleOptions{Seed: 4, Scale: 0.5})
			if err != nil {
				t.Fatal(err)
			}
			parameters := make(weights.Slice, networks[i].Posterior.Len())
			if err := s.Draw(t.Context(), [][]float32{parameters}, []int{k}); err != nil {
				t.Fatal(err)
			}
			fresh, err := batchnorm.Recompute(t.Context(), infer.Run{Engine: e}, networks[i], parameters, bn)
			if err != nil {
				t.Fatal(err)
			}
			model, err := networks[i].Model("member", parameters, weights.Slice(fresh.Statistics))
			if err != nil {
				t.Fatal(err)
			}
			// Weights that are all the same do not matter.
			model.Weight = 2.5
			if err := (infer.Run{Engine: e}).Predict(t.Context(), model, val, alone); err != nil {
				t.Fatal(err)
			}
		}
		mean[i], entropy[i] = alone.Mean(), alone.ExpectedEntropy()
	}
	if got.Members != 5 || len(got.Mean()) != 10*val.Len() {
		t.Fatalf("%d members, %d probabilities", got.Members, len(got.Mean()))
	}
	separate := 0.0
	for i, p := range got.Mean() {
		if want := 0.7*mean[0][i] + 0.3*mean[1][i]; math.Abs(p-want) > 1e-12 {
			t.Fatalf("probability %d: %v, want %v", i, p, want)
		}
		separate = max(separate, math.Abs(mean[0][i]-mean[1][i]))
	}
	for i, h := range got.ExpectedEntropy() {
		if want := 0.7*entropy[0][i] + 0.3*entropy[1][i]; math.Abs(h-want) > 1e-12 {
			t.Fatalf("expected entropy %d: %v, want %v", i, h, want)
		}
	}
	if separate < 0.1 { // or weights would not matter
		t.Errorf("the posteriors' probabilities differ by %v at most", separate)
	}
}

// The mixture of two SWA networks against PyTorch's in float64:
// testdata/make_mixture.py. There are no random numbers in it, so the two differ
// by float32 arithmetic in the networks alone, and tolerances are those of
// the methods in package baseline: at most one of 5,000 images may change sides.
func TestGoldenMixture(t *testing.T) {
	t.Parallel()
	var want struct {
		Weights                   []float64
		Accuracy, NLL, Brier, ECE float64
		Predictive, Expected      float64 // entropies, means over the images
		MutualInformation         float64 `json:"mutual_information"` // likewise
		LargestMutualInformation  float64 `json:"largest_mutual_information"`
	}
	testfile.JSON(t, filepath.Join("testdata", "mixture.json"), &want)
	e, networks, test := engine(t), infertest.Halves(t), infertest.Digits(t, "test.npz")
	components, err := mixed(2, 2, want.Weights, false)
	if err != nil {
		t.Fatal(err)
	}
	sums := score(t, e, mixture(t, e, networks, components, ensemble.Draw{Covariance: swag.Diagonal.String()}, infertest.Training(t)), networks, test)
	p, err := calibrate.NewPredictions(sums.Mean(), sums.Task.About().Width, test.Labels().Classes)
	if err != nil {
		t.Fatal(err)
	}
	m := calibrate.Evaluate(p, calibrate.EvaluateOptions{})
	var predictive, expected, mutual, largest float64 // the first three are means
	n := float64(test.Len())
	for i := range test.Len() {
		r := describe(sums, i, &ensemble.Ensemble{}, -1)
		predictive += r.PredictiveEntropy / n
		expected += r.ExpectedEntropy / n
		mutual += r.MutualInformation / n
		largest = max(largest, r.MutualInformation)
	}
	for _, s := range []struct {
		name           string
		got, want, tol float64
	}{
		{"accuracy", m.Accuracy, want.Accuracy, 1.0 / 5000},
		{"NLL", m.NLL, want.NLL, 1e-4},
		{"Brier", m.Brier, want.Brier, 1e-4},
		{"ECE", m.ECE, want.ECE, 2e-4},
		{"predictive entropy", predictive, want.Predictive, 1e-4},
		{"expected entropy", expected, want.Expected, 1e-4},
		{"mutual information", mutual, want.MutualInformation, 1e-4},
		{"largest mutual information", largest, want.LargestMutualInformation, 1e-3},
	} {
		t.Logf("%-26s %.6f, PyTorch %.6f", s.name, s.got, s.want)
		if !(math.Abs(s.got-s.want) <= s.tol) {
			t.Errorf("%s: %v, want %v ± %v", s.name, s.got, s.want, s.tol)
		}
	}
}

// Antithetic members lie about the mean of their own posterior, two by two: a
// pair's sum is twice the mean, up to the rounding of two float32 weights.
func TestMixtureAntithetic(t *testing.T) {
	t.Parallel()
	networks := infertest.Halves(t)
	components, err := mixed(2, 6, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	mix := &ensemble.Ensemble{Components: components, Sampling: ensemble.Draw{Seed: 1, Scale: 0.5, Covariance: "swag", Antithetic: true}}
	var even []float32
	err = mix.EachMember(t.Context(), nil, networks, 0, func(m ensemble.Member) error {
		if m.Number%2 == 0 {
			even = slices.Clone(m.Parameters.(weights.Slice))
			return nil
		}
		mean := make([]float64, len(even))
		m.Network.Posterior.Mean(mean, 0)
		moved := 0
		for i, w := range m.Parameters.(weights.Slice) {
			a, b := float64(even[i]), float64(w)
			if math.Abs(a+b-2*mean[i]) > 2e-7*(math.Abs(a)+math.Abs(b)) {
				t.Fatalf("member %d, weight %d: %v and %v about %v", m.Number, i, a, b, mean[i])
			}
			if a != b {
				moved++
			}
		}
		if moved < len(mean)/2 {
			t.Errorf("member %d differs from its twin in %d weights", m.Number, moved)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Moved posteriors are distinguished by their content, not by their order, and a
// file that is none of them is not ignored.
func TestOpenPosterior(t *testing.T) {
	t.Parallel()
	networks := infertest.Halves(t)
	dir := t.TempDir()
	e := &ensemble.Ensemble{Path: filepath.Join(dir, "e.safetensors")}
	var moved []string
	for _, n := range networks {
		p := n.Posterior
		moved = append([]string{p.Path}, moved...) // backwards
		e.Components = append(e.Components, ensemble.Component{Posterior: ensemble.Reference{Path: filepath.Base(p.Path), ID: p.ID}, Members: 1,
			Statistics: [][]float32{make([]float32, p.Layout.Len(weights.Statistic))}})
	}
	for i := range networks {
		p, err := e.OpenPosterior(i, moved)
		if err != nil {
			t.Fatal(err)
		}
		if p.ID != e.Components[i].Posterior.ID {
			t.Errorf("component %d: %s", i, p.Path)
		}
		p.Close()
		_, err = e.OpenPosterior(i, nil)
		infertest.WantError(t, err, filepath.Join(dir, e.Components[i].Posterior.Path))
	}
	other := infertest.WithTheta0(t)
	_, err := e.OpenPosterior(0, append(moved, other.Path))
	infertest.WantError(t, err, other.Path+": its id is "+other.ID)
	// In the place of one component lies another's posterior.
	e.Components[1].Posterior.Path = moved[1]
	_, err = e.OpenPosterior(1, nil)
	infertest.WantError(t, err, "was drawn from "+e.Components[1].Posterior.ID)
	e.Components[1].Statistics[0] = e.Components[1].Statistics[0][1:]
	_, err = e.OpenPosterior(1, moved)
	infertest.WantError(t, err, "batch-norm statistics for each member of "+moved[0])
}
