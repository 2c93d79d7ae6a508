package main

import (
	"context"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/study/sweep"
)

// chooseWindow lets the validation data choose which checkpoints are averaged, and prints what that cost. It returns what was found in
// words, with the command that takes these checkpoints, or "" if the posterior has the best average that the labels can prove.
func (o *compareOptions) chooseWindow(ctx context.Context, c *compare.Comparison, in *open.Study, run infer.Run) (string, error) {
	if o.Chosen || !in.ChoosesWindow() || c.Unit != nil { // examples of one unit prove less than their number
		return "", nil
	}
	n, models := in.Runs[0].Network, in.Runs[0].Checkpoints
	s := &sweep.Sweep{Network: n, BatchNorm: in.Inputs.BatchNorm, Validation: in.Validation, Seed: in.Seed}
	if len(s.Windows()) == 1 {
		return "", nil
	}
	bar := o.Progress(ctx, "windows", s.WindowImages())
	run.Progress = bar.Add
	before := compare.CPUSeconds()
	chosen, err := s.ChooseWindow(ctx, run, models)
	bar.Done()
	if err != nil {
		return "", console.BadInput(err)
	}
	c.Averages = chosen.Found()
	o.Logf("%v It took %s of CPU time", chosen, span(compare.CPUSeconds()-before))
	if !chosen.Better() {
		return "", nil
	}
	name, value := chosen.Setting()
	if o.Refit != nil {
		return "", o.Refit(chosen.Found(), string(name), value)
	}
	take := setting.Line(setting.Fit.With(name.With(value), setting.Output.With("NEW.safetensors"), n.Posterior.Path))
	return chosen.String() + " The table is about all checkpoints. Compare the better average too: " + take + ". ", nil
}
