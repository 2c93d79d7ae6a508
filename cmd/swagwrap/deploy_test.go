package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/promise"
)

// What compare shows of a method is what its commands deploy: the same probabilities and
// the same NLL, bit for bit, of one run and of several, calibrated or not; and what --tune
// writes is the same again. Some methods run with every change, all of them every night.
func TestDeployed(t *testing.T) {
	t.Parallel()
	mnist, dir := fewImages(t, absolute(t, "..", "..", "fixtures", "mnist"), 60), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	var states []string
	for _, epoch := range []string{"26", "28", "30"} {
		states = append(states, filepath.Join(mnist, "states", "epoch-"+epoch+".pt"))
	}
	fit := []string{"fit", "-q", "--task", "classes", "--mean", "0.1307", "--std", "0.3081", "-o"}
	runJSON(t, nil, append(append(fit, at("p.safetensors"), "--template", filepath.Join(mnist, "model.onnx")), states...)...)
	checkpoints, err := filepath.Glob(filepath.Join(mnist, "checkpoints", "epoch-1[3-5].onnx"))
	if err != nil || len(checkpoints) != 3 {
		t.Fatal(checkpoints, err)
	}
	runJSON(t, nil, append(append(fit, at("q.safetensors")), checkpoints...)...)

	methods := []string{"sgd-ensemble swa-vector swag-temp swag-tuned deep-swa",
		"sgd sgd-ensemble swa swa-temp swa-vector swag-diag swag swag-temp swag-tuned deep-sgd deep-swa multiswag"}[promise.Figure(0, 1)]
	var compared struct {
		Methods []struct {
			Key, Method       string
			NLL               float64
			Members, Networks int
			Deploy            []string
		}
	}
	train, val, test := filepath.Join(mnist, "train.npz"), filepath.Join(mnist, "val.npz"), filepath.Join(mnist, "test.npz")
	runJSON(t, &compared, "compare", "-q", "-n", "2", "--json", "--methods", strings.ReplaceAll(methods, " ", ","), "--tune", at("settings.json"), "--save", at("c.npz"), "--bn-data", train, "--val", val, at("p.safetensors"), at("q.safetensors"), test)
	labels, _, err := numpy.OpenLabels(test, "labels", "", 60, test)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name, ensemble, key string, nll float64) {
		t.Helper()
		out := at("probs.npz")
		runJSON(t, nil, "score", "-q", "--force", "-o", out, ensemble, test)
		got, want := array(t, out, "probs"), array(t, at("c.npz"), "probs_"+strings.ReplaceAll(key, "-", "_"))
		if !slices.Equal(got, want) {
			t.Errorf("%s: the ensemble says other than the comparison", name)
		}
		p, err := calibrate.NewPredictions(got, 10, labels)
		if err != nil {
			t.Fatal(err)
		}
		if e := calibrate.Evaluate(p, calibrate.EvaluateOptions{}); e.NLL != nll {
			t.Errorf("%s: NLL %v, and the comparison shows %v", name, e.NLL, nll)
		}
	}
	var deployed []string
	for _, m := range compared.Methods {
		if (m.Networks == 1) != (m.Members == 1) {
			t.Errorf("%s: %d networks, %d members", m.Method, m.Networks, m.Members)
		}
		last := ""
		for _, command := range m.Deploy {
			args := strings.Fields(command)[1:]
			for i, a := range args {
				if slices.Contains([]string{"ensemble.safetensors", "val.npz", "calibrated.safetensors"}, a) {
					args[i] = at(a)
				}
				if a == "-o" && args[0] != "score" {
					last = at(args[i+1])
				}
			}
			runJSON(t, nil, slices.Insert(args, 1, "-q", "--force")...)
		}
		if m.Deploy != nil && last != "" {
			check(m.Method, last, m.Key, m.NLL)
			deployed = append(deployed, m.Key)
		}
		if m.Key == "swag-tuned" {
			runJSON(t, nil, "sample", "-q", "-o", at("tuned.safetensors"), "--settings", at("settings.json"), "--bn-data", train, at("p.safetensors"))
			check("settings.json", at("tuned.safetensors"), m.Key, m.NLL)
		}
	}
	if want := strings.Fields(methods); !slices.Equal(deployed, want) {
		t.Errorf("deployed %q, want %q", deployed, want)
	}
}

// array reads one of a file's.
func array(t *testing.T, path, key string) []float64 {
	t.Helper()
	f, err := numpy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := f.Read(key, numpy.Role{OK: func(numpy.Type) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	return a.Float64s()
}
