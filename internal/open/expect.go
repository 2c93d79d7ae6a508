package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/printed"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// ExpectOptions are the numbers that the user's own evaluation of the last checkpoint printed.
type ExpectOptions struct {
	Numbers *printed.Numbers // nil if there are none
	Warn    bool             // a difference is a warning
}

// Measured is labelled data on which numbers were measured.
type Measured struct {
	Network *infer.Network
	Data    dataset.Dataset
	Path    string
	Folder  string             // where the checkpoints are now, or ""
	Train   batchnorm.Training // for the statistics of SWA. Without data they are those of the last checkpoint.
}

// Expect runs the last checkpoint over the data, and holds its figures against the numbers. It returns them in words, and whether they
// are equal.
func (o ExpectOptions) Expect(ctx context.Context, a *Opener, run infer.Run, in Measured) (text string, equal bool, err error) {
	if o.Numbers == nil {
		return "", false, nil
	}
	if in.Data.Labels().None() {
		return "", false, BadInput(fmt.Errorf("%s: %s: %w", in.Path, setting.Expect, printed.ErrUnlabelled),
			setting.Labels.With("FILE")+" gives the labels, or leave out "+setting.Expect.String())
	}
	bar := a.Progress(ctx, "expect", int64(in.Data.Len()))
	run.Progress = bar.Add
	c := &printed.Check{Numbers: o.Numbers, Network: in.Network, Data: in.Data, Run: run, Others: in.others(run)}
	found, err := c.Do(ctx)
	bar.Done()
	if wrong, ok := errors.AsType[*printed.MetricError](err); ok {
		return "", false, Usagef("this task has: "+strings.Join(wrong.Has, ", "), "%s %w", setting.Expect, wrong)
	}
	if err != nil {
		return "", false, BadInput(err)
	}
	if found.Equal {
		a.Logf("%s: the last checkpoint gives what your evaluation printed: %v", in.Path, found)
		return found.String(), true, nil
	}
	wrong := fmt.Errorf("%s: the last checkpoint does not give what your evaluation printed: %v", in.Path, found)
	hints := []string{"no cause found among the usual ones (" + setting.Line("help parity") + ")"}
	if c := found.Cause; c != nil {
		hints = append([]string{"cause found: " + c.Words}, c.Hints...)
	}
	if !o.Warn {
		return "", false, BadInput(wrong, append(hints, setting.ExpectOnly.With("warn")+" goes on")...)
	}
	a.Warnf("%v. %s", wrong, strings.ToUpper(hints[0][:1])+hints[0][1:])
	return "differ: " + found.String(), false, nil
}

// others are other weights of the network: averages of the posterior, and its other checkpoints from the last to the first.
func (in Measured) others(run infer.Run) (all []printed.Other) {
	n := in.Network
	p := n.Posterior
	if p.Single() {
		return nil
	}
	average := func(words string, statistics func(context.Context, weights.Vector) (weights.Slice, error)) {
		all = append(all, printed.Other{
			Words: "the average of the checkpoints, SWA" + words,
			Open: func(ctx context.Context) (infer.Model, error) {
				sampler, err := swag.NewSampler(p, swag.SampleOptions{}) // scale 0 is SWA
				if err != nil {
					return infer.Model{}, err
				}
				mean := sampler.Vector(ctx, 0)
				of, err := statistics(ctx, mean)
				if err != nil {
					return infer.Model{}, err
				}
				return n.Model("SWA", mean, of)
			},
		})
	}
	average("", func(context.Context, weights.Vector) (weights.Slice, error) { return p.Statistics, nil })
	if n.Recomputes() && in.Train.Data != nil {
		average(", with its own batch-norm statistics", func(ctx context.Context, mean weights.Vector) (weights.Slice, error) {
			fresh, err := batchnorm.Recompute(ctx, run.Quiet(), n, mean, in.Train)
			if err != nil {
				return nil, err
			}
			return fresh.Statistics, nil
		})
	}
	all = append(all, in.keys()...)
	for _, c := range slices.Backward(p.Checkpoints[:max(1, len(p.Checkpoints))-1]) {
		all = append(all, printed.Other{
			Words: filepath.FromSlash(c.Path),
			Open: func(context.Context) (infer.Model, error) {
				m, err := n.Open(c, in.Folder)
				if err != nil {
					return infer.Model{}, err
				}
				p.OnClose(m.Close)
				return n.AsIs(m)
			},
		})
	}
	return all
}

// keys are other weights in the file of the last checkpoint, such as its moving average.
func (in Measured) keys() (all []printed.Other) {
	n := in.Network
	last := n.Posterior.Checkpoints[len(n.Posterior.Checkpoints)-1]
	path := infer.CheckpointPath(n.Posterior, last, in.Folder)
	if n.Template() == nil || !statefile.Is(path) {
		return nil
	}
	keys, _ := stateDicts(path)
	for _, key := range keys {
		if key == "" || key == cmp.Or(last.StateDict, n.Template().StateDict) {
			continue
		}
		all = append(all, printed.Other{
			Words: key + " in " + path,
			Open: func(context.Context) (infer.Model, error) {
				t := n.Template().Under(key)
				t.Trial = true
				models, err := checkpoints.Open([]string{path}, t)
				if err != nil {
					return infer.Model{}, err
				}
				n.Posterior.OnClose(models[0].Close)
				return n.AsIs(models[0])
			},
		})
	}
	return all
}
