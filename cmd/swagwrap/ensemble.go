package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
)

// posteriorFlag gives the new paths of posteriors that have moved since the ensemble was written.
var posteriorFlag = &cli.StringSliceFlag{Name: "posterior", Usage: "a posterior of the ensemble is now `FILE`; may be given several times, in any order"}

// members says how the networks of an ensemble are opened.
type members struct {
	flags.Network
	posteriors []string // the new paths of posteriors that have moved
}

func readMembers(c *cli.Context) (m members, err error) {
	m.posteriors = c.StringSlice("posterior")
	m.Network, err = flags.ReadNetwork(c)
	return m, err
}

// openEnsemble opens an ensemble, and prints warnings about its statistics. It registers the posteriors as inputs.
func (a *app) openEnsemble(path string) (*ensemble.Ensemble, error) {
	e, err := a.readEnsemble(path)
	if err != nil {
		return nil, err
	}
	for i := range e.Components {
		if err := inputs.InputPosterior(e.PosteriorPath(i)); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// readEnsemble is openEnsemble for a command that opens all posteriors next: see [app.components].
func (a *app) readEnsemble(path string) (*ensemble.Ensemble, error) {
	e, err := ensemble.Open(path)
	if err != nil {
		return nil, a.WrongKind(err, path, kind.Ensemble)
	}
	if of := e.Calibration; of != nil && of.Outside() != "" {
		a.Warnf("%s: its calibration may make predictions worse: %s. Calibrate the ensemble anew, on more labelled predictions", path, of.Outside())
	}
	for _, part := range e.Components {
		var members []string
		for _, ck := range part.Checkpoints {
			members = append(members, e.CheckpointPath(ck))
		}
		if err := inputs.InputCheckpoints(members); err != nil {
			return nil, err
		}
		if r := part.Intake; r != nil {
			for _, w := range r.Warnings {
				a.WarnLong(path + ": " + r.Data + ": " + w)
			}
		}
		if part.BatchNorm == nil {
			continue
		}
		for _, w := range part.BatchNorm.AllWarnings() {
			a.WarnLong(path + ": batch norm: " + w)
		}
	}
	return e, nil
}

func (a *app) openComponent(ctx context.Context, o members, e *ensemble.Ensemble, i int) (*infer.Network, error) {
	p, err := e.OpenPosterior(i, o.posteriors)
	if both := (*file.Conflict)(nil); errors.As(err, &both) {
		return nil, both
	}
	if err != nil {
		return nil, console.BadInput(fmt.Errorf("%s: posterior: %w", e.Path, err), "an ensemble needs each posterior it was drawn from: --posterior FILE names one that has moved")
	}
	n, err := a.Network(ctx, o.Network, p)
	if err != nil {
		return nil, err
	}
	if err := e.SoundStatistics(i, n); err != nil {
		p.Close()
		return nil, console.BadInput(err)
	}
	return n, nil
}

// batchOf returns the batch size that was given or, if the networks' examples depend on each other, the size that the
// ensemble was made for.
func batchOf(given int, of *ensemble.Ensemble) (size int, err error) {
	size = given
	for _, x := range of.Components {
		switch {
		case x.Intake == nil || x.Intake.BatchSize == 0:
		case size == 0:
			size = x.Intake.BatchSize
		case size != x.Intake.BatchSize:
			return 0, console.Usagef("leave out --batch-size, or make the ensemble anew with another one", "--batch-size %d: %s was made for batches of %d, and its examples depend on each other", size, of.Path, x.Intake.BatchSize)
		}
	}
	return size, nil
}

// components opens the posteriors of the ensemble.
func (a *app) components(ctx context.Context, o members, e *ensemble.Ensemble) ([]*infer.Network, error) {
	var networks []*infer.Network
	for i := range e.Components {
		n, err := a.openComponent(ctx, o, e, i)
		if err != nil {
			return networks, err
		}
		networks = append(networks, n)
	}
	return networks, console.BadInput(infer.Align(networks))
}

// closeNetworks closes the posteriors of networks.
func closeNetworks(networks []*infer.Network) {
	for _, n := range networks {
		n.Posterior.Close()
	}
}
