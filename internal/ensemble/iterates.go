package ensemble

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// CheckpointPath returns where a checkpoint that is a member was when the ensemble was
// written.
func (e *Ensemble) CheckpointPath(c swag.Checkpoint) string {
	path := filepath.FromSlash(c.Path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(e.Path), path)
	}
	return path
}

// A drawer makes members of one component, by their numbers in the ensemble. Weights are
// valid during the call only.
type drawer interface {
	Each(ctx context.Context, first, count int, f func(member int, parameters weights.Vector) error) error
}

// drawer returns what makes the members of component i; n is its network. A drawer of
// members at random holds at most so many bytes of weights.
func (e *Ensemble) drawer(ctx context.Context, i int, n *infer.Network, workers int, bytes int64) (drawer, error) {
	if e.Sampling.Covariance == Iterates {
		models, err := n.OpenAll(ctx, e.Components[i].Checkpoints, e.CheckpointPath)
		return &iterates{e.first(i), n, models}, err
	}
	opts, err := e.Sampling.Options()
	if err != nil {
		return nil, err
	}
	opts.Workers = workers
	return infer.NewDrawer(n.Posterior, opts, bytes)
}

// iterates are checkpoints that are members.
type iterates struct {
	first  int // number of the first
	n      *infer.Network
	models []*onnxio.Model
}

func (it *iterates) Each(ctx context.Context, first, count int, f func(member int, parameters weights.Vector) error) error {
	for k := first; k < first+count; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		m := it.models[k-it.first]
		parameters, _, err := it.n.Vectors(m)
		if err != nil {
			return err
		}
		if err := f(k, parameters); err != nil {
			return err
		}
		m.Release()
	}
	return nil
}

// Member returns the weights of member k, read or drawn as they are used, and its
// statistics; n is the network of its component. Of checkpoints it opens that one only.
func (e *Ensemble) Member(ctx context.Context, k int, n *infer.Network) (parameters, statistics weights.Vector, err error) {
	i, place := e.Find(k)
	c := e.Components[i]
	statistics = weights.Slice(c.Statistics[place])
	if e.Sampling.Covariance == Iterates {
		models, err := n.OpenAll(ctx, c.Checkpoints[place:place+1], e.CheckpointPath)
		if err != nil {
			return nil, nil, err
		}
		parameters, _, err = n.Vectors(models[0])
		return parameters, statistics, err
	}
	opts, err := e.Sampling.Options()
	if err != nil {
		return nil, nil, err
	}
	s, err := swag.NewSampler(n.Posterior, opts)
	if err != nil {
		return nil, nil, err
	}
	return s.Vector(ctx, k), statistics, nil
}

// AddCheckpoints makes the last checkpoints of a posterior members, as many as component
// i has, or all where that is not said: each with the batch-norm statistics in it. at says
// where they are, and record how the ensemble's file is to name that.
func (e *Ensemble) AddCheckpoints(ctx context.Context, i int, n *infer.Network, at func(swag.Checkpoint) string, record func(path string) string) error {
	c, all := &e.Components[i], n.Posterior.Checkpoints
	if c.Members == 0 {
		c.Members = len(all)
	}
	if c.Members > len(all) {
		return fmt.Errorf("%s: has %d checkpoints, want %d for so many members", n.Posterior.Path, len(all), c.Members)
	}
	all = all[len(all)-c.Members:]
	models, err := n.OpenAll(ctx, all, at)
	if err != nil {
		return err
	}
	for k, m := range models {
		_, statistics, err := n.Vectors(m)
		if err != nil {
			return err
		}
		row := make([]float32, statistics.Len())
		if err := statistics.ReadAt(row, 0); err != nil {
			return err
		}
		c.Statistics = append(c.Statistics, row)
		c.Checkpoints = append(c.Checkpoints, swag.Checkpoint{Path: record(at(all[k])), SHA256: all[k].SHA256, StateDict: all[k].StateDict})
		m.Release()
	}
	return nil
}
