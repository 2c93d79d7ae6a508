package compare_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/swag"
)

// The steps make the ensemble with the number that was fitted, and export it.
func TestStepsOf(t *testing.T) {
	r := &compare.Result{Comparison: &compare.Comparison{}}
	runs := []baseline.Run{{Network: network(t, "my posterior")}}
	temp := &compare.Method{Key: baseline.SWATemp, Deploy: &ensemble.Settings{Draw: ensemble.Draw{Seed: 1, Covariance: ensemble.SWAG}, Temperature: 1.25}, Posteriors: runs}
	want := []study.Step{
		study.Sample{Output: "ensemble.safetensors", Members: *temp.Deploy, Posteriors: []string{"my posterior"}},
		study.Export{Output: "ensemble.onnx", Ensemble: "ensemble.safetensors"},
	}
	if diff := cmp.Diff(want, r.StepsOf(temp)); diff != "" {
		t.Error(diff)
	}
	if got := r.StepsOf(&compare.Method{Key: baseline.Laplace}); len(got) > 0 {
		t.Errorf("steps for what no ensemble is: %v", got)
	}
}

// network is a small one whose posterior is called so.
func network(t *testing.T, path string) *infer.Network {
	t.Helper()
	n := small(t).Runs[0].Network
	n.Posterior = &swag.Posterior{Path: path}
	return n
}
