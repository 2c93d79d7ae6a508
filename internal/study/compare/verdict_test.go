package compare

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A difference is claimed only where Holm's procedure allows it, a borderline one is
// called so, and what it costs is said where SWAG does not win. What cannot be ranked is not.
func TestVerdict(t *testing.T) {
	digits, err := task.Of("", task.OutputSpec{Output: "logits", Count: 10})
	if err != nil {
		t.Fatal(err)
	}
	nan, inf := math.NaN(), math.Inf(1)
	// Differences are given as mean, low and high, and the adjusted p-value.
	method := func(key, name string, members, errors int, nll ...float64) Method {
		m := Method{Key: key, Name: name, Members: members, Evaluation: evaluated(0.95, 0.12, float64(errors))}
		if len(nll) > 0 {
			m.Differences = map[string]Difference{"nll": {calibrate.Difference{Interval: calibrate.Interval{Mean: nll[0], Low: nll[1], High: nll[2]}}, nll[3]}, errorLoss: {Adjusted: 1}, "brier": {Adjusted: nan}}
		}
		return m
	}
	const many = 250
	temp := method(baseline.SWATemp, "SWA-Temp (T = 1.20)", 1, many)
	stale := method(baseline.StaleSWA, "SWA, stale BN", 1, 4000, 15, 14, 16, nan)
	stale.StaleBN, stale.Evaluation = true, evaluated(0.162, 15.1, 4000)
	stale.Differences[errorLoss] = Difference{calibrate.Difference{Interval: calibrate.Interval{Low: 0.77}}, nan}
	worse := method(baseline.SWAG, "SWAG", 30, many, 0.003, 0.001, 0.005, 0.001)
	worse.Differences[errorLoss] = Difference{calibrate.Difference{Interval: calibrate.Interval{Mean: 0.004, Low: 0.001, High: 0.007}}, 0.03}
	one := method(baseline.SWAG, "SWAG", 1, many, 0.003, -inf, inf, 1)
	unknown := one.Differences["nll"]
	unknown.Variance = inf
	one.Differences["nll"] = unknown
	few, right, bound := method(baseline.SWATemp, "SWA-Temp (T = 0.70)", 1, 9), method(baseline.SWATemp, "SWA-Temp (T = 0.00)", 1, 0), temp
	bound.Scaling = &task.Fitted{Each: []*task.Calibration{{Method: task.ByTemperature, Temperature: 1000, AtBound: true}}}
	better := method(baseline.SWAG, "SWAG", 30, many, -0.012, -0.02, -0.004, 0.0004)
	for name, tc := range map[string]struct {
		methods []Method
		images  int
		want    []string
	}{
		"better": {[]Method{temp, better}, 5000, []string{
			"SWAG is better than temperature scaling on this data: NLL −0.0120 [−0.0200, −0.0040].",
		}},
		"not told apart": {[]Method{temp, method(baseline.SWAG, "SWAG", 30, many, 0.0002, -0.0018, 0.0021, 0.84)}, 5000, []string{
			"5,000 test images do not tell SWAG and temperature scaling apart: NLL +0.0002 [−0.0018, +0.0021]. They may differ by as much as that.",
			"Of the two, temperature scaling is cheaper: 1 network for each prediction, not 30.",
		}},
		"told apart, were it not for the others": {[]Method{temp, method(baseline.SWAG, "SWAG", 30, many, 0.003, 0.0001, 0.0059, 0.085)}, 5000, []string{
			"5,000 test images do not tell SWAG and temperature scaling apart: NLL +0.0030 [+0.0001, +0.0059]. They may differ by as much as that. That is borderline (p = 0.085): other images or draws may well tell otherwise.",
			"Of the two, temperature scaling is cheaper: 1 network for each prediction, not 30.",
		}},
		"borderline": {[]Method{temp, method(baseline.SWAG, "SWAG", 30, many, -0.003, -0.0059, -0.0001, 0.044), method(baseline.SWA, "SWA", 1, many, 0.004, 0.0004, 0.0076, 0.04)}, 5000, []string{
			"SWAG is better than temperature scaling on this data: NLL −0.0030 [−0.0059, −0.0001]. That is borderline (p = 0.044): other images or draws may well tell otherwise.",
			"Borderline, beside temperature scaling: SWA (+0.0040, p = 0.040).",
			"These sentences choose from 4 differences, in NLL and accuracy, by Holm's procedure: if none were real, all the same at most one such table in twenty would claim one.",
		}},
		"worse, and accuracy too": {[]Method{temp, worse}, 5000, []string{
			"SWAG is worse than temperature scaling on this data: NLL +0.0030 [+0.0010, +0.0050].",
			"Of the two, temperature scaling is cheaper: 1 network for each prediction, not 30.",
			"Accuracy is lower than that of temperature scaling: SWAG (−0.40 [−0.70, −0.10] percentage points, borderline: p = 0.030).",
		}},
		"others, stale statistics, few images": {[]Method{
			stale, method(baseline.SWA, "SWA", 1, many, 0.02, 0.01, 0.03, 0), temp,
			better, method(baseline.MultiSWAG, "MultiSWAG, 3 runs", 30, many, -0.02, -0.03, -0.01, 0),
		}, 500, []string{
			"SWAG is better than temperature scaling on this data: NLL −0.0120 [−0.0200, −0.0040].",
			"Better than temperature scaling: MultiSWAG, 3 runs (−0.0200).",
			"Worse than temperature scaling: SWA (+0.0200).",
			"Averaged weights need batch-norm statistics of their own: with the last checkpoint's, SWA's accuracy is 16.2 % instead of 95.0 %.",
			"These sentences choose from 6 differences, in NLL and accuracy, by Holm's procedure: if none were real, all the same at most one such table in twenty would claim one.",
			"500 test images are few: only large differences can show.",
		}},
		"infinite": {[]Method{temp, method(baseline.SWAG, "SWAG", 30, many, nan, nan, nan, nan)}, 5000, []string{
			"SWAG and temperature scaling cannot be compared by NLL: it is infinite, because a true class has probability 0.",
		}},
		"one member": {[]Method{temp, one}, 5000, []string{
			"SWAG and temperature scaling cannot be told apart with 1 member: what other draws would give is not known.",
		}},
		"without SWAG": {[]Method{temp, method(baseline.SWA, "SWA", 1, many, 0.01, -0.01, 0.03, 0.6)}, 5000, []string{
			"5,000 test images tell no other method from temperature scaling, which is not to say that they are equal.",
		}},
		"hardly an error": {[]Method{few, method(baseline.SWAG, "SWAG", 30, 7, -0.012, -0.02, -0.004, 0.0004)}, 300, []string{
			"Nothing is ranked: no method errs on more than 9 of 300 test images, and with fewer than 30 errors a handful of images decides. Compare on more.",
		}},
		"hardly an error but in one": {[]Method{few, method(baseline.SWA, "SWA", 1, 40, 0.2, 0.1, 0.3, 0), method(baseline.SWAG, "SWAG", 30, 7, -0.012, -0.02, -0.004, 0.0004)}, 1000, []string{
			"1,000 test images do not tell SWAG and temperature scaling apart: NLL −0.0120 [−0.0200, −0.0040]. Both err on fewer than 30 of them, and a handful decides.",
			"Of the two, temperature scaling is cheaper: 1 network for each prediction, not 30.",
			"Worse than temperature scaling: SWA (+0.2000).",
			"These sentences choose from 4 differences, in NLL and accuracy, by Holm's procedure: if none were real, all the same at most one such table in twenty would claim one.",
		}},
		"all right": {[]Method{right, method(baseline.SWAG, "SWAG", 30, 0, -0.012, -0.02, -0.004, 0.0004)}, 300, []string{
			"Nothing is ranked: every method puts all 300 test images right. Compare on harder ones, or on more.",
		}},
		"at its bound": {[]Method{bound, better}, 5000, []string{
			"Nothing is ranked: the temperature of SWA-Temp is at its bound (T = 1000.00), so the images that it is fitted on do not determine it, and what it gives is no standard.",
		}},
		"alone": {[]Method{temp}, 5000, []string{"There is one method, and nothing to compare it with."}},
	} {
		r := &Result{Comparison: &Comparison{Test: images{n: tc.images}}, Methods: tc.methods, task: digits}
		got := r.Verdict()
		if tc.methods[len(tc.methods)-1].Differences != nil && len(tc.methods) == 2 { // one NLL and one accuracy
			got = slices.DeleteFunc(got, func(line string) bool { return strings.HasPrefix(line, "These sentences choose from 2 ") })
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// evaluated is an evaluation with some scores, and the number of errors.
func evaluated(accuracy, nll, errors float64) *task.Evaluation {
	return &task.Evaluation{
		Scores: []task.Score{{Metric: task.Metric{Key: "accuracy"}, Value: accuracy}, {Metric: task.Metric{Key: "nll"}, Value: nll}},
		Losses: []task.Loss{{Key: "nll", Name: "NLL"}, {Key: errorLoss, Name: "error", Values: []float64{errors}}, {Key: "brier", Name: "Brier score"}},
	}
}

// images is data of which only the number is known.
type images struct {
	dataset.Dataset
	n int
}

func (d images) Len() int { return d.n }
