package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
)

// runJSON runs the program and decodes what it prints.
func runJSON(t *testing.T, to any, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append([]string{"swagwrap"}, args...), &stdout, &stderr); code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, &stderr)
	}
	if to == nil {
		return
	}
	if err := json.Unmarshal(stdout.Bytes(), to); err != nil {
		t.Fatal(err)
	}
}

// The default point of a sweep is what compare calls SWAG, the scale 0 what it
// calls SWA, the scale 1 of the diagonal what it calls SWAG-Diag: number for
// number.
func TestSweepIsCompare(t *testing.T) {
	t.Parallel()
	mnist := fewImages(t, absolute(t, "..", "..", "fixtures", "mnist"), 300)
	checkpoints, err := filepath.Glob(filepath.Join(mnist, "checkpoints", "epoch-2[4-9].onnx"))
	if err != nil || len(checkpoints) != 6 {
		t.Fatal(checkpoints, err)
	}
	posterior := filepath.Join(t.TempDir(), "p.safetensors")
	runJSON(t, nil, append([]string{"fit", "-q", "--task", "classes", "--mean", "0.1307", "--std", "0.3081", "-o", posterior}, checkpoints...)...)
	common := []string{"-q", "-n", "3", "--json", "--bn-data", filepath.Join(mnist, "train.npz")}
	data := []string{posterior, filepath.Join(mnist, "val.npz")}
	var compared struct {
		Methods []struct {
			Method                    string
			Accuracy, NLL, ECE, Brier float64
		}
	}
	var swept struct {
		Settings []struct {
			Setting                   string
			Accuracy, NLL, ECE, Brier float64
		}
	}
	runJSON(t, &compared, append(append([]string{"compare", "--methods", "swa,swag-diag,swag"}, common...), data...)...)
	runJSON(t, &swept, append(append([]string{"sweep", "--all-test", "--scales", "1", "--ranks", "0"}, common...), data...)...)
	found := 0
	for _, m := range compared.Methods {
		setting := map[string]string{"SWA": "SWA", "SWAG-Diag": "SWAG-Diag, scale 1", "SWAG": "SWAG, scale 0.5, rank 6"}[m.Method]
		for _, s := range swept.Settings {
			if s.Setting == setting {
				found++
				if s.NLL != m.NLL || s.Accuracy != m.Accuracy || s.ECE != m.ECE || s.Brier != m.Brier {
					t.Errorf("compare has %+v, sweep %+v", m, s)
				}
			}
		}
	}
	if found != 3 {
		t.Errorf("%d methods of %+v are settings of %+v, want 3", found, compared, swept)
	}
}
