package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/step"
)

// writeMNIST writes pictures of the given classes, up to a number of each, with their labels.
func writeMNIST(t *testing.T, from, to string, counts [10]int) {
	t.Helper()
	images, labels := readMNIST(t, from)
	var pixels []byte
	var chosen []int
	for i, c := range labels {
		if counts[c] > 0 {
			counts[c]--
			pixels, chosen = append(pixels, images[i*784:][:784]...), append(chosen, c)
		}
	}
	if err := os.WriteFile(to, append(numpy.Header("|u1", len(chosen), 1, 28, 28), pixels...), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := "label\n"
	for _, c := range chosen {
		lines += fmt.Sprintln(c)
	}
	if err := os.WriteFile(to+".csv", []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Estimated shares are those of the data, in a whole run, in one that was killed, in parts, from FILE.meta.json, and in a model.
func TestShares(t *testing.T) {
	v := &victim{dir: t.TempDir()}
	at := v.at
	mnist := func(name string) string { return infertest.Path(infertest.MNIST, name) }
	mustRun(t, "fit", "-q", "--task", "classes", "--preprocess", "mean=0.1307 std=0.3081", "--augment", "none", "-o", at("p.safetensors"), mnist("checkpoints/epoch-29.onnx"), mnist("checkpoints/epoch-30.onnx"))
	mustRun(t, "sample", "-q", "-n", "2", "--bn-data", mnist("train.npz"), "--bn-samples", "200", "-o", at("e.safetensors"), at("p.safetensors"))
	writeMNIST(t, mnist("val.npz"), at("val.npy"), [10]int{80, 80, 80, 80, 80, 80, 80, 80, 80, 80})
	writeMNIST(t, mnist("test.npz"), at("same.npy"), [10]int{20, 20, 20, 20, 20, 20, 20, 20, 20, 20})
	writeMNIST(t, mnist("test.npz"), at("moved.npy"), [10]int{200, 0, 0, 0, 30, 0, 0, 0, 0, 170})
	mustRun(t, "score", "-q", "--probs", "--labels", at("val.npy.csv"), "-o", at("val.csv"), at("e.safetensors"), at("val.npy"))
	mustRun(t, "calibrate", "-q", "-o", at("c.safetensors"), "--ensemble", at("e.safetensors"), at("val.csv"))

	mustRun(t, "score", "-q", "-o", at("plain.csv"), at("c.safetensors"), at("same.npy"))
	_, printed := program(t, "score", "--shares", "estimate", "-o", at("same.csv"), at("c.safetensors"), at("same.npy"))
	if !strings.Contains(printed, "no sign that they have moved") || !equalFiles(t, at("plain.csv"), at("same.csv")) {
		t.Errorf("shares as before: %s", printed)
	}

	v.scores(t, "--shares", "estimate", "-b", "32", "--memory", "500K", at("c.safetensors"), at("moved.npy"))
	_, printed = program(t, "score", "--shares", "estimate", "--probs", "--labels", at("moved.npy.csv"), "-o", at("probs.csv"), at("c.safetensors"), at("moved.npy"))
	for _, want := range []string{"they have moved (p < 0.001)", "class 0: 5", "in training", "accuracy 9"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is missing: %s", want, printed)
		}
	}
	for _, n := range []int{1, 4} {
		stop{step.Rows, n}.kill(t, v.command())
	}
	if out, err := v.command().CombinedOutput(); err != nil || !bytes.Contains(out, []byte("accuracy to expect with these class shares: 9")) {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Rename(at("out.csv.meta.json"), at("known.json")); err != nil {
		t.Fatal(err)
	}
	v.check(t)
	score := func(shares string, words ...string) {
		t.Helper()
		mustRun(t, append([]string{"score", "-q", "-b", "32", "--shares", shares, "-o", at("out.csv"), at("c.safetensors"), at("moved.npy")}, words...)...)
	}
	score("estimate", "--part", "0/2")
	score("estimate", "--part", "1/2")
	if _, printed := program(t, "merge", "-o", at("out.csv")); !strings.Contains(printed, "class 0: 5") {
		t.Errorf("merge says: %s", printed)
	}
	v.check(t)
	score(at("known.json"))
	v.check(t)
	code, printed := program(t, "score", "-b", "32", "--shares", at("known.json"), "-o", "-", at("c.safetensors"), at("moved.npy"))
	if code != 0 || !strings.Contains(printed, string(v.want)) || strings.Contains(printed, "not like those of") || !strings.Contains(printed, "accuracy to expect with these class shares") {
		t.Errorf("on standard output: exit code %d: %s", code, printed)
	}

	mustRun(t, "export", "-q", "--shares", at("known.json"), "--check", at("moved.npy"), "-o", at("m.onnx"), at("c.safetensors"))
	if _, printed := program(t, "inspect", at("m.onnx")); !strings.Contains(printed, "class shares 0: 0.5") {
		t.Errorf("inspect says: %s", printed)
	}
	if _, printed := program(t, "inspect", at("probs.csv.meta.json")); !strings.Contains(printed, "class shares 0: 0.5") {
		t.Errorf("inspect says: %s", printed)
	}
}

func equalFiles(t *testing.T, a, b string) bool {
	t.Helper()
	one, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(one, other)
}

// Shares of a file are read in each form. What cannot be corrected is refused with the reason, and leaves no output.
func TestSharesRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	e, data := pictureEnsemble(t, dir, 2), filepath.Join("testdata", "images.npz")
	good := put("good.csv", "class,share,training\n0,0.2,0.4\n2,0.5,0.3\n1,0.3,0.3\n")
	mustRun(t, "score", "-q", "--shares", good, "-o", at("a.csv"), e, data)
	mustRun(t, "score", "-q", "-o", at("b.csv"), e, data)
	if equalFiles(t, at("a.csv"), at("b.csv")) {
		t.Error("shares change nothing")
	}
	if _, printed := program(t, "score", "--resume", "-o", at("a.csv"), e, data); !strings.Contains(printed, "shares") {
		t.Errorf("resumed without shares: %s", printed)
	}
	for _, tc := range []struct {
		code int
		want string
		args []string
	}{
		{65, "has no labelled predictions, which say what shares training had", []string{"--shares", "estimate", "-o", at("out.csv")}},
		{65, "does not know which class shares its probabilities assume", []string{"--shares", put("two.csv", "class,share\n0,0.2\n1,0.3\n2,0.5\n"), "-o", at("out.csv")}},
		{65, `class "3" is none of the 3 classes`, []string{"--shares", put("hole.csv", "class,share\n0,0.2\n2,0.3\n3,0.5\n"), "-o", at("out.csv")}},
		{65, `class "cat" is none of the`, []string{"--shares", put("cat.json", `{"0": 0.5, "cat": 0.25, "2": 0.25}`), "-o", at("out.csv")}},
		{65, `class "0.0" has two shares`, []string{"--shares", put("twice.csv", "class,share\n0,0.2\n0.0,0.3\n2,0.5\n"), "-o", at("out.csv")}},
		{65, "shares add up to 1.3, want 1", []string{"--shares", put("sum.csv", "class,share\n0,0.2\n1,0.3\n2,0.8\n"), "-o", at("out.csv")}},
		{65, "share -0.2, want a number from 0 to 1", []string{"--shares", put("minus.csv", "class,share\n0,-0.2\n1,0.4\n2,0.8\n"), "-o", at("out.csv")}},
		{65, "share of training 0, want a number above 0", []string{"--shares", put("zero.csv", "class,share,training\n0,0.2,0\n1,0.3,0.5\n2,0.5,0.5\n"), "-o", at("out.csv")}},
		{65, `no column "class" among`, []string{"--shares", at("a.csv"), "-o", at("out.csv")}},
		{65, `no column "share" among`, []string{"--shares", put("shares.csv", "class,shares\n0,1\n"), "-o", at("out.csv")}},
		{65, "missing.csv", []string{"--shares", at("missing.csv"), "-o", at("out.csv")}},
		{64, "needs all examples before the first row", []string{"--shares", "estimate", "-o", "-"}},
		{64, "--shares and --adapt", []string{"--shares", "estimate", "--adapt", data, "-o", at("out.csv")}},
		{64, "--next-labels", []string{"--shares", "estimate", "--next-labels", "3", "-o", at("out.csv")}},
	} {
		holdRefused(t, dir, tc.code, []string{"error: ", tc.want}, append(append([]string{"score"}, tc.args...), e, data)...)
	}
	holdRefused(t, dir, 64, []string{"a model is exported without data", "FILE.meta.json"}, "export", "--shares", "estimate", "-o", at("out.onnx"), e)
	holdRefused(t, dir, 64, []string{"--shares is for"}, "export", "--shares", good, "--member", "0", "-o", at("out.onnx"), e)
}
