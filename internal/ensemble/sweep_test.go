package ensemble

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// quickSweep is a sweep over a few images of the fixture.
func quickSweep(t *testing.T) *Sweep {
	t.Helper()
	return &Sweep{Network: network(t, fit(t, false)), BatchNorm: BatchNormData{Data: data(t, "train.npz"), Order: dataset.Order{Limit: 256}},
		Test: Subset(data(t, "test.npz"), dataset.Order{Limit: 300}), Validation: Subset(data(t, "val.npz"), dataset.Order{Limit: 200}),
		Members: 4, Seed: 3, Scales: []float64{0, 0.25}, Ranks: []int{0, 5}}
}

// plainAverage is the plain way to average members: each is drawn, has its statistics
// recomputed or not, and predicts.
func plainAverage(t *testing.T, e *Engine, s *Sweep, opts swag.SampleOptions, members int, stale bool) *Sums {
	t.Helper()
	sums := &Sums{}
	err := EachMember(t.Context(), s.Network.Posterior, opts, 0, members, func(k int, parameters weights.Vector) error {
		statistics := s.Network.Posterior.Statistics
		if !stale {
			fresh, err := e.Recompute(t.Context(), s.Network, parameters, s.BatchNorm)
			if err != nil {
				return err
			}
			statistics = fresh.Statistics
		}
		model, err := s.Network.Model(parameters, statistics)
		if err != nil {
			return err
		}
		return e.Predict(t.Context(), fmt.Sprint(k), model, s.Test, 1, sums)
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// Every point of a sweep has the scores of a plain average of the same members,
// bit for bit: the default is what compare calls SWAG, the scale 0 is SWA.
func TestSweep(t *testing.T) {
	s, e := quickSweep(t), &Engine{Runtime: openRuntime(t)}
	seen := int64(0)
	counting := &Engine{Runtime: e.Runtime, Workers: 1, Progress: func(images int) { seen += int64(images) }}
	r, err := s.Run(t.Context(), counting)
	if err != nil {
		t.Fatal(err)
	}
	if want := s.Images(s.Members); seen != want {
		t.Errorf("%d images went through networks, %d were announced", seen, want)
	}
	want := map[string]struct {
		opts    swag.SampleOptions
		members int
		stale   bool
	}{
		"SWA":                                {swag.SampleOptions{}, 1, false},
		"SWAG, scale 0.5, rank 20":           {swag.SampleOptions{Seed: 3, Scale: 0.5}, 4, false},
		"SWAG, scale 0.25, rank 20":          {swag.SampleOptions{Seed: 3, Scale: 0.25}, 4, false},
		"SWAG, scale 0.5, rank 5":            {swag.SampleOptions{Seed: 3, Scale: 0.5, Rank: 5}, 4, false},
		"SWAG-Diag, scale 0.5":               {swag.SampleOptions{Seed: 3, Scale: 0.5, Covariance: swag.Diagonal}, 4, false},
		"SWAG-Diag, scale 0.25":              {swag.SampleOptions{Seed: 3, Scale: 0.25, Covariance: swag.Diagonal}, 4, false},
		"SWA, stale BN":                      {swag.SampleOptions{}, 1, true},
		"SWAG, scale 0.5, rank 20, stale BN": {swag.SampleOptions{Seed: 3, Scale: 0.5}, 4, true},
	}
	if len(r.Points) != len(want) || r.Points[0].String() != "SWA" || !r.Default().Default || r.Default().Setting != s.Default() {
		t.Fatalf("points %v, the default is %v", r.Points, r.Default())
	}
	for _, p := range r.Points {
		w, ok := want[p.String()]
		if !ok {
			t.Errorf("%v was not asked for", p)
			continue
		}
		sums := plainAverage(t, e, s, w.opts, w.members, w.stale)
		predictions, err := calibrate.NewPredictions(sums.Mean(), sums.Classes, s.Test.Labels())
		if err != nil {
			t.Fatal(err)
		}
		if m := calibrate.Evaluate(predictions, calibrate.EvaluateOptions{}); p.NLL != m.NLL || p.Accuracy != m.Accuracy || p.ECE != m.ECE || p.Brier != m.Brier || p.Members != w.members {
			t.Errorf("%v: %+v, want %+v", p, p.Scores, m)
		}
		if d := p.NLLDifference.Mean; math.Abs(d-(p.NLL-r.Default().NLL)) > 1e-12 {
			t.Errorf("%v: difference %v, want %v", p, d, p.NLL-r.Default().NLL)
		}
		if d := p.AccuracyDifference.Mean; math.Abs(d-(p.Accuracy-r.Default().Accuracy)) > 1e-12 {
			t.Errorf("%v: accuracy differs by %v", p, d)
		}
	}
	checkCurve(t, s, r, e)
}

// checkCurve: the curve begins with the first member and ends with the average of
// all, in whatever order they come.
func checkCurve(t *testing.T, s *Sweep, r *SweepResult, e *Engine) {
	t.Helper()
	last := r.Curve[len(r.Curve)-1]
	if len(r.Curve) != 4 || last.Members != 4 || last.NLL != r.Default().NLL || last.ECE != r.Default().ECE || last.Accuracy != r.Default().Accuracy {
		t.Errorf("the curve ends in %+v, want %+v", last, r.Default())
	}
	for _, v := range []float64{last.AnyOrder.Mean, last.AnyOrder.Low, last.AnyOrder.High} {
		if math.Abs(v-last.NLL) > 1e-12 {
			t.Errorf("all members in another order have the NLL %v, want %v", v, last.NLL)
		}
	}
	first := plainAverage(t, e, s, swag.SampleOptions{Seed: 3, Scale: 0.5}, 1, false)
	predictions, err := calibrate.NewPredictions(first.Mean(), first.Classes, s.Test.Labels())
	if err != nil {
		t.Fatal(err)
	}
	if want := calibrate.NegLogLikelihood(predictions); r.Curve[0].NLL != want {
		t.Errorf("the first member has the NLL %v, want %v", r.Curve[0].NLL, want)
	}
	// −log is convex: fewer members are worse in the mean over choices.
	for m := 1; m < 4; m++ {
		if r.Curve[m].AnyOrder.Mean > r.Curve[m-1].AnyOrder.Mean {
			t.Errorf("%d members are worse than %d: %v", m+1, m, r.Curve)
		}
	}
}

func TestSweepSettings(t *testing.T) {
	s := &Sweep{Network: network(t, fit(t, false)), Scales: []float64{0, 0.5, 1}, Ranks: []int{0, 5, 20}}
	names := func() (out []string) {
		for _, set := range s.Settings() {
			out = append(out, set.String())
		}
		return out
	}
	slices := []string{"SWA", "SWAG, scale 0.5, rank 20", "SWAG, scale 1, rank 20", "SWAG-Diag, scale 0.5", "SWAG-Diag, scale 1",
		"SWAG, scale 0.5, rank 5", "SWA, stale BN", "SWAG, scale 0.5, rank 20, stale BN"}
	if got := names(); fmt.Sprint(got) != fmt.Sprint(slices) {
		t.Errorf("slices %q, want %q", got, slices)
	}
	s.Grid = true
	// SWA, and two scales with the ranks 20, 0 and 5; all with statistics of both kinds.
	if got := names(); len(got) != 2*(1+2*3) {
		t.Errorf("grid %q", got)
	}
}

// The number of members stops where it is enough, and all settings have it.
func TestSweepAuto(t *testing.T) {
	s := quickSweep(t)
	s.Members, s.Tolerance, s.Validation, s.Scales, s.Ranks = 0, 0.05, nil, []float64{0.25}, nil
	resized := int64(0)
	s.Resize = func(images int64) { resized = images }
	r, err := s.Run(t.Context(), &Engine{Runtime: openRuntime(t)})
	if err != nil {
		t.Fatal(err)
	}
	n := r.Members
	if n.Members < calibrate.MinMonteCarlo || n.Members > 30 || n.Enough > n.Members || n.Change() > 0.05 {
		t.Errorf("stopped at %+v", n)
	}
	for _, p := range r.Points {
		if p.Members != n.Members && !p.SWA() {
			t.Errorf("%v has %d members, want %d", p, p.Members, n.Members)
		}
	}
	if resized != s.Images(n.Members) {
		t.Errorf("%d images announced, want %d", resized, s.Images(n.Members))
	}
}

// Stale statistics are not there to be chosen, and what was is told by its setting,
// not by its number among the others.
func TestChoice(t *testing.T) {
	losses := [][]float64{{3, 3, 3, 3}, {2, 2, 2, 2}, {0, 0, 0, 0}, {1, 1, 1, 1}}
	r := &SweepResult{}
	for i, set := range []Setting{{}, {Scale: 1}, {Stale: true}, {Scale: 4}} {
		r.Points = append(r.Points, SweepPoint{Setting: set, Scores: Scores{losses: losses[i]}})
	}
	for _, validated := range []bool{true, false} {
		r.choose(losses, validated, 1)
		c, chosen := r.Choice, Setting{Scale: 4}
		if c.Setting != chosen || c.Candidates != 3 || c.Validated != validated || !c.Better() || c.Gain.Mean != -1 || c.Share != 1 || c.DefaultShare != 0 {
			t.Errorf("validated %v: %+v", validated, c)
		}
		if !validated && c.Halves != [2]Setting{chosen, chosen} {
			t.Errorf("halves chose %v", c.Halves)
		}
	}
}

func TestSubset(t *testing.T) {
	d := data(t, "test.npz")
	if Subset(d, dataset.Order{}) != d || Subset(d, dataset.Order{Limit: d.Len()}) != d {
		t.Error("all examples in order are the dataset itself")
	}
	o := dataset.Order{Shuffle: true, Seed: 4, Limit: 7}
	s := Subset(d, o)
	if s.Len() != 7 || len(s.Labels()) != 7 {
		t.Fatalf("%d examples, %d labels", s.Len(), len(s.Labels()))
	}
	a, b := make([]float32, 784), make([]float32, 784)
	for k, i := range o.Indices(d.Len()) {
		if err := s.Read(a, k); err != nil {
			t.Fatal(err)
		}
		if err := d.Read(b, i); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a, b) || s.Labels()[k] != d.Labels()[i] || s.Name(k) != d.Name(i) {
			t.Errorf("example %d is not %d", k, i)
		}
	}
}
