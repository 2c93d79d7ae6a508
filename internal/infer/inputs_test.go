package infer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

const commands = "../../cmd/swagwrap/testdata/"

// fields are examples of several inputs, which are given in another order than the network's.
func fields(t *testing.T, path string, n *infer.Network, order ...int) dataset.Dataset {
	t.Helper()
	var list []dataset.Field
	for _, i := range order {
		list = append(list, n.Fields()[i])
	}
	return infertest.Data(t, commands+path, dataset.Options{Fields: list})
}

// A network of several inputs finds each by its name.
func TestSeveralInputs(t *testing.T) {
	t.Parallel()
	e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 16})}
	for _, name := range []string{"beside", "tokens", "tokens-i32"} {
		n := infertest.Network(t, infertest.Fit(t, infertest.Open(t, commands+name+"-1.onnx"), infertest.Open(t, commands+name+"-2.onnx")))
		p := n.Posterior
		m, err := n.Model("last", p.Last(), weights.Slice(p.Statistics))
		if err != nil {
			t.Fatal(err)
		}
		file := map[bool]string{true: "beside.npz", false: "tokens.npz"}[name == "beside"]
		var sums [2]infer.Sums
		for i, order := range [][]int{{0, 1}, {1, 0}} {
			if err := e.Predict(t.Context(), m, fields(t, file, n, order...), &sums[i]); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(sums[0].Outcome, sums[1].Outcome) {
			t.Errorf("%s: the order of the fields changes the result", name)
		}
		if len(sums[0].Outcome) != 40*3 || slices.Equal(sums[0].Outcome[:3], sums[0].Outcome[3:6]) {
			t.Errorf("%s: outcomes %v", name, sums[0].Outcome)
		}
		infertest.WantError(t, e.Predict(t.Context(), m, infertest.Data(t, commands+"images.npz", dataset.Options{}), &infer.Sums{}),
			fmt.Sprintf("tensor %q: the network takes it", n.Inputs[0].Name))
	}
}

// Lists are filled up to the longest of their batch, and no further: this network has no mask, and takes what they
// are filled up with for numbers.
func TestRaggedBatches(t *testing.T) {
	t.Parallel()
	n := infertest.Network(t, infertest.Fit(t, infertest.Open(t, commands+"hash-1.onnx"), infertest.Open(t, commands+"hash-2.onnx")))
	p := n.Posterior
	m, err := n.Model("last", p.Last(), weights.Slice(p.Statistics))
	if err != nil {
		t.Fatal(err)
	}
	outcomes := func(batch int, lists ...string) []float64 {
		path := filepath.Join(t.TempDir(), "a.jsonl")
		if err := os.WriteFile(path, []byte("{\"hash\": ["+strings.Join(lists, "]}\n{\"hash\": [")+"]}\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		d := infertest.Data(t, path, dataset.Options{Fields: n.Fields(), Pad: map[string]float64{"hash": 6}})
		var sums infer.Sums
		e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: batch})}
		if err := e.Predict(t.Context(), m, d, &sums); err != nil {
			t.Fatal(err)
		}
		return sums.Outcome
	}
	lists := []string{"1", "2, 3, 4611686018427387904", "4, 5, 0, 2, 1", "3"}
	var alone []float64
	for _, list := range lists {
		alone = append(alone, outcomes(1, list)...)
	}
	if got := outcomes(1, lists...); !slices.Equal(got, alone) {
		t.Errorf("in batches of one %v, want %v", got, alone)
	}
	filled := outcomes(2, "1, 6, 6", lists[1], lists[2], "3, 6, 6, 6, 6")
	if got := outcomes(2, lists...); !slices.Equal(got, filled) || slices.Equal(got[:2], alone[:2]) {
		t.Errorf("in batches of two %v, want %v", got, filled)
	}
}

// The first batch may have the shorter lists. The task has the positions of the longest all the same.
func TestShortListsFirst(t *testing.T) {
	t.Parallel()
	n := infertest.Network(t, infertest.Fit(t, infertest.Open(t, "../../fixtures/dense/tokens/model.onnx")))
	m, err := n.LastCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.jsonl")
	if err := os.WriteFile(path, []byte("{\"ids\": [1, 2]}\n{\"ids\": [3, 4, 5, 6, 7]}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	d := infertest.Data(t, path, dataset.Options{Fields: n.Fields(), Pad: map[string]float64{"ids": 0}})
	var sums infer.Sums
	e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 1, Threads: 1})}
	if err := e.Predict(t.Context(), m, d, &sums); err != nil {
		t.Fatal(err)
	}
	if got := task.Positions(sums.Task); got != 5 {
		t.Errorf("%d positions, want 5", got)
	}
}
