package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// LoRA adapters as PEFT saves them are checkpoints. transformers and PEFT compute the same log-probability of each token in
// float64, merged or not, for one adapter, SWA and members. testdata/lora/make.py draws the members itself.
func TestLoRA(t *testing.T) {
	t.Parallel()
	in := func(name string) string { return filepath.Join("testdata", "lora", name) }
	var want struct {
		Text              []int
		Adapters, Members [][]float64
		SWA               []float64
	}
	js, err := os.ReadFile(in("expected.json"))
	if err == nil {
		err = json.Unmarshal(js, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out := func(name string) string { return filepath.Join(dir, name) }
	text, template := out("text.npy"), in("model.onnx")+"="+in("checkpoint-400")
	npy := numpy.Header("|u1", len(want.Text))
	for _, id := range want.Text {
		npy = append(npy, byte(id))
	}
	if err := os.WriteFile(text, npy, 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		code, printed := program(t, args...)
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", args[0], code, printed)
		}
		return printed
	}
	check := func(name string, posterior string, want []float64, sample ...string) {
		t.Helper()
		run(append(append([]string{"sample", "--force", "-o", out("e.safetensors")}, sample...), posterior)...)
		printed := run("score", "--force", "--text", "window=8 stride=4", "-o", out("out.jsonl"), out("e.safetensors"), text)
		got, most, sum := tokenLosses(t, out("out.jsonl")), 0.0, 0.0
		if len(got) != len(want) {
			t.Fatalf("%s: %d tokens, want %d", name, len(got), len(want))
		}
		for i, w := range want {
			most, sum = max(most, math.Abs(got[i]-w)), sum+w
		}
		if most > 1e-6 { // networks run in float32
			t.Errorf("%s: log-probabilities differ by %v", name, most)
		}
		if perplexity := fmt.Sprintf("perplexity %.4g", math.Exp(sum/float64(len(want)))); !strings.Contains(printed, perplexity) {
			t.Errorf("%s: not %s: %s", name, perplexity, printed)
		}
	}
	for k, losses := range want.Adapters {
		path := out(fmt.Sprintf("adapter-%d", k))
		run("fit", "--task", "next-token", "--template", template, "-o", path, in(fmt.Sprintf("checkpoint-%d00", k+1)))
		check(path, path, losses, "--method", "swa")
	}
	posterior := out("p.safetensors")
	if printed := run("fit", "--task", "next-token", "--template", template, "-o", posterior, in("")); !strings.Contains(printed, "the checkpoints are adapters: 12 tensors of the network stay as model.onnx has them") {
		t.Error(printed)
	}
	check("SWA", posterior, want.SWA, "--method", "swa")
	sums := make([]float64, len(want.SWA)) // of probabilities
	for m, losses := range want.Members {
		mean := make([]float64, len(losses))
		for i, l := range losses {
			sums[i] += math.Exp(-l)
			mean[i] = -math.Log(sums[i] / float64(m+1))
		}
		check(fmt.Sprint(m+1, " members"), posterior, mean, "--draws", "independent", "-n", fmt.Sprint(m+1))
	}

	// The scale alpha / r is in the graph. Adapters with another one are refused.
	other := out("checkpoint-500")
	if err := os.CopyFS(other, os.DirFS(in("checkpoint-100"))); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(in("checkpoint-100/adapter_config.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(other, "adapter_config.json"), bytes.Replace(config, []byte(`"lora_alpha": 3`), []byte(`"lora_alpha": 6`), 1), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, printed := program(t, "fit", "--task", "next-token", "--template", template, "-o", out("x"), in("checkpoint-100"), other); code != 65 || !strings.Contains(printed, "adapter_config.json: lora_alpha is ") {
		t.Errorf("exit code %d: %s", code, printed)
	}
}

// tokenLosses returns −log of the probabilities of the tokens that score has written.
func tokenLosses(t *testing.T, path string) (all []float64) {
	t.Helper()
	js, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(js) {
		var row struct {
			Losses []*float64 `json:"each_nll"` // null for what another window scores
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		for _, l := range row.Losses {
			if l != nil {
				all = append(all, *l)
			}
		}
	}
	return all
}
