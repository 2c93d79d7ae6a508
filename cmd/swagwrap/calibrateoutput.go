package main

import (
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
)

// write writes the outputs, and puts them in their places. The first output is found as JSON, or the ensemble with the
// calibration. apply writes the second one. show prints the result.
func (job *calibrationJob) write(c *cli.Context, found any, apply func(*flags.Output) error, show func() error) error {
	var err error
	if out := job.outputs[0]; job.ensemble != nil {
		err = job.writeEnsemble(out, c.String("ensemble"))
	} else {
		err = flags.WriteJSON(out, found)
	}
	if err != nil {
		return flags.BadOutput(err)
	}
	if len(job.outputs) > 1 {
		if err := apply(job.outputs[1]); err != nil {
			return flags.BadOutput(err)
		}
	}
	return flags.Together{Print: show}.Commit(job.outputs...)
}

// writeEnsemble writes the ensemble with the fitted calibration. It adapts the paths of posteriors and checkpoints to
// the new folder.
func (job *calibrationJob) writeEnsemble(out *flags.Output, from string) error {
	e := job.ensemble
	if job.repair == nil {
		if fitted := job.found.Fitted; fitted != nil {
			carry(e, fitted)
		}
		if t := job.found.Threshold; t != nil {
			e.Threshold = t.Value
		}
	}
	move := func(path *string) {
		if !filepath.IsAbs(*path) {
			*path = flags.RelativeTo(out.Path, filepath.Join(filepath.Dir(from), filepath.FromSlash(*path)))
		}
	}
	for i := range e.Components {
		c := &e.Components[i]
		move(&c.Posterior.Path)
		for k := range c.Checkpoints {
			move(&c.Checkpoints[k].Path)
		}
	}
	return e.Write(out, flags.Producer())
}

// carry stores a calibration in the ensemble.
func carry(e *ensemble.Ensemble, s *calibrate.Scaling) {
	if v := s.Vector; v != nil {
		e.Vector = &ensemble.VectorScaling{Scale: v.Scale, Bias: v.Bias}
	} else {
		e.Temperature = s.Temperatures[0]
	}
}

// writeApplied writes the calibrated probabilities of the test data, or else of the data of the fit.
func (job *calibrationJob) writeApplied(out *flags.Output) error {
	l := job.Test
	if l == nil {
		l = job.Fit
	}
	return job.found.WriteApplied(out, l, strings.ToLower(filepath.Ext(out.Path)) == ".npz")
}
