package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
)

// posteriorFlag gives the new paths of posteriors that have moved since the ensemble was written.
var posteriorFlag = &cli.StringSliceFlag{Name: "posterior", Usage: "a posterior of the ensemble is now `FILE`; may be given several times, in any order"}

// openEnsemble opens an ensemble, and prints warnings about its statistics.
func (a *app) openEnsemble(c *cli.Context, path string) (*ensemble.Ensemble, error) {
	e, err := ensemble.Open(path)
	if err != nil {
		return nil, inputs.WrongKind(c, err, path, kind.Ensemble)
	}
	if of := e.Calibration; of != nil && of.Outside() != "" {
		a.Warnf(c, "%s: its calibration may make predictions worse: %s. Calibrate the ensemble anew, on more labelled predictions", path, of.Outside())
	}
	for i, part := range e.Components {
		var members []string
		for _, ck := range part.Checkpoints {
			members = append(members, e.CheckpointPath(ck))
		}
		if err := inputs.InputPosterior(e.PosteriorPath(i), members...); err != nil {
			return nil, err
		}
		if r := part.Intake; r != nil {
			for _, w := range r.Warnings {
				a.WarnLong(c, path+": "+r.Data+": "+w)
			}
		}
		if part.BatchNorm == nil {
			continue
		}
		for _, w := range part.BatchNorm.AllWarnings() {
			a.WarnLong(c, path+": batch norm: "+w)
		}
	}
	return e, nil
}

func (a *app) openComponent(c *cli.Context, e *ensemble.Ensemble, i int) (*infer.Network, error) {
	p, err := e.OpenPosterior(i, c.StringSlice("posterior"))
	if err != nil {
		return nil, flags.BadInput(fmt.Errorf("%s: posterior: %w", e.Path, err), "an ensemble needs each posterior it was drawn from: --posterior FILE names one that has moved")
	}
	n, err := a.Network(c, p)
	if err != nil {
		return nil, err
	}
	if err := e.SoundStatistics(i, n); err != nil {
		p.Close()
		return nil, flags.BadInput(err)
	}
	return n, nil
}

// batchOf sets the batch size that the ensemble was made for, if the networks' examples depend on each other.
func batchOf(e *infer.Engine, of *ensemble.Ensemble) error {
	for _, x := range of.Components {
		switch {
		case x.Intake == nil || x.Intake.BatchSize == 0:
		case e.BatchSize == 0:
			e.BatchSize = x.Intake.BatchSize
		case e.BatchSize != x.Intake.BatchSize:
			return flags.Usagef("leave out --batch-size, or make the ensemble anew with another one", "--batch-size %d: %s was made for batches of %d, and its examples depend on each other", e.BatchSize, of.Path, x.Intake.BatchSize)
		}
	}
	return nil
}

// components opens the posteriors of the ensemble.
func (a *app) components(c *cli.Context, e *ensemble.Ensemble) ([]*infer.Network, error) {
	var networks []*infer.Network
	for i := range e.Components {
		n, err := a.openComponent(c, e, i)
		if err != nil {
			return networks, err
		}
		networks = append(networks, n)
	}
	return networks, flags.BadInput(infer.Align(networks))
}

// closeNetworks closes the posteriors of networks.
func closeNetworks(networks []*infer.Network) {
	for _, n := range networks {
		n.Posterior.Close()
	}
}
