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

// CheckpointPath returns the path of a member's checkpoint at the time when the ensemble was written.
func (e *Ensemble) CheckpointPath(c swag.Checkpoint) string {
	return e.beside(filepath.FromSlash(c.Path))
}

// iterates are members that are checkpoints.
type iterates struct {
	first  int // number of the first one in the ensemble
	n      *infer.Network
	models []*onnxio.Model
}

func (it *iterates) each(ctx context.Context, first, count int, f func(member int, parameters weights.Vector) error) error {
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

// Member returns the weights and the statistics of member k. It draws the weights or reads them from the checkpoint. n
// is the network of its component. If the members are checkpoints, it opens only one of them.
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

// AddCheckpoints makes the last checkpoints of a posterior members of component i, each with its own batch-norm
// statistics. It takes as many as the component has members, or all if that number is 0. The function at returns the
// path of a checkpoint, and record returns the path to store in the ensemble file.
func (e *Ensemble) AddCheckpoints(ctx context.Context, i int, n *infer.Network, at func(swag.Checkpoint) string,
	record func(path string) string) error {
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
