package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// Each command with --adapt warns of a sorted target of mostly one class. try makes an adapted ensemble: score goes back.
func TestAdaptChecks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mnist := func(name string) string { return infertest.Path(infertest.MNIST, name) }
	writeSortedMNIST(t, mnist("val.npz"), at("sorted.npy"))
	checkpoints := []string{mnist("checkpoints/epoch-29.onnx"), mnist("checkpoints/epoch-30.onnx")}
	reading := []string{"--preprocess", "mean=0.1307 std=0.3081"}
	training := []string{"--bn-data", mnist("train.npz"), "--bn-samples", "200"}
	run := func(words ...any) string {
		t.Helper()
		var args []string
		for _, w := range words {
			if list, ok := w.([]string); ok {
				args = append(args, list...)
			} else {
				args = append(args, w.(string))
			}
		}
		code, said := program(t, args...)
		if code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, said)
		}
		return strings.Join(strings.Fields(said), " ")
	}
	run("fit", "-q", "--task", "classes", reading, "--augment", "none", "-o", at("p"), checkpoints)
	run("sample", "-q", "-n", "2", training, "-o", at("e"), at("p"))
	adapt, methods := []string{"--adapt", at("sorted.npy")}, []string{"--members", "2", "--methods", "sgd,swa-temp,swa-temp-adapted", "--val", mnist("val.npz")}
	for name, words := range map[string][]any{
		"sample":  {"sample", "-n", "2", training, adapt, "-o", at("a"), at("p")},
		"score":   {"score", adapt, "-o", at("a.csv"), at("e"), at("sorted.npy")},
		"compare": {"compare", training, adapt, methods, at("p"), mnist("test.npz")},
		"try":     {"try", training, adapt, methods, reading, "--augment", "none", "--task", "classes", "-o", at("r"), checkpoints, mnist("test.npz")},
	} {
		said := run(words...)
		for _, want := range []string{"neighbouring examples are more alike than in a shuffle", "of the predictions are of class 1", "means at the first layer move by"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s does not say %q: %s", name, want, said)
			}
		}
	}
	made, err := filepath.Glob(at("r/*.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range made {
		if name := filepath.Base(e); name != "posterior.safetensors" {
			run("score", "-q", "--adapt", "none", "-o", at(name+".csv"), e, at("sorted.npy"))
		}
	}
	if len(made) < 2 {
		t.Errorf("try made %q", made)
	}
}

// writeSortedMNIST writes 150 pictures of class 1, and then 40 of class 7.
func writeSortedMNIST(t *testing.T, from, to string) {
	t.Helper()
	images, labels := readMNIST(t, from)
	var pixels []byte
	n := 0
	for _, want := range []struct{ class, count int }{{1, 150}, {7, 40}} {
		left := want.count
		for i, c := range labels {
			if c == want.class && left > 0 {
				pixels = append(pixels, images[i*784:][:784]...)
				left--
				n++
			}
		}
	}
	if err := os.WriteFile(to, append(numpy.Header("|u1", n, 1, 28, 28), pixels...), 0o600); err != nil {
		t.Fatal(err)
	}
}
