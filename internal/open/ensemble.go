package open

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// EnsembleOptions say how the networks of an ensemble are opened.
type EnsembleOptions struct {
	Network    NetworkOptions
	Posteriors []string // the new paths of posteriors that have moved
}

// OpenEnsemble opens an ensemble, and prints warnings about its statistics. It registers the posteriors as inputs.
func (a *Opener) OpenEnsemble(path string) (*ensemble.Ensemble, error) {
	e, err := a.ReadEnsemble(path)
	if err != nil {
		return nil, err
	}
	for i := range e.Components {
		if err := InputPosterior(e.PosteriorPath(i)); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// ReadEnsemble is [Opener.OpenEnsemble] for a command that opens all posteriors next: see [Opener.OpenComponents].
func (a *Opener) ReadEnsemble(path string) (*ensemble.Ensemble, error) {
	e, err := ensemble.Open(path)
	if err != nil {
		return nil, WrongKind(err, path, kind.Ensemble)
	}
	if of := e.Calibration; of != nil && of.Outside() != "" {
		a.Warnf("%s: its calibration may make predictions worse: %s. Calibrate the ensemble anew, on more labelled predictions",
			path, of.Outside())
	}
	for _, part := range e.Components {
		var members []string
		for _, ck := range part.Checkpoints {
			members = append(members, e.CheckpointPath(ck))
		}
		if err := InputCheckpoints(members); err != nil {
			return nil, err
		}
		if r := part.Probe; r != nil {
			for _, w := range r.Warnings {
				a.WarnLong(path + ": " + r.Data + ": " + w)
			}
		}
		if r := part.Adapted; r != nil {
			a.Logf("%s: its batch-norm statistics are adapted to %s (weight %g)", path, r.Data, r.Weight)
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

// OpenComponent opens the posterior of one component of the ensemble.
func (a *Opener) OpenComponent(ctx context.Context, o EnsembleOptions, e *ensemble.Ensemble, i int) (*infer.Network, error) {
	p, err := e.OpenPosterior(i, o.Posteriors)
	if both := (*file.Conflict)(nil); errors.As(err, &both) {
		return nil, both
	}
	if err != nil {
		return nil, BadInput(fmt.Errorf("%s: posterior: %w", e.Path, err),
			"an ensemble needs each posterior it was drawn from: "+setting.Posterior.With("FILE")+" names one that has moved")
	}
	if task.Scoreless(p.Card.Task) { // sample may know what its scores are
		o.Network.Task, o.Network.Output = cmp.Or(o.Network.Task, e.Card.Task), cmp.Or(o.Network.Output, e.Card.Output)
	}
	n, err := a.Network(ctx, o.Network, p)
	if err != nil {
		return nil, err
	}
	n.Names = infer.CardNames(e.Card)
	if err := e.SoundStatistics(i, n); err != nil {
		p.Close()
		return nil, BadInput(err)
	}
	return n, nil
}

// BatchOf returns the batch size that was given or, if the networks' examples depend on each other, the size that the
// ensemble was made for.
func BatchOf(given int, of *ensemble.Ensemble) (size int, err error) {
	size = given
	for _, x := range of.Components {
		switch {
		case x.Probe == nil || x.Probe.BatchSize == 0:
		case size == 0:
			size = x.Probe.BatchSize
		case size != x.Probe.BatchSize:
			return 0, Usagef("leave out "+setting.BatchSize.String()+", or make the ensemble anew with another one",
				"%s %d: %s was made for batches of %d, and its examples depend on each other", setting.BatchSize, size, of.Path,
				x.Probe.BatchSize)
		}
	}
	return size, nil
}

// OpenComponents opens the posteriors of the ensemble.
func (a *Opener) OpenComponents(ctx context.Context, o EnsembleOptions, e *ensemble.Ensemble) ([]*infer.Network, error) {
	var networks []*infer.Network
	for i := range e.Components {
		n, err := a.OpenComponent(ctx, o, e, i)
		if err != nil {
			return networks, err
		}
		networks = append(networks, n)
	}
	return networks, BadInput(infer.Align(networks))
}

// ThresholdFits refuses a threshold for any task except binary. name is the task in the model card.
func ThresholdFits(given bool, name string) error {
	if given && name != "" {
		t, err := task.OfWidth(name, 2, [3]int{})
		if _, ok := t.(task.Decided); err != nil || !ok {
			return Usagef("", "%s: is on the probability of class 1 of the task binary, and the task is %s", setting.Threshold, name)
		}
	}
	return nil
}

// CloseNetworks closes the posteriors of networks.
func CloseNetworks(networks []*infer.Network) {
	for _, n := range networks {
		n.Posterior.Close()
	}
}
