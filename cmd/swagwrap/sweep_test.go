package main

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/swag"
)

// runJSON runs the program and decodes what it prints.
func runJSON(t *testing.T, to any, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append([]string{"swagwrap"}, args...), &stdout, &stderr); code != exitOK {
		t.Fatalf("%v: exit code %d: %s", args, code, &stderr)
	}
	if to == nil {
		return
	}
	if err := json.Unmarshal(stdout.Bytes(), to); err != nil {
		t.Fatal(err)
	}
}

// The default point of a sweep is what compare calls SWAG, the scale 0 what it
// calls SWA, the scale 1 of the diagonal what it calls SWAG-Diag: number for
// number.
func TestSweepIsCompare(t *testing.T) {
	const mnist = "../../fixtures/mnist"
	checkpoints, err := filepath.Glob(filepath.Join(mnist, "checkpoints", "epoch-2[4-9].onnx"))
	if err != nil || len(checkpoints) != 6 {
		t.Fatal(checkpoints, err)
	}
	posterior := filepath.Join(t.TempDir(), "p.safetensors")
	runJSON(t, nil, append([]string{"fit", "-q", "-o", posterior}, checkpoints...)...)
	common := []string{"-q", "-n", "3", "--json", "--bn-data", filepath.Join(mnist, "train.npz"), "--mean", "0.1307", "--std", "0.3081"}
	data := []string{posterior, filepath.Join(mnist, "val.npz")}
	var compared struct {
		Methods []struct {
			Method                    string
			Accuracy, NLL, ECE, Brier float64
		}
	}
	var swept struct {
		Settings []struct {
			Setting                   string
			Accuracy, NLL, ECE, Brier float64
		}
	}
	runJSON(t, &compared, append(append([]string{"compare", "--methods", "swa,swag-diag,swag"}, common...), data...)...)
	runJSON(t, &swept, append(append([]string{"sweep", "--scales", "1", "--ranks", "0"}, common...), data...)...)
	found := 0
	for _, m := range compared.Methods {
		setting := map[string]string{"SWA": "SWA", "SWAG-Diag": "SWAG-Diag, scale 1", "SWAG": "SWAG, scale 0.5, rank 6"}[m.Method]
		for _, s := range swept.Settings {
			if s.Setting == setting {
				found++
				if s.NLL != m.NLL || s.Accuracy != m.Accuracy || s.ECE != m.ECE || s.Brier != m.Brier {
					t.Errorf("compare has %+v, sweep %+v", m, s)
				}
			}
		}
	}
	if found != 3 {
		t.Errorf("%d methods of %+v are settings of %+v, want 3", found, compared, swept)
	}
}

func TestSweepVerdict(t *testing.T) {
	standard := ensemble.Setting{Scale: 0.5, Rank: 20}
	other := ensemble.Setting{Scale: 0.25, Rank: 20}
	stale := standard
	stale.Stale = true
	result := func(c ensemble.Choice, n calibrate.MonteCarloError) *ensemble.SweepResult {
		c.Candidates = 3
		return &ensemble.SweepResult{Choice: c, Members: n, Points: []ensemble.SweepPoint{
			{}, {Setting: standard, Default: true, Scores: ensemble.Scores{NLL: 0.1}}, {Setting: other}, {Setting: stale, Scores: ensemble.Scores{NLL: 1.5}}}}
	}
	enough := calibrate.MonteCarloError{Members: 30, Standard: 0.003, Excess: 0.004, Tolerance: 0.006, Enough: 22}
	few := calibrate.MonteCarloError{Members: 30, Standard: 0.003, Excess: 0.004, Tolerance: 0.001, Enough: 400}
	for _, c := range []struct {
		r    *ensemble.SweepResult
		want []string
	}{
		{result(ensemble.Choice{Setting: other, Halves: [2]ensemble.Setting{other, other}, Gain: calibrate.Interval{Mean: -0.01, Low: -0.02, High: -0.001}, Share: 0.9, DefaultShare: 0.05}, enough), []string{
			"SWAG, scale 0.25, rank 20 is better than the paper's default, SWAG, scale 0.5, rank 20: NLL −0.0100 [−0.0200, −0.0010] on images that took no part in the choice.",
			"Chosen on 1,000 test images: it is the best in 90 % of bootstrap resamples of them, the default in 5 %.",
			"It is made with: swagwrap sample --scale 0.25 --rank 20",
			"Both halves of the test images chose the same. A choice on data of its own is sounder: --val FILE.",
			"30 members are enough, about 22 would do: infinitely many would change the NLL by about 0.0050, and 0.0060 would still be small.",
			"Without recomputed batch-norm statistics the NLL is 1.5000 in place of 0.1000."}},
		{result(ensemble.Choice{Setting: other, Halves: [2]ensemble.Setting{other, standard}, Gain: calibrate.Interval{Mean: -0.01, Low: -0.02, High: 0.001}}, few), []string{
			"No setting is better than the paper's default, SWAG, scale 0.5, rank 20, by more than chance. The lowest NLL of 3 settings has SWAG, scale 0.25, rank 20, with a difference of NLL −0.0100 [−0.0200, +0.0010] on images that took no part in the choice.",
			"Chosen on 1,000 test images",
			"The halves of the test images disagree: SWAG, scale 0.25, rank 20, and SWAG, scale 0.5, rank 20.",
			"30 members are not quite enough, about 400 would be"}},
		{result(ensemble.Choice{Setting: standard, Validated: true, Share: 0.4}, calibrate.MonteCarloError{Members: 1}), []string{
			"The paper's default, SWAG, scale 0.5, rank 20, has the lowest NLL of 3 settings.",
			"Chosen on 200 validation images: it is the best in 40 % of bootstrap resamples of them.",
			"1 member is too few to tell how many are needed."}},
	} {
		s := &ensemble.Sweep{Test: images(1000), Validation: images(200)}
		got := sweepVerdict(s, c.r)
		for i, want := range c.want {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Errorf("line %d of %q, want %q", i, got, want)
			}
		}
	}
}

func TestSettingFlags(t *testing.T) {
	for want, s := range map[string]ensemble.Setting{
		"--scale 0.25 --rank 5": {Scale: 0.25, Rank: 5},
		"--diagonal --scale 2":  {Covariance: swag.Diagonal, Scale: 2},
		"--scale 0 --members 1": {},
	} {
		if got := settingFlags(s); got != want {
			t.Errorf("%v: %q, want %q", s, got, want)
		}
	}
}

func TestLineVerdict(t *testing.T) {
	line := func(i int, loss ...float64) ensemble.LossLine {
		l := ensemble.LossLine{I: i, Deviation: 2}
		for k, v := range loss {
			at := make([]float64, i+1)
			at[i] = 4 * float64(k-1)
			l.Points = append(l.Points, ensemble.LossPoint{At: at, NLL: v})
		}
		return l
	}
	for want, lines := range map[string][]ensemble.LossLine{
		"At 2 posterior standard deviations from SWA the NLL rises by +0.2000 along direction 1. Nowhere on these lines is it lower than at SWA.": {line(0, 0.5, 0.2, 0.3)},
		"At 2 posterior standard deviations from SWA the NLL changes by +0.1000 (direction 2) to +0.2000 (direction 1), in the mean of both sides. The lowest on these lines is −0.1000, at +2.00 standard deviations along direction 2.": {
			line(0, 0.5, 0.2, 0.3), line(1, 0.5, 0.2, 0.1)},
	} {
		if got := strings.Join(lineVerdict("NLL", 2, lines), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// images is data of which only the number is known.
type images int

func (n images) Len() int                { return int(n) }
func (images) Shape() []int64            { return nil }
func (images) Labels() []int             { return nil }
func (images) ClassNames() []string      { return nil }
func (images) Name(int) string           { return "" }
func (images) Read([]float32, int) error { return nil }
func (images) Sources() []dataset.Source { return nil }

// The curve of scales has the points of all columns in order, with the intervals
// of their differences about the default's NLL.
func TestScaleCurve(t *testing.T) {
	d := ensemble.SweepPoint{Setting: ensemble.Setting{Scale: 0.5, Rank: 20}, Default: true, Scores: ensemble.Scores{NLL: 0.3}}
	low := ensemble.SweepPoint{Setting: ensemble.Setting{Scale: 0.25, Rank: 20}, Scores: ensemble.Scores{NLL: 0.2}, NLLDifference: calibrate.Interval{Mean: -0.1, Low: -0.12, High: -0.07}}
	diagonal := ensemble.SweepPoint{Setting: ensemble.Setting{Scale: 1, Covariance: swag.Diagonal}, Scores: ensemble.Scores{NLL: 0.4}}
	r := &ensemble.SweepResult{Points: []ensemble.SweepPoint{{Scores: ensemble.Scores{NLL: 0.5}}, d, low, diagonal}}
	c := scaleCurve(r)
	s := c.Series[0]
	if len(c.Series) != 2 || s.X[0] != 0.25 || s.Y[0] != 0.2 || s.X[1] != 0.5 || math.Abs(s.Lower[0]-0.18) > 1e-12 || math.Abs(s.Upper[0]-0.23) > 1e-12 {
		t.Errorf("curve %+v", c)
	}
}
