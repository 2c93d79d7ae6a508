package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/swag/trajectory"
)

func TestHealthLines(t *testing.T) {
	t.Parallel()
	h := trajectory.Health{Checkpoints: 30, Effective: 2.12, Drift: 0.499, Spread: 0.243, Step: 0.0012, Slowing: 1.15, Frozen: 0.004, SubUlp: 0.0015,
		Spectrum: []float64{0.68, 0.17, 0.1, 0.05, 0}, Dimensions: 2.07, LowRank: 1.3}
	want := `
trajectory                        value  good
independent checkpoints       2.1 of 30  10 and more; a random walk has about 2
variance between the halves        50 %  below 60 %; independent checkpoints have 3 %, a straight line 75 %
spread / size of the weights       24 %  0.2 % to 50 %
step / size of the weights       0.12 %
last steps / first steps           1.15  about 1: a constant learning rate
weights at rest                  0.55 %  0 %, if none was frozen
low-rank / diagonal variance       1.30  about 1
largest eigenvalue                 68 %  █▂▁▁  as concentrated as 2.1 equal ones`
	if got := strings.Join(healthLines(h), "\n"); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
	// Too few for halves and quarters, and no deviations.
	if got := healthLines(trajectory.Health{Checkpoints: 2, Effective: 2}); len(got) != 5 {
		t.Errorf("2 checkpoints: %q", got)
	}
}

// The real run is sound but for its walk, which is no warning; a shuffled one is.
func TestFitHealth(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join("..", "..", "fixtures", "mnist", "checkpoints", "epoch-*.onnx"))
	if err != nil || len(paths) != 30 {
		t.Fatal(paths, err)
	}
	fit := func(paths []string) string {
		var stdout, stderr bytes.Buffer
		args := append([]string{"swagwrap", "fit", "--order", "given", "-o", filepath.Join(t.TempDir(), "posterior")}, paths...)
		if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
			t.Fatalf("exit code %d: %s", code, &stderr)
		}
		return strings.Join(strings.Fields(stderr.String()), " ") // lines are wrapped
	}
	got := fit(paths)
	if strings.Contains(got, "warning:") || !strings.Contains(got, "note: the 30 checkpoints count for 2.") {
		t.Errorf("in order: %s", got)
	}
	t.Log(got)
	// The order of names without leading zeros: 1, 10, 11 … 19, 2, 20 …
	shuffled := slices.Concat(paths[:1], paths[9:19], paths[1:2], paths[19:29], paths[2:3], paths[29:], paths[3:9])
	got = fit(shuffled)
	if !strings.Contains(got, "warning: the checkpoints are not in training order, which by their weights is epoch-01.onnx, epoch-02.onnx, epoch-03.onnx") {
		t.Errorf("shuffled: %s", got)
	}
	moved := slices.Concat(paths[:9], paths[10:17], paths[9:10], paths[17:])
	got = fit(moved)
	if !strings.Contains(got, "epoch-10.onnx belongs after epoch-09.onnx") {
		t.Errorf("one moved: %s", got)
	}
}
