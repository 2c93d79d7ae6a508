package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/study/summary"
)

// Every command runs networks as often as the table says, at two sizes. A check with passes of its own shows here: it needs
// a reason, and a share of the work. -v counts examples through one network.
func TestPasses(t *testing.T) {
	fixtures := absolute(t, "..", "..", "fixtures", "mnist")
	few := fewImages(t, fixtures, 100)
	for _, size := range []struct {
		name, data, members string
		want                map[string]string // by the first words of a line
	}{
		{"100 examples, 2 members", few, "2", map[string]string{
			"fit": "", "sample": "200 wanted, 48 checks (batch norm against checkpoints 32, form of scores 16)",
			"sample --bn-samples": "128 wanted, 48 checks (batch norm against checkpoints 32, form of scores 16)",
			"score":               "200 wanted, 16 checks (form of scores 16)",
			"export":              "100 wanted, 48 checks (batch norm against checkpoints 32, form of scores 16)",
			"export --member":     "100 wanted, 48 checks (batch norm against checkpoints 32, form of scores 16)",
			"export ensemble":     "", "calibrate": "",
			"compare": "1500 wanted, 548 checks (batch norm against checkpoints 500, form of scores 48)",
			"ood":     "1400 wanted, 548 checks (batch norm against checkpoints 500, form of scores 48)",
		}},
		{"1,000 examples, 8 members", fixtures, "8", map[string]string{
			"fit": "", "sample": "8000 wanted, 796 checks (batch norm against checkpoints 780, form of scores 16)",
			"sample --bn-samples": "512 wanted, 48 checks (batch norm against checkpoints 32, form of scores 16)",
			"score":               "16000 wanted, 16 checks (form of scores 16)",
			"export":              "1000 wanted, 96 checks (batch norm against checkpoints 80, form of scores 16)",
			"export --member":     "1000 wanted, 96 checks (batch norm against checkpoints 80, form of scores 16)",
			"export ensemble":     "", "calibrate": "",
		}},
	} {
		t.Run(size.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			replace := strings.NewReplacer("MNIST", fixtures, "DATA", size.data, "DIR", dir, "MEMBERS", size.members)
			seen := map[string]bool{}
			for _, line := range []struct{ name, args string }{
				{"fit", "fit --template MNIST/model.onnx --task classes --preprocess mean=0.1307;std=0.3081 --augment none -o DIR/p.safetensors MNIST/states"},
				{"sample", "sample -n MEMBERS --bn-data DATA/train.npz -o DIR/e.safetensors DIR/p.safetensors"},
				{"sample --bn-samples", "sample -n MEMBERS --bn-samples 64 --bn-data DATA/train.npz -o DIR/few.safetensors DIR/p.safetensors"},
				{"score", "score --probs -o DIR/s.csv DIR/e.safetensors DATA/val.npz"},
				{"calibrate", "calibrate -o DIR/c.safetensors --ensemble DIR/e.safetensors DIR/s.csv"},
				{"export", "export --bn-data DATA/train.npz -o DIR/swa.onnx DIR/p.safetensors"},
				{"export --member", "export --member 1 --bn-data DATA/train.npz -o DIR/m.onnx DIR/p.safetensors"},
				{"export ensemble", "export -o DIR/e.onnx DIR/e.safetensors"},
				{"compare", "compare --members MEMBERS --bn-data DATA/train.npz --val DATA/val.npz --methods sgd,swa,swag --report DIR/c.html DIR/p.safetensors DATA/test.npz"},
				{"ood", "ood --members MEMBERS --bn-data DATA/train.npz --methods sgd,swa,swag --report DIR/o.html DIR/p.safetensors DATA/test.npz DATA/val.npz"},
			} {
				want, ok := size.want[line.name]
				if !ok {
					continue
				}
				seen[line.name] = true
				if got := passesOf(t, strings.Fields(replace.Replace(line.args))); got != want {
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

var passesLine = regexp.MustCompile(`(?m)^runs: (.*), 0 plan, 0 rounding \(examples through one network\)$`)

// passesOf runs a command line, in which ; stands for a space, and returns the passes that it tells of.
func passesOf(t *testing.T, args []string) string {
	t.Helper()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], ";", " ")
	}
	var stdout, stderr bytes.Buffer
	line := append([]string{"swagwrap", args[0], "-v"}, args[1:]...)
	if code := run(context.Background(), line, &stdout, &stderr); code != 0 {
		t.Fatalf("%q ends with %d: %s", line, code, &stderr)
	}
	m := passesLine.FindStringSubmatch(stderr.String())
	if m == nil {
		if strings.Contains(stderr.String(), "runs: ") {
			t.Errorf("%q: %s", line, &stderr)
		}
		return ""
	}
	return m[1]
}
