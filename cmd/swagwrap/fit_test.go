package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
)

// The real run is sound but for its walk, which is no warning; a shuffled one is.
func TestFitHealth(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join("..", "..", "fixtures", "mnist", "checkpoints", "epoch-*.onnx"))
	if err != nil || len(paths) != 30 {
		t.Fatal(paths, err)
	}
	fit := func(paths []string) string {
		var stdout, stderr bytes.Buffer
		args := append([]string{"swagwrap", "fit", "--task", "classes", "--order", "given", "-o", filepath.Join(t.TempDir(), "posterior")}, paths...)
		if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
			t.Fatalf("exit code %d: %s", code, &stderr)
		}
		return strings.Join(strings.Fields(stderr.String()), " ") // lines are wrapped
	}
	got := fit(paths)
	if strings.Contains(got, "warning:") || !strings.Contains(got, "trajectory: usable. 30 checkpoints count as 2.") {
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

// A posterior of the time before tasks were asked for is used as it was then, with
// a warning.
func TestTaskNotTold(t *testing.T) {
	t.Parallel()
	p := infertest.Fit(t, infertest.Two(t, "ckpt")...)
	code, out := program(t, "export", "--bn", "keep", "-o", filepath.Join(t.TempDir(), "swa.onnx"), p.Path)
	if code != 0 || !strings.Contains(out, "warning: "+p.Path+`: tensor "logits": 3 numbers for an example, with no activation behind`) {
		t.Errorf("exit code %d: %s", code, out)
	}
}
