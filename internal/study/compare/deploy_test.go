package compare_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/swag"
)

// Commands make the ensemble with the number that was fitted, and export it. A path with a space is quoted.
func TestCommands(t *testing.T) {
	r := &compare.Result{Comparison: &compare.Comparison{}}
	runs := []baseline.Run{{Network: network(t, "my posterior")}}
	temp := &compare.Method{Key: baseline.SWATemp, Deploy: &ensemble.Settings{Method: ensemble.SWA, Seed: 1, Temperature: 1.25}, Posteriors: runs}
	want := []string{
		"swagwrap sample -o ensemble.safetensors --method swa --temperature 1.25 'my posterior'",
		"swagwrap export -o ensemble.onnx ensemble.safetensors",
	}
	if diff := cmp.Diff(want, r.Commands(temp)); diff != "" {
		t.Error(diff)
	}
	if got := r.Commands(&compare.Method{Key: baseline.Laplace}); len(got) > 0 {
		t.Errorf("commands for what no ensemble is: %q", got)
	}
}

// network is a small one whose posterior is called so.
func network(t *testing.T, path string) *infer.Network {
	t.Helper()
	n := small(t).Runs[0].Network
	n.Posterior = &swag.Posterior{Path: path}
	return n
}
