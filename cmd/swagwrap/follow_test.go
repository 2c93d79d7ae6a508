package main

import (
	"context"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/swag"
)

// options returns the options that a command line gives.
func options[O any](t *testing.T, read func(*cli.Context) (O, error), args ...string) (o O) {
	t.Helper()
	parsing.Lock()
	defer parsing.Unlock()
	program := newApp(&console.Env{Stdout: console.NewStdout(io.Discard), Stderr: io.Discard}, func() {}).cli()
	var err error
	program.Command(args[0]).Action = func(c *cli.Context) error {
		o, err = read(c)
		return err
	}
	if failed := program.RunContext(context.Background(), append([]string{"swagwrap"}, args...)); failed != nil {
		t.Fatalf("%q: %v", args, failed)
	}
	return o
}

// same compares options, with their unexported fields.
func same(t *testing.T, args []string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("%q (- typed, + done):\n%s", args, diff)
	}
}

// What try does after a comparison is what the printed lines do.
func TestFollow(t *testing.T) {
	t.Parallel()
	swagged := *ensemble.FromSampling(swag.SampleOptions{Seed: 3, Scale: 2, Rank: 4, Antithetic: true}, 10)
	swagged.Temperature, swagged.Threshold, swagged.NoiseStd = 1.5, 0.25, []float64{0.5, 2}
	steps := []study.Step{
		study.Sample{Output: "e", Members: *ensemble.FromSampling(swag.SampleOptions{Seed: 1, Scale: 0.5}, 30), Training: "train.npz", Posteriors: []string{"p"}},
		study.Sample{Output: "e", Members: swagged, Training: "train.npz", Posteriors: []string{"p", "q"}},
		study.Sample{Output: "e", Members: *ensemble.FromSampling(swag.SampleOptions{Seed: 1, Scale: 1, Covariance: swag.Diagonal}, 30), Posteriors: []string{"p"}},
		study.Sample{Output: "e", Members: *ensemble.FromSampling(swag.SampleOptions{Seed: 2}, 30), Training: "train.npz", Posteriors: []string{"p"}},
		study.Sample{Output: "e", Members: *ensemble.FromCheckpoints(1), Folders: []string{"here"}, Posteriors: []string{"p"}},
		study.Sample{Output: "e", Settings: "s.json", Training: "train.npz", Posteriors: []string{"p"}},
		study.Score{Output: "o.npz", Ensemble: "e", Data: "val.npz", AsValidation: true},
		study.Score{Output: "o.npz", Ensemble: "e", Data: "val.npz", KeepMembers: true, AsValidation: true},
		study.Calibrate{Output: "c", Ensemble: "e", Predictions: "o.npz"},
		study.Calibrate{Output: "c", Ensemble: "e", Predictions: "o.npz", Method: "vector", Threshold: 0.25},
		study.Export{Output: "m.onnx", Ensemble: "e"},
		study.Export{Output: "m.onnx", Ensemble: "e", First: true},
	}
	for _, line := range []string{
		"compare p test.npz",
		"compare --bn keep p test.npz",
		"compare --bn-data train.npz --bn-samples 10% --augment none --preprocess mean=0.5 --columns a,b --scores logits --text rows=2 --arrays seen --batch-size 4 --labels val=l.csv --val val.npz --seed 9 --force p test.npz",
		"compare --labels l.csv --threads 2 --memory 1G --precision auto --provider openvino p test.npz",
	} {
		args := strings.Fields(line)
		o := options(t, readCompare, args...)
		more := []string{}
		for _, flag := range []string{"--force", "--batch-size 4", "--threads 2", "--memory 1G", "--precision auto", "--provider openvino"} {
			if strings.Contains(line, flag) {
				more = append(more, strings.Fields(flag)...)
			}
		}
		for _, step := range steps {
			words := o.spelling.Words(step)
			args := append(append(words[:1:1], more...), words[1:]...)
			switch d := step.(type) {
			case study.Sample:
				same(t, args, o.forSample(d), options(t, readSample, args...))
			case study.Score:
				same(t, args, o.forScore(d), options(t, readScore, args...))
			case study.Calibrate:
				if args = words; o.report.Force {
					args = append(append(words[:1:1], "--force"), words[1:]...)
				}
				same(t, args, o.forCalibrate(d), options(t, readCalibrate, args...))
			case study.Export:
				same(t, args, o.forExport(d), options(t, readExport, args...))
			}
		}
	}
}
