package sweep

import (
	"math"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// digits is the task of the made-up results below.
func digits(t *testing.T) task.Task {
	t.Helper()
	k, err := task.Of("", task.OutputSpec{Output: "logits", Count: 10})
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
	standard := Setting{Scale: 0.5, Rank: 20}
	other := Setting{Scale: 0.25, Rank: 20}
	stale := standard
	stale.Stale = true
	result := func(c Choice, n calibrate.MonteCarloError) *Result {
		c.Candidates = 3
		return &Result{Sweep: &Sweep{Test: images{n: 1000}, Validation: images{n: 200}}, task: digits(t), Choice: c, Error: n, Points: []Point{
			{}, {Setting: standard, Default: true, Evaluation: scores(0.1)}, {Setting: other}, {Setting: stale, Evaluation: scores(1.5)}}}
	}
	enough := calibrate.MonteCarloError{Members: 30, Standard: 0.003, Excess: 0.004, Tolerance: 0.006, Enough: 22}
	few := calibrate.MonteCarloError{Members: 30, Standard: 0.003, Excess: 0.004, Tolerance: 0.001, Enough: 400}
	for _, c := range []struct {
		r    *Result
		want []string
	}{
		{result(Choice{Setting: other, Halves: [2]Setting{other, other}, Gain: calibrate.Interval{Mean: -0.01, Low: -0.02, High: -0.001}, Share: 0.9, DefaultShare: 0.05}, enough), []string{
			"SWAG, scale 0.25, rank 20 is better than the paper's default, SWAG, scale 0.5, rank 20: NLL −0.0100 [−0.0200, −0.0010] on images that took no part in the choice.",
			"Chosen on 1,000 test images: it is the best in 90 % of bootstrap resamples of them, the default in 5 %.",
			"It is made with: swagwrap sample --method swag --scale 0.25",
			"Both halves of the test images chose the same. A choice on data of its own is sounder: --val FILE.",
			"30 members are enough, about 22 would do: infinitely many would change the NLL by about 0.0050, and 0.0060 would still be small.",
			"Without recomputed batch-norm statistics the NLL is 1.5000 in place of 0.1000."}},
		{result(Choice{Setting: other, Halves: [2]Setting{other, standard}, Gain: calibrate.Interval{Mean: -0.01, Low: -0.02, High: 0.001}}, few), []string{
			"No setting is better than the paper's default, SWAG, scale 0.5, rank 20, by more than chance. The lowest NLL of 3 settings has SWAG, scale 0.25, rank 20, with a difference of NLL −0.0100 [−0.0200, +0.0010] on images that took no part in the choice.",
			"Chosen on 1,000 test images",
			"The halves of the test images disagree: SWAG, scale 0.25, rank 20, and SWAG, scale 0.5, rank 20.",
			"30 members are not quite enough, about 400 would be"}},
		{result(Choice{Setting: standard, Validated: true, Share: 0.4}, calibrate.MonteCarloError{Members: 1}), []string{
			"The paper's default, SWAG, scale 0.5, rank 20, has the lowest NLL of 3 settings.",
			"Chosen on 200 validation images: it is the best in 40 % of bootstrap resamples of them.",
			"1 member is too few to tell how many are needed."}},
	} {
		got := c.r.Verdict()
		for i, want := range c.want {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Errorf("line %d of %q, want %q", i, got, want)
			}
		}
	}
}

func TestSettingFlags(t *testing.T) {
	for want, s := range map[string]Setting{
		"--method swag --scale 0.25 --rank 5": {Scale: 0.25, Rank: 5},
		"--method swag --scale 1":             {Scale: 1, Rank: 20},
		"--method swag-diag --scale 2":        {Covariance: swag.Diagonal, Scale: 2},
		"--method swa":                        {},
	} {
		r := &Result{Sweep: &Sweep{Seed: 1}, Points: []Point{{}, {Setting: Setting{Scale: 0.5, Rank: 20}}}, Error: calibrate.MonteCarloError{Members: 30}, Choice: Choice{Setting: s}}
		if got := r.flags(); got != want {
			t.Errorf("%v: %q, want %q", s, got, want)
		}
	}
}

// The curve of scales has the points of all columns in order, with the intervals
// of their differences about the default's NLL.
func TestScaleCurve(t *testing.T) {
	d := Point{Setting: Setting{Scale: 0.5, Rank: 20}, Default: true, Evaluation: scores(0.3)}
	low := Point{Setting: Setting{Scale: 0.25, Rank: 20}, Evaluation: scores(0.2), Differences: map[string]calibrate.Interval{"nll": {Mean: -0.1, Low: -0.12, High: -0.07}}}
	diagonal := Point{Setting: Setting{Scale: 1, Covariance: swag.Diagonal}, Evaluation: scores(0.4)}
	r := &Result{Sweep: &Sweep{AllTest: true}, task: digits(t), Points: []Point{{Evaluation: scores(0.5)}, d, low, diagonal}}
	c := r.scaleCurve()
	s := c.Series[0]
	if len(c.Series) != 2 || s.X[0] != 0.25 || s.Y[0] != 0.2 || s.X[1] != 0.5 || math.Abs(s.Lower[0]-0.18) > 1e-12 || math.Abs(s.Upper[0]-0.23) > 1e-12 {
		t.Errorf("curve %+v", c)
	}
	// Test scores of all settings are not to be looked at.
	if r.AllTest = false; len(r.scaleCurve().Series) > 0 || len(r.rankCurve().Series) > 0 {
		t.Errorf("curves %+v, %+v", r.scaleCurve(), r.rankCurve())
	}
}

// Stale statistics are told of by validation data where there is some.
func TestStaleVerdict(t *testing.T) {
	d := Point{Setting: Setting{Scale: 0.5, Rank: 20}, Default: true, Evaluation: scores(0.3), Validation: scores(0.2)}
	stale := Point{Setting: Setting{Scale: 0.5, Rank: 20, Stale: true}, Evaluation: scores(3), Validation: scores(2)}
	r := &Result{Sweep: &Sweep{}, task: digits(t), Points: []Point{{Evaluation: scores(0.5)}, d, stale}}
	if got, want := r.staleVerdict(), "Without recomputed batch-norm statistics the NLL of the validation images is 2.0000 in place of 0.2000."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// images is data of which only the number is known.
type images struct {
	dataset.Dataset
	n int
}

func (d images) Len() int { return d.n }
