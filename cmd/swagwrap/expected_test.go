package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/expect"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/corrupt"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/study/summary"
)

// TestExpectedAccuracy damages test pictures of MNIST, by kind and severity, and scores them without labels. The interval of the accuracy
// to expect, or its bound, holds the true accuracy for at least 90 % of all damages, and intervals also by size of the drop. Bounds
// fail where the network stays right though it has become unsure, as docs/unlabelled.md says: brighter pictures, and those of low contrast,
// in 10 and 12 of 12 cases with independent draws and pairs. One may miss: of
// nine intervals of 95 %, one does in every third set of pictures. With 20 seeds each, on the same pictures, independent draws held 176
// and 178 of 180 (two members, eight), and pairs 175 and 174; no seed missed two. Where predictions are distributed otherwise nothing is
// claimed. On clean pictures the value is within 5 points. Parts merge to the same sidecar.
func TestExpectedAccuracy(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mnist := func(name string) string { return infertest.Path(infertest.MNIST, name) }
	each := reliability.Figure(100, 300)
	labels, names := damagedMNIST(t, mnist("test.npz"), at("damaged.npy"), at("kinds.csv"), each, reliability.Figure(3, corrupt.Severities))
	run := func(args ...string) {
		t.Helper()
		if code, printed := program(t, args...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, printed)
		}
	}
	var checkpoints []string
	for k := range reliability.Figure(6, 30) {
		checkpoints = append(checkpoints, mnist(fmt.Sprintf("checkpoints/epoch-%02d.onnx", 30-k)))
	}
	run(append([]string{"fit", "-q", "--task", "classes", "--preprocess", "mean=0.1307 std=0.3081", "--augment", "none", "-o", at("p.safetensors")}, checkpoints...)...)
	run("sample", "-q", "-n", strconv.Itoa(reliability.Figure(2, 8)), "--bn-data", mnist("train.npz"), "-o", at("e.safetensors"), at("p.safetensors"))
	run("score", "-q", "-o", at("val.npz"), at("e.safetensors"), mnist("val.npz"))
	run("calibrate", "-q", "-o", at("c.safetensors"), "--ensemble", at("e.safetensors"), at("val.npz"))
	groups := "report=" + at("kinds.csv") + ":kind"
	run("score", "-q", "-o", at("out.csv"), "--groups", groups, at("c.safetensors"), at("damaged.npy"))
	for k := range 2 {
		run("score", "-q", "-o", at("parts.csv"), "--part", fmt.Sprintf("%d/2", k), at("c.safetensors"), at("damaged.npy"))
	}
	run("merge", "-q", "-o", at("parts.csv"), "--groups", groups)
	printed, merged := expectedOf(t, at("out.csv")), expectedOf(t, at("parts.csv"))
	if is, want := jsonOf(t, merged), jsonOf(t, printed); is != want {
		t.Errorf("parts: %s, want %s", is, want)
	}
	target := accuracies(t, at("out.csv"), labels, names)
	var held, all [4]int // by size of the drop; the last is of all
	silent := 0
	for _, g := range printed.Groups {
		is := target[g.Name]
		if g.Name == "clean" && (g.Bound != "" || g.Accuracy-is > 0.05 || is-g.Accuracy > 0.05) {
			t.Errorf("clean: %+v, and the accuracy is %v", g, is)
		}
		if g.Bound == expect.Shares {
			silent++
			continue
		}
		size := 0
		for _, drop := range []float64{0.05, 0.15} {
			if g.Validation-is > drop {
				size++
			}
		}
		ok := is <= g.High && (g.Bound != "" || g.Low <= is)
		for _, k := range []int{size, 3} {
			if k < 3 && g.Bound != "" {
				continue
			}
			if all[k]++; ok {
				held[k]++
			}
		}
		if !ok {
			t.Logf("%s: accuracy %.3f, %+v", g.Name, is, g.Estimate)
		}
	}
	t.Logf("held %d of %d; intervals by drop up to 5 points, up to 15, and above: %d of %d; nothing is claimed of %d", held[3], all[3], held[:3], all[:3], silent)
	if silent*5 > len(printed.Groups) {
		t.Errorf("nothing is claimed of %d of %d kinds", silent, len(printed.Groups))
	}
	for k := range all {
		if (all[k] >= 10 || k == 3) && all[k]-held[k] > max(1, all[k]/10) {
			t.Errorf("size %d: %d of %d intervals hold", k, held[k], all[k])
		}
	}
}

// readMNIST returns the pixels of the pictures of an archive, 784 each, and their labels.
func readMNIST(t *testing.T, from string) (pixels []byte, labels []int) {
	t.Helper()
	f, err := numpy.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.Read("images", numpy.Values)
	if err != nil {
		t.Fatal(err)
	}
	labels, err = f.ReadLabels("labels", all.Shape[0], from)
	if err != nil {
		t.Fatal(err)
	}
	return all.Data, labels
}

// damagedMNIST writes pictures, each of a kind of damage, and a table of these. It returns their labels and kinds.
func damagedMNIST(t *testing.T, from, images, kinds string, each, severities int) (labels []int, names []string) {
	t.Helper()
	digits, known := readMNIST(t, from)
	corruptions, err := corrupt.Parse("all", corrupt.Pictures)
	if err != nil {
		t.Fatal(err)
	}
	var pixels []byte
	table := "kind\n"
	add := func(name string, change func(p picture.Picture, seed uint64) picture.Picture) {
		for range each {
			i := len(labels) % len(known)
			p := picture.Picture{W: 28, H: 28, C: 1, Pix: digits[i*784:][:784]}
			pixels = append(pixels, change(p, 1<<40+uint64(len(labels))).Pix...)
			labels, names, table = append(labels, known[i]), append(names, name), table+name+"\n"
		}
	}
	add("clean", func(p picture.Picture, _ uint64) picture.Picture { return p })
	for k, c := range corruptions[:reliability.Figure(5, len(corruptions))] {
		for s := 1 + k%reliability.Figure(2, 1); s <= severities; s += reliability.Figure(2, 1) {
			add(fmt.Sprint(c.Name, s), func(p picture.Picture, seed uint64) picture.Picture { return c.Picture(p, s, seed) })
		}
	}
	data := append(numpy.Header("|u1", len(labels), 1, 28, 28), pixels...)
	if os.WriteFile(images, data, 0o600) != nil || os.WriteFile(kinds, []byte(table), 0o600) != nil {
		t.Fatal("cannot write")
	}
	return labels, names
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	js, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(js)
}

func expectedOf(t *testing.T, path string) *summary.Expected {
	t.Helper()
	s, err := summary.ReadSidecar(path + summary.Suffix)
	if err != nil || s.Expected == nil || s.Expected.All == nil {
		t.Fatalf("%s: %v, no accuracy to expect", path, err)
	}
	return s.Expected
}

// accuracies returns the true accuracy by kind of the predictions in a CSV file.
func accuracies(t *testing.T, path string, labels []int, names []string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || len(rows) != len(labels)+1 {
		t.Fatal(len(rows), err)
	}
	column := 0
	for rows[0][column] != "prediction" {
		column++
	}
	right, n := map[string]float64{}, map[string]float64{}
	for i, label := range labels {
		n[names[i]]++
		if rows[i+1][column] == strconv.Itoa(label) {
			right[names[i]]++
		}
	}
	for name := range n {
		right[name] /= n[name]
	}
	return right
}
