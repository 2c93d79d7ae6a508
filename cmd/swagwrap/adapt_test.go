package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/step"
)

// Each command with --adapt warns of a sorted target of mostly one class. try makes an adapted ensemble: score goes back.
func TestAdaptChecks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mnist := func(name string) string { return infertest.Path(infertest.MNIST, name) }
	writeSortedMNIST(t, mnist("val.npz"), at("sorted.npy"))
	few := fewImages(t, filepath.Dir(mnist("test.npz")), 500)
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
		code, printed := program(t, args...)
		if code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, printed)
		}
		return strings.Join(strings.Fields(printed), " ")
	}
	run("fit", "-q", "--task", "classes", reading, "--augment", "none", "-o", at("p"), checkpoints)
	run("sample", "-q", "-n", "2", training, "-o", at("e"), at("p"))
	adapt, methods := []string{"--adapt", at("sorted.npy")}, []string{"--members", "2", "--methods", "sgd,swa-temp,swa-temp-adapted", "--val", filepath.Join(few, "val.npz")}
	for name, words := range map[string][]any{
		"sample":  {"sample", "-n", "2", training, adapt, "-o", at("a"), at("p")},
		"score":   {"score", adapt, "-o", at("a.csv"), at("e"), at("sorted.npy")},
		"compare": {"compare", training, adapt, methods, at("p"), filepath.Join(few, "test.npz")},
		"try":     {"try", training, adapt, methods, reading, "--augment", "none", "--task", "classes", "-o", at("r"), checkpoints, filepath.Join(few, "test.npz")},
	} {
		printed := run(words...)
		if name == "try" {
			notes, err := os.ReadFile(at("r/notes.txt"))
			if err != nil {
				t.Fatal(err)
			}
			printed += " " + strings.Join(strings.Fields(string(notes)), " ")
		}
		for _, want := range []string{"neighbouring examples are more alike than in a shuffle", "of the predictions are class 1", "means at the first layer move by"} {
			if !strings.Contains(printed, want) {
				t.Errorf("%s does not say %q: %s", name, want, printed)
			}
		}
		if changes := "Adapting changes the accuracy of SWA-Temp by "; strings.Contains(printed, changes) != (name == "compare" || name == "try") {
			t.Errorf("%s: %q is missing, or too much: %s", name, changes, printed)
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

// What cannot be adapted to is refused, by each command, with the reason and what to do. No output is left.
func TestAdaptRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mnist := func(name string) string { return infertest.Path(infertest.MNIST, name) }
	array := func(name, kind string, each int, shape ...int) string {
		t.Helper()
		n := each
		for _, d := range shape {
			n *= d
		}
		b := numpy.Header(kind, shape...)
		for i := range n {
			b = append(b, byte(i*7%11*(1-each/4))) // floats and integers are zeros
		}
		if err := os.WriteFile(at(name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	mustRun(t, "fit", "-q", "--task", "classes", "--preprocess", "mean=0.1307 std=0.3081", "--augment", "none", "-o", at("p"), mnist("checkpoints/epoch-29.onnx"), mnist("checkpoints/epoch-30.onnx"))
	mustRun(t, "sample", "-q", "-n", "1", "--bn-data", mnist("train.npz"), "--bn-samples", "100", "-o", at("e"), at("p"))
	mustRun(t, "fit", "-q", "--task", "regression", "--targets", "head=none", "-o", at("table-p"), infertest.Path(infertest.Small, "table-1.onnx"), infertest.Path(infertest.Small, "table-2.onnx"))
	mustRun(t, "sample", "-q", "-n", "1", "-o", at("table-e"), at("table-p"))
	few, right := array("few.npy", "|u1", 1, 63, 1, 28, 28), array("right.npy", "|u1", 1, 64, 1, 28, 28)
	rows := array("rows.npy", "<f4", 4, 100, 3)
	for _, tc := range []struct {
		name, target, posterior, ensemble string
		code                              int
		want                              []string
	}{
		{"63 pictures", few, "p", "e", 65, []string{"63 images, and --adapt needs at least 64", "hint: give more examples of the same source; they need no labels"}},
		{"none", array("none.npy", "|u1", 1, 0, 1, 28, 28), "p", "e", 65, nil},
		{"another size", array("size.npy", "<f4", 4, 100, 1, 27, 27), "p", "e", 65, nil},
		{"more channels", array("channels.npy", "<f4", 4, 100, 3, 28, 28), "p", "e", 65, nil},
		{"integers", array("integers.npy", "<i8", 8, 100, 1, 28, 28), "p", "e", 65, nil},
		{"no examples by themselves", array("flat.npy", "<f4", 4, 100), "p", "e", 65, nil},
		{"missing", at("missing.npy"), "p", "e", 65, []string{"missing.npy"}},
		{"a posterior", at("p"), "p", "e", 65, nil},
		{"no batch norm", rows, "table-p", "table-e", 65, []string{"has no batch norm, and --adapt changes batch-norm statistics alone", "hint: what helps without batch norm: fit the temperature on labelled examples that are like the target (--val), or train again with the damage among the augmentations"}},
	} {
		data, val := right, mnist("val.npz")
		training := []string{"--bn-data", mnist("train.npz"), "--bn-samples", "100"}
		if tc.posterior == "table-p" {
			data, val, training = rows, infertest.Path(infertest.Small, "table-val.csv"), nil
		}
		for _, args := range [][]string{
			append([]string{"sample", "-n", "1", "--adapt", tc.target, "-o", at("out"), at(tc.posterior)}, training...),
			{"score", "--adapt", tc.target, "-o", at("out.csv"), at(tc.ensemble), data},
			append([]string{"compare", "--methods", "swa-temp,swa-temp-adapted", "--adapt", tc.target, "--report", at("out.html"), at(tc.posterior), val}, training...),
		} {
			if tc.name == "no batch norm" && args[0] == "compare" {
				continue // its data need labels that the table here has not
			}
			holdRefused(t, dir, tc.code, append(tc.want, "error: "), args...)
		}
	}
	for _, tc := range []struct {
		words []string
		code  int
		want  string
	}{
		{[]string{"score", "--adapt", "blocks=63", "-o", at("out.csv"), at("e"), right}, 64, `--adapt blocks=63: "63": want 64 to `},
		{[]string{"score", "--adapt", "blocks=", "-o", at("out.csv"), at("e"), right}, 64, `--adapt blocks=: "": want 64 to `},
		{[]string{"score", "--adapt", "blocks=64", "-o", at("out.csv"), at("e"), few}, 65, "63 images, and --adapt needs at least 64"},
		{[]string{"score", "--adapt", "blocks=64", "-o", at("out.csv"), at("table-e"), rows}, 65, "has no batch norm"},
		{[]string{"score", "--adapt", "none", "-o", at("out.csv"), at("e"), right}, 65, "its batch-norm statistics are not adapted"},
		{[]string{"score", "--adapt-weight", "0.3", "-o", at("out.csv"), at("e"), right}, 64, "--adapt TARGET"},
		{[]string{"sample", "--adapt", "blocks=64", "--bn-data", mnist("train.npz"), "-o", at("out"), at("p")}, 64, "--adapt blocks=64 is for score"},
		{[]string{"compare", "--adapt", "blocks=64", "--bn-data", mnist("train.npz"), "--report", at("out.html"), at("p"), mnist("val.npz")}, 64, "--adapt blocks=64 is for score"},
		{[]string{"sample", "--adapt", "none", "--bn-data", mnist("train.npz"), "-o", at("out"), at("p")}, 64, "--adapt none is for score"},
	} {
		holdRefused(t, dir, tc.code, []string{"error: ", tc.want}, tc.words...)
	}
}

// holdRefused runs a command that must fail, and leave no output.
func holdRefused(t *testing.T, dir string, code int, want []string, args ...string) {
	t.Helper()
	got, printed := program(t, args...)
	if got != code {
		t.Errorf("%q: exit code %d, want %d: %s", args, got, code, printed)
	}
	printed = strings.Join(strings.Fields(printed), " ")
	for _, w := range want {
		if !strings.Contains(printed, w) {
			t.Errorf("%q does not say %q: %s", args, w, printed)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "out*")); len(left) > 0 || err != nil {
		t.Errorf("%q: left behind: %q, %v", args, left, err)
	}
}

// A run with adapted statistics that was killed goes on with the bytes of a whole run: to a target, to blocks, and back.
func TestAdaptKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	fixture := fewImages(t, absolute(t, "..", "..", "fixtures", "mnist"), victimRows)
	train, val := filepath.Join(fixture, "train.npz"), filepath.Join(fixture, "val.npz")
	mustRun(t, "fit", "-q", "--task", "classes", "-o", at("p.safetensors"), filepath.Join(fixture, "checkpoints", "epoch-29.onnx"), filepath.Join(fixture, "checkpoints", "epoch-30.onnx"))
	mustRun(t, "sample", "-q", "-n", "2", "--bn-data", train, "--bn-samples", "128", "--adapt", val, "-o", at("e.safetensors"), at("p.safetensors"))
	var other []byte
	for _, adapt := range [][]string{{"--adapt", "none"}, {"--adapt", train, "--adapt-weight", "0.4"}, {"--adapt", "blocks=150"}, nil} {
		v := &victim{dir: t.TempDir()}
		args := append([]string{"-b", "32", "--memory", "500K", at("e.safetensors"), val}, adapt...)
		v.scores(t, args...)
		if bytes.Equal(v.want, other) {
			t.Fatalf("%q changes nothing", adapt)
		}
		other = v.want
		for _, n := range []int{1, 4} { // inside the first block, and the second
			stop{step.Rows, n}.kill(t, v.command())
		}
		if out, err := v.command().CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", adapt, err, out)
		}
		v.check(t)
		for _, part := range []string{"0/2", "1/2"} {
			mustRun(t, append([]string{"score", "-q", "--part", part, "-o", v.at("out.csv")}, args...)...)
		}
		mustRun(t, "merge", "-q", "-o", v.at("out.csv"))
		v.check(t)
	}
}

// A target that is nearly all of one class is refused where the usual shares are known. One with all classes is not.
func TestAdaptOneClass(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mnist := func(name string) string { return infertest.Path(infertest.MNIST, name) }
	few := filepath.Join(fewImages(t, filepath.Dir(mnist("test.npz")), 500), "val.npz")
	training := []string{"--bn-data", mnist("train.npz"), "--bn-samples", "200"}
	mustRun(t, "fit", "-q", "--task", "classes", "--preprocess", "mean=0.1307 std=0.3081", "--augment", "none", "-o", at("p"), mnist("checkpoints/epoch-29.onnx"), mnist("checkpoints/epoch-30.onnx"))
	mustRun(t, append([]string{"sample", "-q", "-n", "2", "-o", at("e"), at("p")}, training...)...)
	mustRun(t, "score", "-q", "--probs", "-o", at("val.csv"), at("e"), few)
	mustRun(t, "calibrate", "-q", "-o", at("c"), "--ensemble", at("e"), at("val.csv"))
	writeMNIST(t, mnist("test.npz"), at("one.npy"), [10]int{3: 200})
	writeMNIST(t, mnist("test.npz"), at("all.npy"), [10]int{20, 20, 20, 20, 20, 20, 20, 20, 20, 20})
	commands := func(target string) [][]string {
		return [][]string{
			append([]string{"sample", "-n", "2", "--adapt", target, "-o", at("out"), at("p")}, training...),
			{"score", "--adapt", target, "-o", at("out.csv"), at("c"), few},
			append([]string{"compare", "--members", "2", "--methods", "swa-temp,swa-temp-adapted", "--val", few, "--adapt", target, "--report", at("out.html"), at("p"), few}, training...),
		}
	}
	for _, args := range commands(at("one.npy")) {
		holdRefused(t, dir, 65, []string{"of the predictions are class 3, and usual are", "statistics of one class do harm", "hint: give data with the classes in their usual shares, or leave out --adapt"}, args...)
	}
	for _, args := range commands(at("all.npy")) {
		mustRun(t, args...)
	}
}
