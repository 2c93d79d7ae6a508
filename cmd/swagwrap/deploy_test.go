package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// What compare shows of a method is what its commands deploy: the same probabilities and
// the same NLL, bit for bit, of one run and of several, calibrated or not, tuned or not, and also where fewer
// than all images give the batch-norm statistics. Some methods run with every change, all of them every night.
func TestDeployed(t *testing.T) {
	t.Parallel()
	all, dir := absolute(t, "..", "..", "fixtures", "mnist"), t.TempDir()
	mnist, more := fewImages(t, all, 60), fewImages(t, all, 200)
	at := func(name string) string { return filepath.Join(dir, name) }
	var states []string
	for _, epoch := range []string{"26", "28", "30"} {
		states = append(states, filepath.Join(mnist, "states", "epoch-"+epoch+".pt"))
	}
	fit := []string{"fit", "-q", "--task", "classes", "--preprocess", "mean=0.1307 std=0.3081", "-o"}
	runJSON(t, nil, append(append(fit, at("p.safetensors"), "--template", filepath.Join(mnist, "model.onnx")), states...)...)
	checkpoints, err := filepath.Glob(filepath.Join(mnist, "checkpoints", "epoch-1[3-5].onnx"))
	if err != nil || len(checkpoints) != 3 {
		t.Fatal(checkpoints, err)
	}
	runJSON(t, nil, append(append(fit, at("q.safetensors")), checkpoints...)...)

	train, val, test := filepath.Join(more, "train.npz"), filepath.Join(mnist, "val.npz"), filepath.Join(mnist, "test.npz")
	for _, runs := range []struct {
		methods    []string // with every change, and every night
		posteriors []string
	}{
		{[]string{"sgd-temp sgd-vector sgd-ensemble swa-vector swag-temp swag-tuned", "sgd sgd-temp sgd-vector sgd-ensemble swa swa-temp swa-vector swag-diag swag swag-temp swag-tuned"}, []string{at("p.safetensors")}},
		{[]string{"deep-swa", "deep-sgd deep-swa multiswag"}, []string{at("p.safetensors"), at("q.safetensors")}},
	} {
		methods := runs.methods[reliability.Figure(0, 1)]
		// Batches are small, so that some of the images are enough for members.
		args := []string{"compare", "-q", "-b", "16", "-n", "2", "--json", "--force", "--methods", strings.ReplaceAll(methods, " ", ","), "--save", at("c.npz"), "--bn-data", train, "--val", val}
		if strings.Contains(methods, "tuned") {
			args = append(args, "--tune", at("settings.json"))
		}
		deployAll(t, dir, test, strings.Fields(methods), append(append(args, runs.posteriors...), test)...)
	}
}

// deployAll holds methods of a comparison against the ensembles that its commands make.
func deployAll(t *testing.T, dir, test string, methods []string, compare ...string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	var compared struct {
		Methods []struct {
			Key, Method       string
			NLL               float64
			Members, Networks int
			Deploy            []string
		}
		BatchNorm []struct {
			MemberExamples int `json:"member_examples"`
		} `json:"batch_norm"`
	}
	runJSON(t, &compared, compare...)
	labels, _, err := numpy.OpenLabels(test, "", 60, test)
	if err != nil {
		t.Fatal(err)
	}
	if len(compared.BatchNorm) == 1 && compared.BatchNorm[0].MemberExamples == 0 {
		t.Error("members see all examples")
	}
	check := func(name, ensemble, key string, nll float64) {
		t.Helper()
		out := at("probs.npz")
		runJSON(t, nil, "score", "-q", "-b", "16", "--force", "-o", out, ensemble, test)
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
			if args[0] == "export" {
				continue
			}
			for i, a := range args {
				if slices.Contains([]string{"ensemble.safetensors", "val-predictions.npz", "uncalibrated.safetensors"}, a) {
					args[i] = at(a)
				}
				if a == "-o" && args[0] != "score" {
					last = at(args[i+1])
				}
			}
			if args[0] == "score" {
				args = append(args, "-b", "16") // as in compare, for the same bits
			}
			runJSON(t, nil, slices.Insert(args, 1, "-q", "--force")...)
		}
		if m.Deploy != nil && last != "" {
			check(m.Method, last, m.Key, m.NLL)
			deployed = append(deployed, m.Key)
		}
	}
	if !slices.Equal(deployed, methods) {
		t.Errorf("deployed %q, want %q", deployed, methods)
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
