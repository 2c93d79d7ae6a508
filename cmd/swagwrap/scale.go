package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/study/sweep"
)

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
