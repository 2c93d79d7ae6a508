package main

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A coverage is guaranteed of each task that can have one. Others are refused: the message says why, a hint says what to type, the exit
// code is 64, and there is no output.
func TestCoverageOfTasks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := &maker{scene: dir, wrote: map[string]bool{}}
	of := func(n, examples int, positions ...int) ndarray {
		return classes(n, append([]int{examples}, positions...)...)
	}
	m.array("classes.npz", "probs", shares(20, 3), "labels", of(3, 20))
	m.array("pixels.npz", "probs", shares(20, 3, 4, 5), "labels", of(3, 20, 4, 5))
	m.array("tokens.npz", "probs", shares(20, 6, 3), "labels", of(3, 20, 6))
	m.array("several.npz", "probabilities", shares(20, 3), "labels", of(2, 20, 3))
	m.array("pixel-labels.npz", "probabilities", shares(20, 3, 4, 5), "labels", of(2, 20, 3, 4, 5))
	m.array("numbers.npz", "mean", normalNumbers(20, 2), "aleatoric_std", positive(20, 2), "epistemic_std", positive(20, 2), "target", normalNumbers(20, 2))
	m.array("means.npz", "mean", normalNumbers(20), "epistemic_std", positive(20), "target", normalNumbers(20))
	m.text("binary.csv", "path,label,p_0,p_1\n"+strings.Repeat("a,0,0.7,0.3\nb,1,0.4,0.6\n", 10))
	m.text("sites.csv", "site\n"+strings.Repeat("a\nb\n", 10))
	if m.err != nil {
		t.Fatal(m.err)
	}
	sites := "--by " + filepath.Join(dir, "sites.csv") + ":site"
	for _, c := range []struct {
		name, file, flags string
		guarantee         string // what is guaranteed, or
		want, hint        string
	}{
		{name: "classes", file: "classes.npz", guarantee: "sets contain the true class of at least 80 % of new examples (lac,"},
		{name: "classes, aps", file: "classes.npz", flags: "--set aps --by class", guarantee: "sets contain the true class of at least 80 % of new examples, of each class (aps,"},
		{name: "classes, raps", file: "classes.npz", flags: "--set raps " + sites, guarantee: "of new examples, in each group (raps with the penalty"},
		{name: "binary", file: "binary.csv", guarantee: "sets contain the true class of at least 80 % of new examples (lac,"},
		{name: "labels", file: "several.npz", flags: "--task labels --by class", guarantee: "sets miss at most 20 % of the true labels of a new example on average, of each label (lac,"},
		{name: "numbers", file: "numbers.npz", flags: "--task regression " + sites, guarantee: "intervals contain the true value of at least 80 % of new examples, in each group (std,"},
		{name: "means", file: "means.npz", flags: "--task regression", guarantee: "intervals contain the true value of at least 80 % of new examples (epistemic_std,"},
		{name: "pixels", file: "pixels.npz", flags: sites, guarantee: "sets miss the true class of at most 20 % of the pixels of a new picture on average, in each group (lac,"},
		{name: "labels of pixels", file: "pixel-labels.npz", flags: "--task labels", guarantee: "sets miss the true class of at most 20 % of the pixels of a new picture on average (lac,"},
		{name: "tokens", file: "tokens.npz", flags: "--by class", guarantee: "sets miss the true class of at most 20 % of the tokens of a new text on average, of each class (lac,"},

		{name: "size", file: "classes.npz", flags: "--coverage size=2", guarantee: "sets have at most 2 classes on average over new examples (lac,"},
		{name: "size of labels", file: "several.npz", flags: "--task labels --coverage size=2", guarantee: "sets have at most 2 labels on average over new examples (lac,"},
		{name: "size of pixels", file: "pixels.npz", flags: "--coverage size=2 " + sites, guarantee: "sets have at most 2 classes on average over the pixels of a new picture, and over new ones, in each group (lac,"},
		{name: "size of numbers", file: "numbers.npz", flags: "--task regression --coverage size=2", want: "--coverage: intervals have no number of classes, and the task is regression", hint: "say a share: --coverage 90%"},
		{name: "size, aps", file: "classes.npz", flags: "--coverage size=2 --set aps", want: "--coverage: the mean size of sets is guaranteed with lac, and not with aps", hint: "--set lac"},
		{name: "size by class", file: "classes.npz", flags: "--coverage size=2 --by class", want: "--coverage: a set has one size, and not one for each class", hint: "leave out --by"},
		{name: "size of all", file: "classes.npz", flags: "--coverage size=3", want: "--coverage: sets of at most 3 classes: all sets are, of 3", hint: "want a number below 3"},
		{name: "size of no share", file: "classes.npz", flags: "--coverage size=2%", want: "--coverage \"size=2%\": want size=N with a number of classes from 0.01 to 1e+06, such as size=2"},

		{name: "language model", file: "tokens.npz", flags: "--task next-token", want: "--coverage: no guarantee holds for the next token: the windows of a text depend on each other", hint: "leave out --coverage"},
		{name: "labels, aps", file: "several.npz", flags: "--task labels --set aps", want: "--coverage: aps ranks classes of which one is true, and here each example has several", hint: "--set lac"},
		{name: "pixels, raps", file: "pixels.npz", flags: "--set raps", want: "--coverage: raps ranks classes of which one is true", hint: "--set lac"},
		{name: "tokens, aps", file: "tokens.npz", flags: "--set aps", want: "--coverage: aps ranks classes of which one is true", hint: "--set lac"},
		{name: "numbers, lac", file: "numbers.npz", flags: "--task regression --set lac", want: "--coverage: lac makes sets of classes, and the task is regression", hint: "leave out --set"},
		{name: "numbers, class", file: "numbers.npz", flags: "--task regression --by class", want: "--coverage: by class: the task is regression", hint: "leave out --by: each target has a guarantee of its own"},
		{name: "a calibration of pixels", file: "pixels.npz", flags: "--method temperature", want: "--coverage: a calibration and a coverage of pixels or tokens need different examples", hint: "calibrate first, and choose the coverage on predictions of the calibrated ensemble"},
		{name: "risk of numbers", file: "numbers.npz", flags: "--task regression --threshold risk=0.1", want: "--threshold: is on the probability of class 1 of two, and the task is regression"},
		{name: "risk of pixels", file: "pixels.npz", flags: "--threshold risk=0.1", want: "--threshold risk: is of one answer for each example", hint: "leave out --threshold"},
		{name: "groups of an array", file: "classes.npz", flags: "--by folder", want: "--by folder: the predictions have no paths that name the groups", hint: "--by TABLE.csv:COLUMN"},
		{name: "no form of groups", file: "binary.csv", flags: "--by x", want: "--by", hint: "--by class, --by folder, or such as"},
		{name: "save", file: "classes.npz", flags: "--save " + filepath.Join(dir, "s.npz"), want: "--save: is not with --coverage", hint: "leave out --save"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out.json")
			given := strings.Fields(c.flags)
			if !slices.Contains(given, "--coverage") {
				given = append(given, "--coverage", "80%")
			}
			args := slices.Concat([]string{"calibrate", "-o", out}, given, []string{filepath.Join(dir, c.file)})
			code, printed := program(t, args...)
			if c.guarantee != "" {
				if code != 0 || !strings.Contains(printed, c.guarantee) {
					t.Errorf("exit code %d, and says %s, want %q", code, printed, c.guarantee)
				}
				if err := contains(out, `"guarantee": {`); err != nil {
					t.Error(err)
				}
				return
			}
			_, message, _ := strings.Cut(printed, "error: ")
			message, hint, _ := strings.Cut(message, "\n")
			if code != 64 || !strings.Contains(message, c.want) {
				t.Errorf("exit code %d, and says %s, want %q", code, printed, c.want)
			}
			if c.hint != "" && !strings.HasPrefix(hint, "hint: "+c.hint) {
				t.Errorf("the hint is %q, want %q", hint, c.hint)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("there is an output")
			}
		})
	}
}

// shares are probabilities. Those along the second axis sum to one, and of tokens those along the last.
func shares(shape ...int) ndarray {
	a := normalNumbers(shape...)
	n, step := shape[1], 1
	if len(shape) == 3 {
		n = shape[2]
	} else {
		step = elementsOf(shape[2:])
	}
	x := a.values()
	for i := range x {
		x[i] = float32(math.Exp(float64(x[i])))
	}
	for from := range x {
		if from/step%n != 0 {
			continue
		}
		sum := float32(0)
		for k := range n {
			sum += x[from+k*step]
		}
		for k := range n {
			x[from+k*step] /= sum
		}
	}
	return arrayOf(shape, x)
}

// positive are numbers above 0.
func positive(shape ...int) ndarray {
	x := normalNumbers(shape...).values()
	for i, v := range x {
		x[i] = v*v + 0.1
	}
	return arrayOf(shape, x)
}

func arrayOf(shape []int, x []float32) ndarray {
	a := ndarray{"<f4", shape, nil}
	for _, v := range x {
		a.bytes = binary.LittleEndian.AppendUint32(a.bytes, math.Float32bits(v))
	}
	return a
}
