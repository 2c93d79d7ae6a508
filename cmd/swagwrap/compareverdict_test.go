package main

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/ensemble"
)

// A difference is claimed only where the interval leaves 0 out, and what it costs
// is said where SWAG does not win.
func TestCompareVerdict(t *testing.T) {
	method := func(key, name string, members int, nll ...float64) ensemble.Method {
		m := ensemble.Method{Key: key, Name: name, Members: members, Metrics: calibrate.Metrics{Accuracy: 0.95, NLL: 0.12}}
		if len(nll) == 0 {
			m.Baseline = true
		} else {
			m.NLLDifference = calibrate.Interval{Mean: nll[0], Low: nll[1], High: nll[2]}
		}
		return m
	}
	temp := method(ensemble.SWATemp, "SWA-Temp (T = 1.20)", 1)
	stale := method(ensemble.StaleSWA, "SWA, stale BN", 1, 15, 14, 16)
	stale.StaleBN, stale.Metrics.Accuracy, stale.Metrics.NLL = true, 0.162, 15.1
	stale.ErrorDifference = calibrate.Interval{Mean: 0.788, Low: 0.77, High: 0.8}
	worse := method(ensemble.SWAG, "SWAG", 30, 0.003, 0.001, 0.005)
	worse.ErrorDifference = calibrate.Interval{Mean: 0.004, Low: 0.001, High: 0.007}
	nan := math.NaN()
	for name, tc := range map[string]struct {
		methods []ensemble.Method
		images  int
		want    []string
	}{
		"better": {[]ensemble.Method{temp, method(ensemble.SWAG, "SWAG", 30, -0.012, -0.02, -0.004)}, 5000, []string{
			"SWAG is better than temperature scaling on this data: NLL −0.0120 [−0.0200, −0.0040].",
		}},
		"no difference": {[]ensemble.Method{temp, method(ensemble.SWAG, "SWAG", 30, 0.0002, -0.0018, 0.0021)}, 5000, []string{
			"5,000 test images show no difference between SWAG and temperature scaling: NLL +0.0002 [−0.0018, +0.0021].",
			"Of the two, temperature scaling is cheaper: 1 network for each prediction, not 30.",
		}},
		"worse, and accuracy too": {[]ensemble.Method{temp, worse}, 5000, []string{
			"SWAG is worse than temperature scaling on this data: NLL +0.0030 [+0.0010, +0.0050].",
			"Of the two, temperature scaling is cheaper: 1 network for each prediction, not 30.",
			"SWAG's accuracy is lower than that of temperature scaling: by −0.40 [−0.70, −0.10] percentage points.",
		}},
		"others, stale statistics, few images": {[]ensemble.Method{
			stale, method(ensemble.SWA, "SWA", 1, 0.02, 0.01, 0.03), temp,
			method(ensemble.SWAG, "SWAG", 30, -0.012, -0.02, -0.004), method(ensemble.MultiSWAG, "MultiSWAG, 3 runs", 30, -0.02, -0.03, -0.01),
		}, 500, []string{
			"SWAG is better than temperature scaling on this data: NLL −0.0120 [−0.0200, −0.0040].",
			"Better than temperature scaling: MultiSWAG, 3 runs (−0.0200).",
			"Worse than temperature scaling: SWA (+0.0200).",
			"Averaged weights need batch-norm statistics of their own: with the last checkpoint's, SWA's accuracy is 16.2 % instead of 95.0 %.",
			"3 methods stand against one baseline, each with a 95 % interval: if none differed, chance would still show a difference in up to 14 % of such tables.",
			"500 test images are few: only large differences can show.",
		}},
		"infinite": {[]ensemble.Method{temp, method(ensemble.SWAG, "SWAG", 30, nan, nan, nan)}, 5000, []string{
			"SWAG and temperature scaling cannot be compared by NLL: it is infinite, because a true class has probability 0.",
		}},
		"without SWAG": {[]ensemble.Method{temp, method(ensemble.SWA, "SWA", 1, 0.01, -0.01, 0.03)}, 5000, []string{
			"5,000 test images show no difference between temperature scaling and any other method.",
		}},
		"alone": {[]ensemble.Method{temp}, 5000, []string{"There is one method, and nothing to compare it with."}},
	} {
		if diff := cmp.Diff(tc.want, compareVerdict(tc.methods, tc.images)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestOODVerdict(t *testing.T) {
	found := func(key, name string, low, high float64) ensemble.Detected {
		return ensemble.Detected{Key: key, Name: name, Entropy: calibrate.Detection{AUROC: 0.9}, Difference: calibrate.Interval{Mean: (low + high) / 2, Low: low, High: high}}
	}
	swa := found(ensemble.SWA, "SWA", 0, 0)
	swa.Baseline = true
	for _, tc := range []struct {
		found []ensemble.Detected
		want  []string
	}{
		{[]ensemble.Detected{found(ensemble.SGD, "SGD", -0.02, -0.01), swa, found(ensemble.SWAGDiag, "SWAG-Diag", 0.02, 0.04), found(ensemble.SWAG, "SWAG", 0.01, 0.03)}, []string{
			"SWAG's entropy tells the two apart better than that of SWA: AUROC 0.9000 against 0.9000, +0.0200 [+0.0100, +0.0300].",
			"Better than SWA: SWAG-Diag (+0.0300).",
			"Worse than SWA: SGD (−0.0150).",
			"3 methods stand against one, each with a 95 % interval: if none differed, chance would still show a difference in up to 14 % of such tables.",
		}},
		{[]ensemble.Detected{swa, found(ensemble.SWAG, "SWAG", -0.01, 0.01)}, []string{
			"These images show no difference between SWAG and SWA at telling the two apart: AUROC 0.9000 against 0.9000, 0.0000 [−0.0100, +0.0100].",
		}},
		{[]ensemble.Detected{swa, found(ensemble.SWAG, "SWAG", -0.03, -0.01)}, []string{
			"SWAG's entropy tells the two apart worse than that of SWA: AUROC 0.9000 against 0.9000, −0.0200 [−0.0300, −0.0100].",
		}},
		{[]ensemble.Detected{swa, found(ensemble.SGD, "SGD", -0.01, 0.01)}, []string{"No method differs from SWA at telling the two apart, as far as these images show."}},
		{[]ensemble.Detected{swa}, []string{"A random image of OUT is the less certain one of a pair in 90.0 % of all pairs."}},
	} {
		if diff := cmp.Diff(tc.want, oodVerdict(tc.found)); diff != "" {
			t.Error(diff)
		}
	}
	swa.Entropy.AUROC = 0.3
	if got := oodVerdict([]ensemble.Detected{swa, found(ensemble.SGD, "SGD", -0.01, 0.01)}); !strings.Contains(got[len(got)-1], "are IN and OUT the right way round?") {
		t.Errorf("%q", got)
	}
}

func TestCommandLine(t *testing.T) {
	got := commandLine([]string{"/usr/bin/swagwrap", "compare", "-n", "30", "it's here.npz", "SGLD=a/*.onnx", ""})
	if want := `swagwrap compare -n 30 'it'\''s here.npz' 'SGLD=a/*.onnx' ''`; got != want || strings.Contains(got, "/usr/bin") {
		t.Errorf("%s, want %s", got, want)
	}
}
