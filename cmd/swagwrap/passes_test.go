package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/study/summary"
)

// Every command runs networks as often as the table says, at two sizes. A check with passes of its own shows here: it needs
// a reason, and a share of the work. -v counts examples through one network.
//
// The first command with a posterior and its data checks batch norm. That needs 14 examples at each of five checkpoints and
// at SWA, and SWA's pass over up to 512: with fewer, examples with classes missing pass (fixtures/bncheck). So the first
// small job exceeds a tenth of its passes. No later one does: "again" stands for a command after such a one. A settled run
// changes the places of examples in a batch. Only runs show whether a place changes a bit on this processor. The same runs
// measure memory and time for the plan.
//
// compare and ood check the form of scores on each of their three data sets: a set that was prepared in another way shows in
// its own scores only. What was found is kept for the same data. score looks at its first batch, and settle at the batch that
// its check of places runs.
func TestPasses(t *testing.T) {
	fixtures := absolute(t, "..", "..", "fixtures", "mnist")
	few := fewImages(t, fixtures, 100)
	for _, size := range []struct {
		name, data, members string
		want                map[string]string // by the first words of a line
	}{
		{"100 examples, 2 members", few, "2", map[string]string{
			"fit": "", "calibrate": "", "export ensemble": "",
			"sample":                "200 wanted, 200 checks (batch norm against checkpoints 184, form of scores 16)",
			"sample again":          "200 wanted, 0 checks",
			"sample --bn-samples":   "128 wanted, 164 checks (batch norm against checkpoints 148, form of scores 16)",
			"score":                 "200 wanted, 0 checks",
			"export":                "100 wanted, 100 checks (batch norm against checkpoints 84, form of scores 16)",
			"export again":          "100 wanted, 0 checks",
			"export --member again": "100 wanted, 0 checks",
			"compare":               "1500 wanted, 132 checks (batch norm against checkpoints 84, form of scores 48)",
			"compare again":         "1500 wanted, 32 checks (form of scores 32)",
			"ood again":             "1400 wanted, 0 checks",
		}},
		{"1,000 examples, 8 members", fixtures, "8", map[string]string{
			"fit": "", "calibrate": "", "export ensemble": "",
			"sample":                "8000 wanted, 612 checks (batch norm against checkpoints 596, form of scores 16)",
			"sample again":          "8000 wanted, 0 checks",
			"sample --bn-samples":   "512 wanted, 164 checks (batch norm against checkpoints 148, form of scores 16)",
			"score":                 "16000 wanted, 0 checks",
			"settle":                "16128 wanted, 160 checks (places in a batch 160)",
			"score settled":         "34688 wanted, 160 checks (places in a batch 160)",
			"export":                "1000 wanted, 100 checks (batch norm against checkpoints 84, form of scores 16)",
			"export again":          "1000 wanted, 0 checks",
			"export --member again": "1000 wanted, 0 checks",
		}},
	} {
		t.Run(size.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			replace := strings.NewReplacer("MNIST", fixtures, "DATA", size.data, "DIR", dir, "MEMBERS", size.members)
			seen := map[string]bool{}
			program := executable(t, dir)
			for _, line := range []struct{ name, args string }{
				{"fit", "fit --template MNIST/model.onnx --task classes --preprocess mean=0.1307;std=0.3081 --augment none -o DIR/p.safetensors MNIST/states"},
				{"sample", "sample -n MEMBERS --bn-data DATA/train.npz -o DIR/e.safetensors DIR/p.safetensors"},
				{"sample again", "sample -n MEMBERS --bn-data DATA/train.npz -o DIR/again.safetensors DIR/p.safetensors"},
				{"sample --bn-samples", "sample -n MEMBERS --bn-samples 64 --bn-data DATA/train.npz -o DIR/few.safetensors DIR/p.safetensors"},
				{"score", "score --probs -o DIR/s.csv DIR/e.safetensors DATA/val.npz"},
				{"settle", "settle -o DIR/settled.safetensors DIR/e.safetensors DATA/val.npz"},
				{"score settled", "score -o DIR/t.csv DIR/settled.safetensors DATA/test.npz"},
				{"calibrate", "calibrate -o DIR/c.safetensors --ensemble DIR/e.safetensors DIR/s.csv"},
				{"export", "export --bn-data DATA/train.npz -o DIR/swa.onnx DIR/p.safetensors"},
				{"export again", "export --bn-data DATA/train.npz -o DIR/swa-again.onnx DIR/p.safetensors"},
				{"export --member again", "export --member 1 --bn-data DATA/train.npz -o DIR/m.onnx DIR/p.safetensors"},
				{"export ensemble", "export -o DIR/e.onnx DIR/e.safetensors"},
				{"compare", "compare --members MEMBERS --bn-data DATA/train.npz --val DATA/val.npz --methods sgd,swa,swag --report DIR/c.html DIR/p.safetensors DATA/test.npz"},
				{"compare again", "compare --members MEMBERS --bn-data DATA/train.npz --val DATA/val.npz --methods sgd,swa,swag --report DIR/d.html DIR/p.safetensors DATA/test.npz"},
				{"ood again", "ood --members MEMBERS --bn-data DATA/train.npz --methods sgd,swa,swag --report DIR/o.html DIR/p.safetensors DATA/test.npz DATA/val.npz"},
			} {
				want, ok := size.want[line.name]
				if !ok {
					continue
				}
				seen[line.name] = true
				if got := passesOf(t, program, strings.Fields(replace.Replace(line.args)), map[bool]string{true: filepath.Join(dir, "findings"), false: "none"}[line.name == "sample" || strings.HasSuffix(line.name, "again")]); got != want {
					t.Errorf("%s: %q, want %q", line.name, got, want)
				}
			}
			if len(seen) != len(size.want) {
				t.Errorf("%d commands, want %d", len(seen), len(size.want))
			}
			var about summary.Sidecar
			js, err := os.ReadFile(filepath.Join(dir, "s.csv") + summary.Suffix)
			if err == nil {
				err = json.Unmarshal(js, &about)
			}
			if err != nil || !strings.HasPrefix(about.Runs.String(), size.want["score"]) {
				t.Errorf("%v beside the rows, want %q; %v", about.Runs, size.want["score"], err)
			}
		})
	}
}

var passesLine = regexp.MustCompile(`(?m)^runs: (.*?)(?:, 0 plan)?, 0 rounding \(examples through one network\)$`)

// passesOf runs a command line, in which ; stands for a space, and returns the passes that it tells of.
func passesOf(t *testing.T, program string, args []string, findings string) string {
	t.Helper()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], ";", " ")
	}
	c := exec.Command(program, append([]string{args[0], "-v"}, args[1:]...)...)
	c.Env = append(os.Environ(), findingsEnv+"="+findings)
	printed, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, printed)
	}
	m := passesLine.FindSubmatch(printed)
	if m == nil {
		if bytes.Contains(printed, []byte("runs: ")) {
			t.Errorf("%q: %s", args, printed)
		}
		return ""
	}
	return string(m[1])
}
