package baseline_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/onnxio"
)

// The average of MC dropout is that over all masks. It is the same in every run and for any number of workers.
func TestDropout(t *testing.T) {
	t.Parallel()
	passes := reliability.Figure(300, 1500)
	in, targets := tiny(t, "training")
	in.Asked, in.Members = []string{baseline.Dropout}, passes
	rt := infertest.Runtime(t)
	by := func(workers int) *baseline.Predicted {
		t.Helper()
		return one(t, infer.Run{Engine: infer.NewEngine(rt, infer.EngineOptions{Threads: workers, BatchSize: 4})}, in, targets)
	}
	all := by(1)
	readGolden(t).Dropout.within(t, all.Data[0], 1e-5) // float32
	if all.Members != passes {
		t.Errorf("%d passes", all.Members)
	}
	in.Members = 7
	seven := by(1)
	if !same(seven.Data[0], by(3).Data[0]) {
		t.Error("1 and 3 workers differ")
	}
	in.Seed = 2
	if slices.Equal(by(1).Data[0].Outcome, seven.Data[0].Outcome) {
		t.Error("another seed drops the same units")
	}
	// The checkpoints are unnecessary.
	in.Seed, in.Runs[0].Checkpoints = 1, nil
	if !slices.Equal(by(1).Data[0].Outcome, seven.Data[0].Outcome) {
		t.Error("without checkpoints other units are dropped")
	}
	// A network without Dropout leaves the method out, with a note if it was asked for.
	in, targets = tiny(t, "ckpt")
	in.Asked, in.Members = []string{baseline.Dropout}, 1
	if got, notes := predicted(t, infertest.Run(t), in, targets); len(got) != 0 || len(notes) != 1 || !strings.Contains(notes[0], "keeps no Dropout") {
		t.Errorf("%d methods, notes %q", len(got), notes)
	}
}

// Dropout stays active between other operators, although ONNX Runtime would remove it there.
func TestDropoutInNetwork(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(infertest.Path("fixtures/results/checkpoints/mnist-250-seed-1/epoch-*.onnx"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("%d checkpoints, %v", len(paths), err)
	}
	models := []*onnxio.Model{infertest.Open(t, paths[0]), infertest.Open(t, paths[1])}
	val := infertest.Digits(t, "val.npz")
	in := &baseline.Inputs{Runs: []baseline.Run{{Network: infertest.Network(t, infertest.Fit(t, models...)), Checkpoints: models}},
		BatchNorm: batchnorm.Training{Data: val}, Asked: []string{baseline.Dropout}, Members: 2, Seed: 1}
	one(t, infertest.Run(t), in, baseline.Targets{Data: []dataset.Dataset{val}}) // one that drops
}
