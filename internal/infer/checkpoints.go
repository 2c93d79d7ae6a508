package infer

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/swagwrap/swagwrap/onnxio"
	ckpt "github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// CheckpointPath returns where a checkpoint of p is: as the posterior records
// it, seen from its own folder, or under its name in another folder.
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
	t := n.template
	if t != nil {
		t = t.Under(c.StateDict)
	}
	models, err := ckpt.Open([]string{CheckpointPath(n.Posterior, c, folder)}, t)
	if err != nil {
		return nil, err
	}
	return models[0], nil
}

// Attach gives a posterior that refers to its checkpoints what it needs of them.
// Their files stay open as long as the posterior.
func (n *Network) Attach(ctx context.Context) error {
	p := n.Posterior
	var models []*onnxio.Model
	var vectors []weights.Vector
	for _, c := range p.Needs() {
		m, err := n.Open(c, "")
		if err != nil {
			return err
		}
		p.OnClose(m.Close)
		models = append(models, m)
		sum, err := ckpt.Sum(ctx, m, nil)
		if err != nil {
			return err
		}
		if sum != c.SHA256 {
			return fmt.Errorf("%s: its content has the SHA-256 %s, but %s was fitted to %s", m.Path, sum, p.Path, c.SHA256)
		}
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

// Continue readies checkpoints since the posterior's own to extend it: see
// [ckpt.Continue].
func (n *Network) Continue(models []*onnxio.Model) (*ckpt.Set, error) {
	return ckpt.Continue(n.skeleton, n.Posterior.Layout, models)
}
