package compare

import (
	"math"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// The best of what can be deployed is named with its cost, and what is deployed is the
// baseline where that is not told apart and costs no more. What no ensemble is, and what has
// stale statistics, is not named, however good.
func TestDeployLines(t *testing.T) {
	digits, err := task.Of("", task.OutputSpec{Output: "logits", Count: 10})
	if err != nil {
		t.Fatal(err)
	}
	runs := []baseline.Run{{Network: network(t, "my posterior")}}
	method := func(key, name string, networks int, nll, p float64) Method {
		s := &ensemble.Settings{Method: ensemble.SWAG, Scale: 0.5, Members: networks, Seed: 1}
		if networks == 1 {
			s = &ensemble.Settings{Method: ensemble.SWA, Seed: 1, Temperature: 1.25}
		}
		m := Method{Key: key, Name: name, Networks: networks, Deploy: s, Posteriors: runs, Evaluation: evaluated(0.9, nll, 500)}
		if key != baseline.SWATemp {
			m.Differences = map[string]Difference{"nll": {Adjusted: p}, errorLoss: {Adjusted: 1}, "brier": {Adjusted: math.NaN()}}
			m.Differences["nll"] = Difference{calibrate.Difference{Interval: calibrate.Interval{Mean: nll - 0.12}}, p}
		}
		return m
	}
	temp := method(baseline.SWATemp, "SWA-Temp (T = 1.25)", 1, 0.12, 0)
	none := method("swa-dropout", "SWA-Dropout", 30, 0.01, 0.001)
	none.Deploy = nil
	stale := method(baseline.StaleSWA, "SWA, stale BN", 1, 0.01, 0.001)
	stale.StaleBN = true
	const deploy = "To deploy SWA-Temp (T = 1.25): swagwrap sample -o ensemble.safetensors --method swa --temperature 1.25 'my posterior'"
	for name, tc := range map[string]struct {
		other Method
		want  []string
	}{
		"the baseline": {method(baseline.SWAG, "SWAG", 30, 0.13, 0.001), []string{"Of what can be deployed, SWA-Temp (T = 1.25) has the lowest NLL, 0.1200, and takes 1 network for each prediction.", deploy}},
		"not told apart": {method(baseline.SWAG, "SWAG", 30, 0.11, 0.2), []string{
			"Of what can be deployed, SWAG has the lowest NLL, 0.1100, and takes 30 networks for each prediction; SWA-Temp (T = 1.25) is not told apart from it, and takes 1 network for each prediction.", deploy}},
		"better": {method(baseline.SWAG, "SWAG", 30, 0.11, 0.001), []string{
			"Of what can be deployed, SWAG has the lowest NLL, 0.1100, and takes 30 networks for each prediction; SWA-Temp (T = 1.25) is worse, and takes 1 network for each prediction.",
			"To deploy SWAG: swagwrap sample -o ensemble.safetensors --method swag 'my posterior'"}},
	} {
		r := &Result{Comparison: &Comparison{}, Methods: []Method{stale, temp, none, tc.other}, task: digits}
		if got := r.deployLines(&r.Methods[1]); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// network is a small one whose posterior is called so.
func network(t *testing.T, path string) *infer.Network {
	t.Helper()
	n := small(t).Runs[0].Network
	n.Posterior = &swag.Posterior{Path: path}
	return n
}
