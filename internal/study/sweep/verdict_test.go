package sweep

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// digits is the task of the made-up results below.
func digits(t *testing.T) task.Task {
	t.Helper()
	k, err := task.New("", task.OutputSpec{Output: "logits", Count: 10})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// scores is an evaluation of which only the NLL is known.
func scores(nll float64) *task.Evaluation {
	return &task.Evaluation{Scores: []task.Score{{Metric: task.Metric{Key: "nll"}, Value: nll}}, Losses: []task.Loss{{Key: "nll", Name: "NLL"}}}
}

func TestSweepVerdict(t *testing.T) {
	t.Parallel()
	d := Setting{Scale: 0.5, Rank: 20}
	other := Setting{Scale: 0.25, Rank: 20}
	stale := d
	stale.Stale = true
	result := func(c Choice, n chance.MonteCarloError) *Result {
		c.Candidates, c.Examples, c.Temperature = 3, 1000, 1.25
		return &Result{Sweep: &Sweep{Test: images{n: 1000}, Validation: images{n: 200}}, task: digits(t), by: digits(t).Calibrators()[0], Choice: c, Error: n, Points: []Point{
			{judged: losses{own: []float64{1, 1}}}, {Setting: d, Default: true, Members: n.Members, Evaluation: scores(0.1), judged: losses{own: []float64{1, 1}}}, {Setting: other}, {Setting: stale, Evaluation: scores(1.5)}}}
	}
	enough := chance.MonteCarloError{Members: 30, Standard: 0.003, Excess: 0.004, Tolerance: 0.006, Enough: 22}
	few := chance.MonteCarloError{Members: 30, Standard: 0.003, Excess: 0.004, Tolerance: 0.001, Enough: 400}
	overSWA := chance.Interval{Mean: -0.002, Low: -0.003, High: 0.001}
	for _, c := range []struct {
		r    *Result
		want []string
	}{
		{result(Choice{Setting: other, Halves: [2]Setting{other, other}, Gain: chance.Interval{Mean: -0.01, Low: -0.02, High: -0.001}, OverSWA: chance.Interval{Mean: -0.002, Low: -0.003, High: -0.001}, Share: 0.9, DefaultShare: 0.05}, enough), []string{
			"Deploy SWAG, scale 0.25, rank 20: its NLL differs by −0.0020 [−0.0030, −0.0010] from SWA-Temp, −0.0100 [−0.0200, −0.0010] from the default.",
			"SWAG, scale 0.25, rank 20 at T = 1.25 has the lowest NLL of 3 settings on 1,000 labelled examples. It is the best in 90 % of bootstrap resamples.",
			"Both halves of the test images chose the same. Better: Val FILE.",
			"30 members are enough: about 22 would do.",
			"Without recomputed batch-norm statistics the NLL is 1.5000 instead of 0.1000."}},
		{result(Choice{Setting: other, Halves: [2]Setting{other, d}, Gain: chance.Interval{Mean: -0.01, Low: -0.02, High: 0.001}, OverSWA: overSWA, Untried: []Setting{{Scale: 0.25, Rank: 5}}}, few), []string{
			"Deploy SWA-Temp. Nothing is better by more than chance: the lowest NLL differs by −0.0020 [−0.0030, +0.0010] from SWA-Temp, −0.0100 [−0.0200, +0.0010] from the default.",
			"SWAG, scale 0.25, rank 20 at T = 1.25 has the lowest NLL of 3 settings on 1,000 labelled examples. It is the best in 0 % of bootstrap resamples. That is the edge of what was tried: SWAG, scale 0.25, rank 5 was not.",
			"The halves of the test images disagree: SWAG, scale 0.25, rank 20, and SWAG, scale 0.5, rank 20.",
			"30 members are too few: about 400 would be enough."}},
		{result(Choice{Setting: other, Validated: true, Few: true, Gain: chance.Interval{Mean: -0.01, Low: -0.02, High: -0.001}}, chance.MonteCarloError{Members: 1}), []string{
			"Deploy SWA-Temp. Fewer than 10 members cannot show whether a setting is better. Use Members 30.",
			"SWAG, scale 0.25, rank 20 at T = 1.25 has the lowest NLL",
			"The number of members that is enough cannot be estimated from 1 member."}},
		{result(Choice{Setting: d, Validated: true, OverSWA: overSWA}, enough), []string{"Deploy SWA-Temp. Nothing is better by more than chance: the lowest NLL differs by −0.0020 [−0.0030, +0.0010] from SWA-Temp."}},
		{result(Choice{Validated: true, Gain: overSWA}, enough), []string{"Deploy SWA-Temp: its NLL differs by −0.0020 [−0.0030, +0.0010] from the default."}},
	} {
		got := (shown{c.r}).verdict()
		for i, want := range c.want {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Errorf("line %d of %q, want %q", i, got, want)
			}
		}
		if len(got) > 6 {
			t.Errorf("%d lines: %q", len(got), got)
		}
	}
}

// The next steps make the ensemble of the choice if it is better than SWA-Temp, and than the default if that is better
// than SWA-Temp; else of the default if that is better; SWA-Temp otherwise.
func TestNext(t *testing.T) {
	t.Parallel()
	chosen := Setting{Scale: 0.25, Rank: 5}
	of := func(loss float64) losses { return losses{own: []float64{loss, loss + 0.01}} }
	r := &Result{Sweep: &Sweep{Seed: 7, Network: &infer.Network{Graph: &infer.Graph{}, Posterior: &swag.Posterior{Path: "my posterior.safetensors", Options: swag.Options{Columns: 20}}}},
		Points: []Point{{Temperature: 2, judged: of(1)}, {Setting: Setting{Scale: 0.5, Rank: 20}, Members: 20, Temperature: math.NaN()}, {Setting: chosen, Members: 20, Temperature: 1.25}},
		Choice: Choice{Setting: chosen}}
	swa := *ensemble.FromSampling(swag.SampleOptions{Seed: 7}, 0)
	swa.Temperature = 2
	standard := *ensemble.FromSampling(swag.SampleOptions{Seed: 7, Scale: 0.5}, 20)
	tuned := *ensemble.FromSampling(swag.SampleOptions{Seed: 7, Scale: 0.25, Rank: 5}, 20)
	tuned.Temperature = 1.25
	for _, c := range []struct {
		standard, gain, overSWA float64
		few                     bool
		want                    ensemble.Settings
	}{
		{0.9, -1, -1, false, tuned},
		{0.9, 1, -1, false, standard},
		{1.1, 1, -1, false, tuned},
		{1.1, -1, 1, false, swa},
		{0.9, -1, -1, true, swa},
	} {
		r.Points[1].judged, r.Choice.Few = of(c.standard), c.few
		r.Choice.Gain.High, r.Choice.OverSWA.High = c.gain, c.overSWA
		want := []study.Step{
			study.Sample{Output: "ensemble.safetensors", Members: c.want, Posteriors: []string{"my posterior.safetensors"}},
			study.Export{Output: "ensemble.onnx", Ensemble: "ensemble.safetensors"},
		}
		if got := r.Next(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %+v, want %+v", c, got, want)
		}
	}
}

// The curve of scales has the points of all columns in order, with the intervals
// of their differences about the default's NLL.
func TestScaleCurve(t *testing.T) {
	d := Point{Setting: Setting{Scale: 0.5, Rank: 20}, Default: true, Evaluation: scores(0.3)}
	low := Point{Setting: Setting{Scale: 0.25, Rank: 20}, Evaluation: scores(0.2), Difference: chance.Interval{Mean: -0.1, Low: -0.12, High: -0.07}}
	diagonal := Point{Setting: Setting{Scale: 1, Covariance: swag.Diagonal}, Evaluation: scores(0.4)}
	r := &Result{Sweep: &Sweep{AllTest: true}, task: digits(t), by: digits(t).Calibrators()[0], Points: []Point{{Evaluation: scores(0.5)}, d, low, diagonal}}
	c := (shown{r}).scaleCurve()
	s := c.Series[0]
	if len(c.Series) != 2 || s.X[0] != 0.25 || s.Y[0] != 0.2 || s.X[1] != 0.5 || math.Abs(s.Lower[0]-0.18) > 1e-12 || math.Abs(s.Upper[0]-0.23) > 1e-12 {
		t.Errorf("curve %+v", c)
	}
	// Test scores of all settings are not to be looked at.
	if r.AllTest = false; len((shown{r}).scaleCurve().Series) > 0 || len((shown{r}).rankCurve().Series) > 0 {
		t.Errorf("curves %+v, %+v", (shown{r}).scaleCurve(), (shown{r}).rankCurve())
	}
}

// Stale statistics are told of by validation data where there is some.
func TestStaleVerdict(t *testing.T) {
	d := Point{Setting: Setting{Scale: 0.5, Rank: 20}, Default: true, Evaluation: scores(0.3), Validation: scores(0.2)}
	stale := Point{Setting: Setting{Scale: 0.5, Rank: 20, Stale: true}, Evaluation: scores(3), Validation: scores(2)}
	r := &Result{Sweep: &Sweep{Test: images{}}, task: digits(t), Points: []Point{{Evaluation: scores(0.5)}, d, stale}}
	if got, want := (shown{r}).staleVerdict(), "Without recomputed batch-norm statistics the NLL is 2.0000 instead of 0.2000."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// images is data of which only the number is known.
type images struct {
	dataset.Dataset
	n int
}

func (d images) Len() int       { return d.n }
func (d images) Shape() []int64 { return []int64{1, 28, 28} }
