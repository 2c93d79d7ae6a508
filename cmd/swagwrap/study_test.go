package main

import (
	"bytes"
	"encoding/json"
	"os"
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

// The default point of a sweep is what compare calls SWAG, the scale 0 what it calls SWA, the scale 1 of the diagonal what
// it calls SWAG-Diag: number for number. compare --tune chooses what sweep chooses.
func TestSweepIsCompare(t *testing.T) {
	t.Parallel()
	mnist := fewImages(t, absolute(t, "..", "..", "fixtures", "mnist"), 100)
	checkpoints, err := filepath.Glob(filepath.Join(mnist, "checkpoints", "epoch-2[4-9].onnx"))
	if err != nil || len(checkpoints) != 6 {
		t.Fatal(checkpoints, err)
	}
	posterior := filepath.Join(t.TempDir(), "p.safetensors")
	runJSON(t, nil, append([]string{"fit", "-q", "--task", "classes", "--preprocess", "mean=0.1307 std=0.3081", "-o", posterior}, checkpoints...)...)
	common := []string{"-q", "-n", "3", "--json", "--bn-data", filepath.Join(mnist, "train.npz")}
	data := []string{posterior, filepath.Join(mnist, "val.npz")}
	var compared struct {
		Methods []struct {
			Method                    string
			Accuracy, NLL, ECE, Brier float64
		}
	}
	type choice struct {
		Setting        string
		Temperature    float64
		NLL            float64
		OfSettings     int     `json:"of_settings"`
		BootstrapShare float64 `json:"bootstrap_share"`
	}
	var swept struct {
		Settings []struct {
			Setting string
			Plain   struct {
				Accuracy, NLL, ECE, Brier float64
			} `json:"without_temperature"`
		}
		Choice choice
	}
	var tuned struct{ Chosen choice }
	runJSON(t, &compared, append(append([]string{"compare", "--methods", "swa,swag-diag,swag"}, common...), data...)...)
	runJSON(t, &swept, append(append([]string{"sweep", "--all-test", "--scale", "1", "--rank", "0"}, common...), data...)...)
	found := 0
	for _, m := range compared.Methods {
		setting := map[string]string{"SWA": "SWA", "SWAG-Diag": "SWAG-Diag, scale 1", "SWAG": "SWAG, scale 0.5, rank 6"}[m.Method]
		for _, s := range swept.Settings {
			if s.Setting == setting {
				found++
				if p := s.Plain; p.NLL != m.NLL || p.Accuracy != m.Accuracy || p.ECE != m.ECE || p.Brier != m.Brier {
					t.Errorf("compare has %+v, sweep %+v", m, s)
				}
			}
		}
	}
	if found != 3 {
		t.Errorf("%d methods of %+v are settings of %+v, want 3", found, compared, swept)
	}
	settings := filepath.Join(t.TempDir(), "settings.json")
	common = append(common, "--val", filepath.Join(mnist, "test.npz"))
	runJSON(t, &compared, append(append([]string{"compare", "--methods", "swa-temp", "--tune", settings}, common...), data...)...)
	runJSON(t, &swept, append(append([]string{"sweep"}, common...), data...)...)
	js, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(js, &tuned); err != nil {
		t.Fatal(err)
	}
	if tuned.Chosen != swept.Choice || tuned.Chosen.OfSettings < 10 || !(tuned.Chosen.Temperature > 0) {
		t.Errorf("compare --tune chooses %+v, sweep %+v", tuned.Chosen, swept.Choice)
	}
}
