package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// follow does a step after a comparison. It has the options that the line of [flags.Spelling] would give, with what the comparison
// got for ONNX Runtime.
func (a *app) follow(ctx context.Context, step study.Step, o compareOptions) error {
	switch d := step.(type) {
	case study.Sample:
		return a.sample(ctx, o.forSample(d))
	case study.Score:
		return a.score(ctx, o.forScore(d))
	case study.Calibrate:
		return a.calibrate(ctx, o.forCalibrate(d))
	case study.Export:
		return a.export(ctx, o.forExport(d))
	}
	return fmt.Errorf("%T: is no step after a comparison", step)
}

// usualSeed is the default of --seed.
const usualSeed = 1

func (o compareOptions) forSample(d study.Sample) sampleOptions {
	s := sampleOptions{
		posteriors: d.Posteriors,
		output:     flags.Output{Path: d.Output, Force: o.report.Force},
		settings:   chosenSettings{Settings: d.Members},
		folders:    d.Folders,
		data:       o.plainData(),
		batchNorm:  open.BatchNormOptions{Seed: d.Members.Seed},
		runtime:    o.Runtime,
	}
	if d.Settings != "" {
		s.settings, s.batchNorm.Seed = chosenSettings{file: d.Settings}, usualSeed
	}
	if d.Training != "" { // as the comparison did
		s.network, s.data, s.batchNorm.Samples, s.batchNorm.Augment = o.Network, o.Data, o.BatchNorm.Samples, o.BatchNorm.Augment
		s.batchNorm.Data, s.data.Labels = d.Training, open.Labels{}
	} else if !d.Members.Checkpoints() && o.Network.Statistics == infer.KeepAll {
		s.network.Statistics = infer.KeepAll
	}
	s.adapt.Weight = batchnorm.DefaultWeight
	if d.Target != "" {
		s.adapt = open.AdaptOptions{Data: d.Target, Weight: d.Weight}
		s.data = o.Data
		s.data.Labels = open.Labels{}
	}
	return s
}

func (o compareOptions) forScore(d study.Score) scoreOptions {
	s := scoreOptions{
		scored:   scored{ensemble: d.Ensemble, data: []string{d.Data}, reading: o.plainData(), runtime: o.Runtime},
		output:   d.Output,
		existing: existing{force: o.report.Force},
		topk:     1,
		want:     task.RowOptions{Top: 1},
	}
	if d.KeepMembers {
		s.want.Members, s.ofRows = 1, "--keep-members"
	}
	s.adapt.Weight = batchnorm.DefaultWeight
	if d.Plain {
		s.adapt.Data, s.ofRows = open.NoTarget, cmp.Or(s.ofRows, "--adapt")
	}
	if d.AsValidation {
		labels := o.Data.Labels.Validation
		if o.Validation == "" {
			labels = o.Data.Labels.Main
		}
		s.members.Network.Scores, s.reading = o.Network.Scores, o.Data
		s.reading.Labels = open.Labels{Main: labels}
		if (s.ofRows == "" || d.Plain && !d.KeepMembers) && labels != "" {
			s.ofRows = "--labels"
		}
	}
	return s
}

func (o compareOptions) forCalibrate(d study.Calibrate) calibrateOptions {
	return calibrateOptions{
		predictions: d.Predictions,
		output:      flags.Output{Path: d.Output, Force: o.report.Force},
		task:        "auto",
		method:      d.Method,
		threshold:   chosenThreshold{value: d.Threshold, given: d.Threshold > 0},
		ensemble:    d.Ensemble,
		folds:       usualFolds,
		seed:        usualSeed,
	}
}

func (o compareOptions) forExport(d study.Export) exportOptions {
	e := exportOptions{
		of:        d.Ensemble,
		output:    flags.Output{Path: d.Output, Force: o.report.Force},
		member:    open.Given[int]{Value: -1},
		draws:     swag.SampleOptions{Seed: usualSeed, Scale: swag.LowRankPlusDiagonal.DefaultScale()},
		data:      o.plainData(),
		batchNorm: open.BatchNormOptions{Seed: usualSeed},
		runtime:   o.Runtime,
		storage:   storages[0],
	}
	if d.First {
		e.member, e.ofEither = open.Given[int]{Set: true}, "--member"
	}
	return e
}

// plainData returns how data is read without flags of its own.
func (o compareOptions) plainData() open.DataOptions {
	usual, _ := text.ParseCutting("") // the empty text is always valid
	return open.DataOptions{Text: usual, Arrays: dataset.Auto, Memory: o.Data.Memory}
}
