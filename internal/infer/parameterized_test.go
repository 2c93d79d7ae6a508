package infer_test

import (
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
)

// parameterizedRun is a run whose sessions take weights as inputs and add up outcomes, as on a GPU.
func parameterizedRun(t *testing.T) infer.Run {
	p := ort.Provider{Parameterized: true}
	return infertest.Run(t).On(infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Provider: p, Passes: p}))
}

// One session for all members, and sums that are made beside it, give what a session for each member gives. ONNX Runtime
// folds batch norm in another order, so scores differ in the last bits of float32.
func TestParameterized(t *testing.T) {
	t.Parallel()
	tokens := positions(t, "tokens", 3)
	digits := infertest.Digits(t, "test.npz")
	for name, c := range map[string]struct {
		members members
		data    dataset.Dataset
	}{
		"small":       {small(t, "ckpt", 3), tinyImages(t)},
		"fixed batch": {small(t, "fixed-batch", 3), tinyImages(t)},
		"tokens":      {tokens, infertest.Data(t, infertest.Path("fixtures/dense", "tokens", "test.jsonl"), dataset.Options{Unlabelled: true, Fields: tokens.Fields(), Pad: map[string]float64{"ids": 0}})},
		"MNIST":       {members{infertest.Network(t, infertest.Posterior(t)), 4}, digits},
	} {
		want, got := collect(t, infertest.Run(t), c.members, c.data, infer.Options{Evidence: true}, 0), collect(t, parameterizedRun(t), c.members, c.data, infer.Options{Evidence: true}, 0)
		if len(got.outcome) != len(want.outcome) || len(got.outcome) == 0 {
			t.Fatalf("%s: %d numbers, want %d", name, len(got.outcome), len(want.outcome))
		}
		for i, v := range got.outcome {
			if math.Abs(v-want.outcome[i]) > 1e-5 { // of sums of up to four probabilities
				t.Errorf("%s: number %d is %v, want %v", name, i, v, want.outcome[i])
				break
			}
		}
		for i, v := range got.entropy {
			if math.Abs(v-want.entropy[i]) > 1e-4 { // of sums of up to four entropies
				t.Errorf("%s: entropy %d is %v, want %v", name, i, v, want.entropy[i])
				break
			}
		}
	}
}

// positions returns members of a network of fixtures/dense.
func positions(t *testing.T, folder string, count int) members {
	t.Helper()
	dir := infertest.Path("fixtures/dense", folder)
	paths, err := filepath.Glob(filepath.Join(dir, "epoch-*.pt"))
	if err != nil || paths == nil {
		t.Fatal(paths, err)
	}
	models, err := checkpoints.Open(paths, checkpoints.NewTemplate(infertest.Open(t, filepath.Join(dir, "model.onnx")), nil))
	if err != nil {
		t.Fatal(err)
	}
	return members{infertest.Network(t, infertest.Fit(t, models...)), count}
}

// A score that is not finite gives the same errors as without sums on a device.
func TestParameterizedNotFinite(t *testing.T) {
	t.Parallel()
	m := small(t, "brightest", 3)
	black := infertest.Data(t, infertest.Path(infertest.Small, "black.npz"), dataset.Options{})
	want := m.Posterior.Path + ": member 0: the network's output is not finite: class 0 has -Inf"
	for i, err := range collect(t, parameterizedRun(t), m, black, infer.Options{SkipErrors: true}, 0).errs {
		if (err != nil) != (i == 3) || err != nil && err.Error() != want {
			t.Errorf("image %d: error %v, want %s for image 3", i, err, want)
		}
	}
}

// The inputs of a chunk go to a device once, whatever the number of groups. Other tests wait: the bytes are those of the process.
func TestInputsGoOnce(t *testing.T) {
	rows := make([]int, 1500)
	for i := range rows {
		rows[i] = i
	}
	data, run := dataset.Picked(infertest.Digits(t, "test.npz"), rows), parameterizedRun(t)
	went := regexp.MustCompile(`(\d+) MiB went there`)
	total := func() (mib int) {
		if printed := went.FindStringSubmatch(run.Runtime().Traffic()); printed != nil {
			mib, _ = strconv.Atoi(printed[1])
		}
		return mib
	}
	sent := func(count int) int {
		before := total()
		collect(t, run, members{infertest.Network(t, infertest.Posterior(t)), count}, data, infer.Options{}, 0)
		return total() - before
	}
	inputs := data.Len() * 28 * 28 * 4 >> 20
	few, many := sent(1), sent(12) // in groups of 1, and of 1, 1, 2, 4 and 4
	if few < inputs || many-few > 2 {
		t.Errorf("one member sends %d MiB and 12 members %d, want %d for the inputs and hardly more", few, many, inputs)
	}
}
