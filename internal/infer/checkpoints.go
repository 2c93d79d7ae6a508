package infer

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// CheckpointPath returns the path of a checkpoint of p. It is the path that the posterior records, relative to its
// folder, or the same file name in another folder.
func CheckpointPath(p *swag.Posterior, c swag.Checkpoint, folder string) string {
	path := filepath.FromSlash(c.Path)
	switch {
	case folder != "":
		return filepath.Join(folder, filepath.Base(path))
	case filepath.IsAbs(path):
		return path
	}
	return filepath.Join(filepath.Dir(p.Path), path)
}

// Open opens a checkpoint of n's posterior, see [CheckpointPath].
func (n *Network) Open(c swag.Checkpoint, folder string) (*onnxio.Model, error) {
	return n.open(c, CheckpointPath(n.Posterior, c, folder))
}

func (n *Network) open(c swag.Checkpoint, path string) (*onnxio.Model, error) {
	t := n.template
	if t != nil {
		t = t.Under(c.StateDict)
	}
	models, err := checkpoints.Open([]string{path}, t)
	if err != nil {
		return nil, err
	}
	return models[0], nil
}

// OpenAll opens checkpoints of n's network, each at the path that path returns. It fails with a [*ChangedError] if
// the content of one has changed. The checkpoints stay open as long as the posterior.
func (n *Network) OpenAll(ctx context.Context, list []swag.Checkpoint, path func(swag.Checkpoint) string) ([]*onnxio.Model, error) {
	var models []*onnxio.Model
	for _, c := range list {
		m, err := n.open(c, path(c))
		if err != nil {
			return nil, err
		}
		n.Posterior.OnClose(m.Close)
		models = append(models, m)
	}
	sums, err := checkpoints.Sums(ctx, models, nil)
	if err != nil {
		return nil, err
	}
	for i, m := range models {
		if m.Release(); sums[i] != list[i].SHA256 {
			return nil, &ChangedError{m.Path, n.Posterior.Path, sums[i], list[i].SHA256}
		}
	}
	return models, nil
}

// ChangedError says that a checkpoint differs from the one that a posterior was fitted to.
type ChangedError struct{ Path, Posterior, Found, Want string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s: its content has the SHA-256 %s, but %s was fitted to %s", e.Path, e.Found, e.Posterior, e.Want)
}

// Attach gives a posterior that refers to its checkpoints their vectors. Their files stay open as long as the
// posterior.
func (n *Network) Attach(ctx context.Context) error {
	p := n.Posterior
	models, err := n.OpenAll(ctx, p.Needs(), func(c swag.Checkpoint) string { return CheckpointPath(p, c, "") })
	if err != nil {
		return err
	}
	var vectors []weights.Vector
	for _, m := range models {
		parameters, _, err := n.Vectors(m)
		if err != nil {
			return err
		}
		vectors = append(vectors, parameters)
	}
	return p.Attach(vectors, func() {
		for _, m := range models {
			m.Release()
		}
	})
}

// Continue makes later checkpoints ready to extend the posterior: see [checkpoints.Continue].
func (n *Network) Continue(models []*onnxio.Model) (*checkpoints.Set, error) {
	return checkpoints.Continue(n.skeleton, n.Posterior.Layout, models)
}

// Refit writes to w the posterior of the first checkpoints, fitted with the options of n's posterior. models are these
// checkpoints, with the network that training started from in front if n's posterior counts it.
func (n *Network) Refit(ctx context.Context, w io.WriterAt, models []*onnxio.Model) error {
	p := n.Posterior
	in := swag.Input{Layout: p.Layout, Card: p.Card, Template: p.Template, Graph: p.Graph}
	list := p.Checkpoints
	if p.Theta0 != nil {
		list = append([]swag.Checkpoint{*p.Theta0}, list...)
	}
	for i, m := range models {
		ck, err := list[i], error(nil)
		if ck.Theta, ck.Statistics, err = n.Vectors(m); err != nil {
			return err
		}
		if i == 0 && p.Theta0 != nil {
			in.Theta0 = &ck
		} else {
			in.Checkpoints = append(in.Checkpoints, ck)
		}
	}
	o := p.Options
	return swag.Fit(ctx, w, in, swag.FitOptions{
		Rank:       o.Rank,
		DiagOnly:   o.Rank == 0,
		Deviations: o.Deviations,
		Power:      o.Power,
		Reference:  o.Compat != "",
		Roles:      o.Roles,
	})
}
