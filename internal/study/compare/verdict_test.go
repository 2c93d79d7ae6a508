package compare_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/fixtures/screen"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/study/compare/show"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A difference is claimed only where Holm's procedure allows it. A borderline one is called so. The headline names what to
// deploy, and nothing is ranked without enough errors.
func TestVerdict(t *testing.T) {
	digits, err := task.New("", task.OutputSpec{Output: "logits", Count: 10})
	if err != nil {
		t.Fatal(err)
	}
	nan, inf, made := math.NaN(), math.Inf(1), 0
	// Differences are given as mean, low and high, and the adjusted p-value. The interval gives the standard error.
	method := func(key, name string, members, errors int, nll ...float64) *compare.Method {
		m := &compare.Method{Key: key, Name: name, Members: members, Networks: members, Deploy: &ensemble.Settings{}, Evaluation: evaluated(0.95, 0.12, float64(errors))}
		if members > 1 {
			m.Without = [][]float64{{0}, {0}}
			m.Draws = chance.Draws{Variance: 1e-8, DoF: 29, Bias: 0.0001}
		}
		if len(nll) > 0 {
			m.Evaluation = evaluated(0.95, 0.12+nll[0], float64(errors))
			made++
			spread := nll[2] - nll[1]
			if spread != spread {
				spread = 0
			}
			for i := range m.Losses[0].Values { // with the mean and the standard error of the difference, and independent of those of others
				m.Losses[0].Values[i] += spread / 3.92 * math.Sqrt(losses) * float64(1-2*(i>>(made%16)&1))
			}
			d := chance.Difference{Interval: chance.Interval{Mean: nll[0], Low: nll[1], High: nll[2]}, Standard: (nll[2] - nll[1]) / 3.92, DoF: 5000}
			m.Differences = map[string]compare.Difference{"nll": {Difference: d, Adjusted: nll[3]}, compare.ErrorLoss: {Adjusted: 1}, "brier": {Adjusted: nan}}
		}
		return m
	}
	const many = 250
	temp := method(baseline.SWATemp, "SWA-Temp (T = 1.20)", 1, many)
	stale := method(baseline.StaleSWA, "SWA, stale BN", 1, 4000, -0.05, -0.06, -0.04, 0.0001)
	stale.StaleBN = true
	worse := method(baseline.SWAG, "SWAG", 30, many, 0.003, 0.001, 0.005, 0.001)
	worse.Differences[compare.ErrorLoss] = compare.Difference{Difference: chance.Difference{Interval: chance.Interval{Mean: 0.004, Low: 0.001, High: 0.007}}, Adjusted: 0.03}
	few, right, bound := method(baseline.SWATemp, "SWA-Temp (T = 0.70)", 1, 9), method(baseline.SWATemp, "SWA-Temp (T = 0.00)", 1, 0), method(baseline.SWATemp, "SWA-Temp (T = 1.20)", 1, many)
	undetermined := func(m *compare.Method, temperature float64) {
		m.Undetermined = "it is fitted on 1 row, want at least 10"
		m.Scaling = &task.Fitted{Each: []*task.Calibration{{Method: task.ByTemperature, Temperature: temperature, Undetermined: m.Undetermined}}}
	}
	undetermined(bound, 1000)
	bound.Scaling.Each[0].Contradicted = true
	low := method(baseline.SWATemp, "SWA-Temp (T = 0.001)", 1, many, -0.1, -0.11, -0.09, 0.0001)
	undetermined(low, 0.001)
	loose := method(baseline.SWAGTemp, "SWAG-Temp (T = 0.001)", 30, many, -0.2, -0.21, -0.19, 0.0001)
	undetermined(loose, 0.001)
	plain := method(baseline.SWA, "SWA", 1, many)
	better := method(baseline.SWAG, "SWAG", 30, many, -0.012, -0.02, -0.004, 0.0004)
	unlucky := method(baseline.SWAG, "SWAG", 30, many, 0.0055, 0.0016, 0.0094, 0.02)
	unlucky.Draws = chance.Draws{Variance: 0.0033 * 0.0033, DoF: 29, Bias: 0.0036}
	wild := method(baseline.SWAG, "SWAG", 30, many, 0.0055, 0.0016, 0.0094, 0.02)
	wild.Draws = chance.Draws{Variance: 0.02 * 0.02, DoF: 29}
	same := method(baseline.SWAG, "SWAG", 30, many, 0.0002, -0.0018, 0.0022, 0.84)
	scaled := method(baseline.SWAGTemp, "SWAG-Temp (T = 0.90)", 30, many, -0.013, -0.021, -0.005, 0.0004)
	dropout := method("swa-dropout", "SWA-Dropout", 30, many, -0.05, -0.06, -0.04, 0.0004)
	dropout.Deploy = nil
	for name, tc := range map[string]struct {
		methods  []*compare.Method
		examples int
		want     []string
	}{
		"better": {[]*compare.Method{temp, better}, 5000, []string{
			"Deploy SWAG: NLL 0.1080 with 30 networks for each prediction.",
			"SWAG with 30 networks is clearly better than SWA-Temp: −0.0120 [−0.0200, −0.0040].",
			"SWAG against SWA-Temp, with other seeds: −0.0120 [−0.0200, −0.0040], better too.",
		}},
		"alike": {[]*compare.Method{temp, same}, 5000, []string{
			"Deploy SWA-Temp: NLL 0.1200 with 1 network for each prediction.",
			"SWAG with 30 networks shows no clear gain over SWA-Temp: +0.0002 [−0.0018, +0.0022]. A gain above 0.0018 is ruled out.",
			"SWAG against SWA-Temp, with other seeds: +0.0002 [−0.0018, +0.0022], which is open.",
		}},
		"perhaps a gain": {[]*compare.Method{temp, method(baseline.SWAG, "SWAG", 30, many, -0.002, -0.006, 0.002, 0.34)}, 1000, []string{
			"Deploy SWA-Temp: NLL 0.1200 with 1 network for each prediction.",
			"SWAG with 30 networks shows no clear gain over SWA-Temp: −0.0020 [−0.0060, +0.0020]. About 4,000 test images would make a gain of this size clear.",
			"SWAG against SWA-Temp, with other seeds: −0.0020 [−0.0060, +0.0020], which is open.",
		}},
		"far from settled": {[]*compare.Method{temp, wild}, 5000, []string{
			"Deploy SWA-Temp: NLL 0.1200 with 1 network for each prediction.",
			"SWAG with 30 networks is worse than SWA-Temp: +0.0055 [+0.0016, +0.0094].",
			"SWAG against SWA-Temp, with other seeds: +0.0055 [−0.0356, +0.0466], which is open.",
			"Draws add more error (±0.0200) than images (±0.0020). About 12,130 members would settle it, which does not pay.",
		}},
		"an unlucky draw": {[]*compare.Method{temp, unlucky}, 5000, []string{
			"Deploy SWA-Temp: NLL 0.1200 with 1 network for each prediction.",
			"SWAG with 30 networks is worse than SWA-Temp: +0.0055 [+0.0016, +0.0094].",
			"SWAG against SWA-Temp, with other seeds: +0.0055 [−0.0023, +0.0133], which is open.",
			"Draws add more error (±0.0033) than images (±0.0020). Members 340 settles it.",
		}},
		"perhaps by chance": {[]*compare.Method{temp, method(baseline.SWAG, "SWAG", 30, many, 0.003, 0.0001, 0.0059, 0.085), method(baseline.SWA, "SWA", 1, many, -0.004, -0.0076, -0.0004, 0.04)}, 5000, []string{
			"Deploy SWA: NLL 0.1160 with 1 network for each prediction.",
			"SWAG with 30 networks is worse than SWA: +0.0070 [+0.0024, +0.0116].",
			"SWAG against SWA-Temp, with other seeds: +0.0030 [+0.0001, +0.0059], which one of 2 tests may show by chance.",
		}},
		"worse, and accuracy too": {[]*compare.Method{temp, worse}, 5000, []string{
			"Deploy SWA-Temp: NLL 0.1200 with 1 network for each prediction.",
			"SWAG with 30 networks is worse than SWA-Temp: +0.0030 [+0.0010, +0.0050].",
			"SWAG against SWA-Temp, with other seeds: +0.0030 [+0.0010, +0.0050], worse too.",
			"Accuracy against SWA-Temp, points: SWAG −0.40.",
		}},
		// What cannot be deployed, and what has stale statistics, is not deployed.
		"others, few examples": {[]*compare.Method{stale, temp, dropout, better, scaled, method(baseline.MultiSWAG, "MultiSWAG, 3 runs", 30, many, -0.02, -0.03, -0.01, 0)}, 500, []string{
			"Deploy MultiSWAG, 3 runs: NLL 0.1000 with 30 networks for each prediction.",
			"MultiSWAG, 3 runs with 30 networks is clearly better than SWA-Temp: −0.0200 [−0.0321, −0.0079].",
			"SWAG-Temp against SWA-Temp, with other seeds: −0.0130 [−0.0210, −0.0050], better too.",
			"500 test images are few: only large differences can show.",
		}},
		"infinite": {[]*compare.Method{temp, method(baseline.SWAG, "SWAG", 30, many, inf, nan, nan, nan)}, 5000, []string{
			"Deploy SWA-Temp: NLL 0.1200 with 1 network for each prediction.",
			"SWAG and SWA-Temp have no finite NLL difference: a true class has probability 0.",
		}},
		"seven members": {[]*compare.Method{temp, method(baseline.SWAG, "SWAG", 7, many, 0.003, 0.001, 0.005, 0.001)}, 5000, []string{
			"Deploy SWA-Temp: NLL 0.1200 with 1 network for each prediction.",
			"SWAG with 7 networks is worse than SWA-Temp: +0.0030 [+0.0010, +0.0050].",
			"7 members are too few for a verdict about SWAG itself. Use Members 30.",
		}},
		"without SWAG": {[]*compare.Method{temp, method(baseline.SWA, "SWA", 1, many, 0.01, -0.01, 0.03, 0.6)}, 5000, []string{
			"Deploy SWA-Temp: NLL 0.1200 with 1 network for each prediction.",
			"SWA-Temp is not clearly better than SWA: NLL −0.0100 [−0.0300, +0.0100]. The interval allows for the choice among 2.",
		}},
		"alike, of which one is simpler": {[]*compare.Method{temp, method(baseline.SGD, "SGD, last iterate", 1, many, 0.002, -0.01, 0.014, 0.6)}, 5000, []string{
			"Deploy your network: NLL 0.1220 with 1 network for each prediction.",
			"SWA-Temp is alike (−0.0020 [−0.0140, +0.0100]), and the simpler one is taken.",
		}},
		"hardly an error": {[]*compare.Method{few, method(baseline.SWAG, "SWAG", 30, 7, -0.012, -0.02, -0.004, 0.0004)}, 300, []string{
			"Nothing is ranked: no method makes more than 9 errors on 300 test images. With fewer than 30 errors a handful decides. Compare on more.",
			"Until then SWA-Temp will do, the simplest of those that are alike: NLL 0.1200 with 1 network.",
		}},
		"hardly an error but in one": {[]*compare.Method{few, method(baseline.SWA, "SWA", 1, 40, 0.2, 0.1, 0.3, 0), method(baseline.SWAG, "SWAG", 30, 7, -0.012, -0.02, -0.004, 0.0004)}, 1000, []string{
			"Deploy SWA-Temp: NLL 0.1200 with 1 network for each prediction.",
			"SWA-Temp is better than SWA: NLL −0.2000 [−0.3007, −0.0993]. The interval allows for the choice among 3.",
			"SWAG and SWA-Temp both make fewer than 30 errors: too few to compare them.",
		}},
		"all right": {[]*compare.Method{right, method(baseline.SWAG, "SWAG", 30, 0, -0.012, -0.02, -0.004, 0.0004)}, 300, []string{
			"Nothing is ranked: every method predicts all 300 test images correctly. Compare on harder ones, or on more.",
			"Until then SWA-Temp will do, the simplest of those that are alike: NLL 0.1200 with 1 network.",
		}},
		"at its lower bound, beside one other": {[]*compare.Method{low, better}, 5000, []string{
			"Nothing is recommended: the fit for SWA-Temp is not determined: it is fitted on 1 row, want at least 10. Give more labelled examples: Val FILE.",
			"Nothing is ranked: fewer than two methods count.",
		}},
		// A method that is not determined has the lowest loss, and is not deployed.
		"at their lower bounds": {[]*compare.Method{plain, low, better, loose}, 5000, []string{
			"Nothing is recommended: the fit for SWA-Temp, SWAG-Temp is not determined: it is fitted on 1 row, want at least 10. Give more labelled examples: Val FILE.",
			"SWAG against SWA, with other seeds: −0.0120 [−0.0200, −0.0040], better too.",
		}},
		"a fit on too few halves": {[]*compare.Method{plain, low, better, loose}, 5000, []string{
			"Deploy SWAG: NLL 0.1080 with 30 networks for each prediction.",
			"SWAG with 30 networks is clearly better than SWA: −0.0120 [−0.0200, −0.0040].",
			"SWA-Temp, SWAG-Temp: not counted, since the fit is not determined: it is fitted on 1 row, want at least 10. Give more labelled examples: Val FILE, or more test data.",
			"SWAG against SWA, with other seeds: −0.0120 [−0.0200, −0.0040], better too.",
		}},
		"at its upper bound": {[]*compare.Method{plain, bound, better}, 5000, []string{
			"Nothing is recommended: the scores of SWA-Temp do not fit the labels that its temperature is fitted on (T = 1000.00). Check the order of the classes (the fit with ClassNames), the labels, and the preprocessing.",
		}},
		"validation data of another kind": {[]*compare.Method{temp, method(baseline.SWA, "SWA", 1, many, -0.02, -0.03, -0.01, 0.001)}, 5000, []string{
			"Deploy SWA: NLL 0.1000 with 1 network for each prediction.",
			"The temperature makes SWA worse on the test data. Perhaps the validation data is of another kind: check Val, its preprocessing and its labels.",
		}},
		"alone": {[]*compare.Method{temp}, 5000, []string{"There is one method, and nothing to compare it with."}},
	} {
		r := &compare.Result{Comparison: &compare.Comparison{Test: images{n: tc.examples}}, Methods: tc.methods, Task: digits, Tests: 2}
		if strings.HasPrefix(name, "validation") || strings.HasPrefix(name, "at ") {
			r.Validation = images{}
		}
		if diff := cmp.Diff(tc.want, says(r)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		screen.Verdict(t, says(r))
	}
	scaled, paper := method(baseline.SWAGTuned, "SWAG, scale 0.25 (T = 1.10)", 30, many, -0.001, -0.003, 0.001, 0.4), method(baseline.SWAGTemp, "SWAG-Temp (T = 0.98)", 30, many, 0.001, -0.001, 0.003, 0.4)
	for _, chose := range []bool{true, false} {
		r := &compare.Result{Comparison: &compare.Comparison{Inputs: baseline.Inputs{TunedScale: chose}, Test: images{n: 5000}}, Methods: []*compare.Method{temp, paper, scaled}, Task: digits, Tests: 2}
		if got := r.Verdict().Candidate; got != map[bool]*compare.Method{true: scaled, false: paper}[chose] {
			t.Errorf("the scale was chosen: %v, the verdict is about %s", chose, got.Name)
		}
	}
	for name, methods := range map[string][]*compare.Method{"SWAG": {temp, better}, "SWA": {plain, method(baseline.SWAG, "SWAG", 30, many, 0.003, 0.001, 0.005, 0.001)}, "": {plain, bound, better}} { // a bound is no measure for SWAG
		r := &compare.Result{Comparison: &compare.Comparison{Test: images{n: 5000}}, Methods: methods, Task: digits, Tests: 2}
		got := ""
		if m := r.Verdict().Choice; m != nil {
			got, _, _ = strings.Cut(m.Name, " (")
		}
		if got != name {
			t.Errorf("deploys %q, want %q", got, name)
		}
		if len(r.StepsOf(low)) > 0 {
			t.Errorf("steps for what is not determined: %v", r.StepsOf(low))
		}
	}
	if got := compare.Settling(30, 0.0033, 0.002); got != 330 || inf < 0 {
		t.Errorf("%d members to settle", got)
	}
}

// says returns the verdict in plain words.
func says(r *compare.Result) []string { return show.Verdict(r) }

// losses is the number of losses of an evaluation.
const losses = 1 << 16

// evaluated is an evaluation with some scores, and the number of errors.
func evaluated(accuracy, nll, errors float64) *task.Evaluation {
	values := make([]float64, losses)
	for i := range values {
		values[i] = nll
	}
	return &task.Evaluation{
		Scores: []task.Score{{Metric: task.Metric{Key: "accuracy"}, Value: accuracy}, {Metric: task.Metric{Key: "nll"}, Value: nll}},
		Losses: []task.Loss{{Key: "nll", Name: "NLL", Values: values}, {Key: compare.ErrorLoss, Name: "error", Values: []float64{errors}}, {Key: "brier", Name: "Brier score"}},
	}
}

// images is data of which only the number is known.
type images struct {
	dataset.Dataset
	n int
}

func (d images) Len() int                  { return d.n }
func (d images) Shape() []int64            { return []int64{3, 32, 32} }
func (d images) Sources() []dataset.Source { return nil }
