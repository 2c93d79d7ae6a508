package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/study/sweep"
)

// tunedSettings is the output of --tune.
type tunedSettings struct {
	out    *console.Output // nil without --tune
	chosen *sweep.Choice
}

func openTuned(path, validation string, force bool) (*tunedSettings, error) {
	if path == "" {
		return &tunedSettings{}, nil
	}
	if file.IsStdout(path) {
		return nil, console.Usagef("", "--tune %s: the result is on standard output: want a file", path)
	}
	if validation == "" {
		return nil, console.Usagef("settings that are chosen on the test data look better than they are: --val FILE",
			"--tune without --val")
	}
	out, err := console.CreateOutput(path, force)
	return &tunedSettings{out: out}, err
}

// tune runs a sweep to choose how SWAG's members are drawn.
func (o *compareOptions) tune(ctx context.Context, t *tunedSettings, in *open.Study, run infer.Run) error {
	if t.out == nil {
		return nil
	}
	n := in.Runs[0].Network
	s := &sweep.Sweep{
		Network:    n,
		BatchNorm:  in.Inputs.BatchNorm,
		Validation: in.Validation,
		Members:    in.Members,
		Antithetic: in.Antithetic,
		Orthogonal: in.Orthogonal,
		Seed:       in.Seed,
		Scales:     sweep.UsualScales,
		Ranks:      sweep.UsualRanks(n.Posterior.Options.Columns),
		Extend:     sweep.UsualExtend,
	}
	bar := o.Progress(ctx, "tune", s.TuneImages())
	s.Resize, s.Announce = bar.Resize, o.announceExtension()
	run.Progress = bar.Add
	var err error
	t.chosen, err = s.Tune(ctx, run)
	bar.Done()
	if err != nil {
		return console.BadInput(err)
	}
	how := s.Draws(t.chosen.Setting)
	in.Tuned = &how
	if in.Asked != nil && !slices.Contains(in.Asked, baseline.SWAGTuned) {
		in.Asked = append(in.Asked, baseline.SWAGTuned)
	}
	return nil
}

// String describes how the settings were chosen.
func (t *tunedSettings) String() string {
	if t.chosen == nil {
		return ""
	}
	return t.chosen.String()
}

// finish writes the settings with the temperature of the comparison. It returns the output, or nil if there is none.
func (t *tunedSettings) finish(r *compare.Result) (*console.Output, error) {
	i := slices.IndexFunc(r.Methods, func(m *compare.Method) bool { return m.Key == baseline.SWAGTuned })
	if t.out == nil || i < 0 {
		return nil, nil
	}
	p := r.Runs[0].Network.Posterior
	chosen := append(t.chosen.Row(), study.Fields("validation", r.Validation.Sources())...)
	settings := &ensemble.SettingsFile{
		Producer:  console.Producer(),
		Settings:  *r.Methods[i].Deploy,
		Posterior: ensemble.Reference{Path: file.Named(p.Path), ID: p.ID},
		Chosen:    chosen,
	}
	return t.out, console.BadOutput(console.WriteJSON(t.out, settings))
}

// chooseScale lets the validation data choose the scale of SWAG, and prints what that cost. The comparison gets a row for a scale
// that is not the paper's. It returns what was chosen in words, or "" without a choice.
func (o *compareOptions) chooseScale(ctx context.Context, in *open.Study, run infer.Run) (string, error) {
	if !in.ChoosesScale() {
		return "", nil
	}
	s := &sweep.Sweep{
		Network:    in.Runs[0].Network,
		BatchNorm:  in.Inputs.BatchNorm,
		Validation: in.Validation,
		Members:    cmp.Or(in.Members, ensemble.DefaultMembers),
		Seed:       in.Seed,
		Antithetic: in.Antithetic,
		Orthogonal: in.Orthogonal,
	}
	bar := o.Progress(ctx, "scale", s.ScaleImages())
	s.Resize, run.Progress = bar.Resize, bar.Add
	before := compare.CPUSeconds()
	chosen, err := s.ChooseScale(ctx, run)
	bar.Done()
	if err != nil {
		return "", console.BadInput(err)
	}
	o.Logf("%v It took %s of CPU time (--scale 0.5 leaves it out)", chosen, span(compare.CPUSeconds()-before))
	if chosen.Scale != chosen.Paper || slices.Contains(in.Asked, baseline.SWAGTuned) {
		how := in.Draws()
		how.Scale = chosen.Scale
		in.Tuned, in.TunedScale = &how, true
	}
	return chosen.String(), nil
}

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
