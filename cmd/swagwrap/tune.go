package main

import (
	"context"
	"slices"

	"github.com/swagwrap/swagwrap/internal/file"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/open"
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
