package main

import (
	"context"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/open"
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
	free := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".free" }, cmp.Ignore()) // what the machine has at the moment
	if diff := cmp.Diff(want, got, free, cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.IgnoreFields(swag.FitOptions{}, "Health")); diff != "" {
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
		study.Sample{Output: "e", Members: *ensemble.FromLast(), Folders: []string{"here"}, Posteriors: []string{"p"}},
		study.Sample{Output: "e", Settings: "s.json", Training: "train.npz", Posteriors: []string{"p"}},
		study.Sample{Output: "e", Members: *ensemble.FromSampling(swag.SampleOptions{Seed: 1, Scale: 0.5}, 30), Training: "train.npz", Target: "new", Weight: 0.3, Posteriors: []string{"p"}},
		study.Score{Output: "o.npz", Ensemble: "e", Data: "val.npz", AsValidation: true, Plain: true},
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

// What try runs first is what the printed lines of fit and compare do.
func TestTryOptions(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"c1.onnx c2.onnx test.npz",
		"--force --sample=false --rank 5 --order given --mean mean.pt --allow folded --threads 3 --memory 2G --batch-size 8 c test.npz",
		"--template m.onnx=c.pt --state-dict ema --task classes --class-names n.txt --scores logits --output-name y --preprocess mean=0.5 --augment none --bn-data tr.npz --val v.npz --labels val=l.csv --labels t.csv --bn keep --bn-samples 10% c test.npz",
		"--columns a,b --columns meta=c --pad x=1 --targets head=none;mean=1;std=2 --task regression --noise-std 1 --noise-std 2 --ignore-index 3 --class-axis 1 --state none --text rows=3 --arrays seen c test.npz",
		"--methods swa,swag --iterates a=b --scale 2 --members 5 --seed 3 --metrics all --threshold f1 --val v.npz --tune s.json --save s.npz --shift common --groups folder --store st --checkpoints here --theta0 t0.onnx --role w=buffer c test.npz",
		"--deviations reference --max-members 300 --provider openvino --precision auto --ort-lib x.so --reference-checkpoints=false c test.npz",
	} {
		read := options(t, readTry, append([]string{"try"}, strings.Fields(line)...)...)
		for _, found := range []*open.Found{{}, {Template: "f.onnx", Training: "f.npz", ClassNames: "f.txt", Task: "regression", Head: "none", Preprocess: "mean=0.25 std=0.5"}, {Card: "card.json"}} {
			run := &trial{app: newApp(&console.Env{}, func() {}), tryOptions: read, folder: &console.Folder{Work: "work", Path: "result"}}
			if n := len(read.args) - 1; found.Template != "" && strings.Contains(line, "--t") { // nothing is looked for that was given
				continue
			} else {
				run.checkpoints, run.test = read.args[:n], read.args[n]
			}
			words, fit := run.fitted(found)
			words = withForce(words, read.output.Force)
			same(t, words, fit, options(t, readFit, words...))
			words = withForce(run.compared(found), read.output.Force)
			same(t, words, run.comparison, options(t, readCompare, words...))
		}
	}
}

// withForce adds what try gives to each command if it has it.
func withForce(words []string, force bool) []string {
	if !force {
		return words
	}
	return append([]string{words[0], "--force"}, words[1:]...)
}
