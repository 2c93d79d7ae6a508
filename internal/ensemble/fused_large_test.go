//go:build large

package ensemble_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
)

// TestFusedAllExporters is TestFusedExporters for every fixture.
func TestFusedAllExporters(t *testing.T) {
	root := infertest.Path(infertest.Exporters)
	cases, err := filepath.Glob(filepath.Join(root, "*", "*", "golden.json"))
	if err != nil || len(cases) < 40 {
		t.Fatalf("%d fixtures, %v", len(cases), err)
	}
	for _, golden := range append(cases, filepath.Join(root, "torch-dynamo", "golden.json")) {
		name, err := filepath.Rel(root, filepath.Dir(golden))
		if err != nil {
			t.Fatal(err)
		}
		// No posterior is fitted to the first three, and of the last ONNX Runtime has no kernels.
		if slices.Contains([]string{"bn-1d-3d/shared-dynamo", "bn-1d-3d/shared-torchscript", "control-flow/functions", "f16/bf16-dynamo"}, filepath.ToSlash(name)) {
			continue
		}
		t.Run(name, func(t *testing.T) { fusedExporter(t, engine(t), name) })
	}
}
