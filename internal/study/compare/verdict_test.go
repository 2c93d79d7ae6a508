package compare

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A difference is claimed only where the interval leaves 0 out, and what it costs
// is said where SWAG does not win.
func TestVerdict(t *testing.T) {
	digits, err := task.Of("", task.Scores{Output: "logits", Count: 10})
	if err != nil {
		t.Fatal(err)
	}
	method := func(key, name string, members int, nll ...float64) Method {
		m := Method{Key: key, Name: name, Members: members, Evaluation: &task.Evaluation{Values: []float64{0.95, 0.12}}}
		if len(nll) > 0 {
			m.Differences = []calibrate.Interval{{Mean: nll[0], Low: nll[1], High: nll[2]}, {}, {}}
		}
		return m
	}
	temp := method(baseline.SWATemp, "SWA-Temp (T = 1.20)", 1)
	stale := method(baseline.StaleSWA, "SWA, stale BN", 1, 15, 14, 16)
	stale.StaleBN, stale.Values = true, []float64{0.162, 15.1}
	stale.Differences[1] = calibrate.Interval{Mean: 0.788, Low: 0.77, High: 0.8}
	worse := method(baseline.SWAG, "SWAG", 30, 0.003, 0.001, 0.005)
	worse.Differences[1] = calibrate.Interval{Mean: 0.004, Low: 0.001, High: 0.007}
	nan := math.NaN()
	for name, tc := range map[string]struct {
		methods []Method
		images  int
		want    []string
	}{
		"better": {[]Method{temp, method(baseline.SWAG, "SWAG", 30, -0.012, -0.02, -0.004)}, 5000, []string{
			"SWAG is better than temperature scaling on this data: NLL −0.0120 [−0.0200, −0.0040].",
		}},
		"no difference": {[]Method{temp, method(baseline.SWAG, "SWAG", 30, 0.0002, -0.0018, 0.0021)}, 5000, []string{
			"5,000 test images show no difference between SWAG and temperature scaling: NLL +0.0002 [−0.0018, +0.0021].",
			"Of the two, temperature scaling is cheaper: 1 network for each prediction, not 30.",
		}},
		"worse, and accuracy too": {[]Method{temp, worse}, 5000, []string{
			"SWAG is worse than temperature scaling on this data: NLL +0.0030 [+0.0010, +0.0050].",
			"Of the two, temperature scaling is cheaper: 1 network for each prediction, not 30.",
			"SWAG's accuracy is lower than that of temperature scaling: by −0.40 [−0.70, −0.10] percentage points.",
		}},
		"others, stale statistics, few images": {[]Method{
			stale, method(baseline.SWA, "SWA", 1, 0.02, 0.01, 0.03), temp,
			method(baseline.SWAG, "SWAG", 30, -0.012, -0.02, -0.004), method(baseline.MultiSWAG, "MultiSWAG, 3 runs", 30, -0.02, -0.03, -0.01),
		}, 500, []string{
			"SWAG is better than temperature scaling on this data: NLL −0.0120 [−0.0200, −0.0040].",
			"Better than temperature scaling: MultiSWAG, 3 runs (−0.0200).",
			"Worse than temperature scaling: SWA (+0.0200).",
			"Averaged weights need batch-norm statistics of their own: with the last checkpoint's, SWA's accuracy is 16.2 % instead of 95.0 %.",
			"3 methods stand against one baseline, each with a 95 % interval: if none differed, chance would still show a difference in up to 14 % of such tables.",
			"500 test images are few: only large differences can show.",
		}},
		"infinite": {[]Method{temp, method(baseline.SWAG, "SWAG", 30, nan, nan, nan)}, 5000, []string{
			"SWAG and temperature scaling cannot be compared by NLL: it is infinite, because a true class has probability 0.",
		}},
		"without SWAG": {[]Method{temp, method(baseline.SWA, "SWA", 1, 0.01, -0.01, 0.03)}, 5000, []string{
			"5,000 test images show no difference between temperature scaling and any other method.",
		}},
		"alone": {[]Method{temp}, 5000, []string{"There is one method, and nothing to compare it with."}},
	} {
		r := &Result{Comparison: &Comparison{Test: images{n: tc.images}}, Methods: tc.methods, task: digits}
		if diff := cmp.Diff(tc.want, r.Verdict()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// images is data of which only the number is known.
type images struct {
	dataset.Dataset
	n int
}

func (d images) Len() int { return d.n }
