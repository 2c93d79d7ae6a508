package baseline

import (
	"slices"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
)

// External holds checkpoints of other runs that take the same input: iterates of SGLD or of another schedule, or a deep
// ensemble. Each uses its own batch-norm statistics. Checkpoints of the first run's network can
// have a second row with recomputed statistics.
type External struct {
	Name      string
	Models    []*onnxio.Model
	Recompute bool
}

// Iterates is the key of the ensembles of external checkpoints.
const Iterates = "iterates"

// iterates evaluates ensembles of external checkpoints.
var iterates = &Method{
	Key:  Iterates,
	Name: called(Iterates),
	Stored: func(in *Inputs) bool {
		return !slices.ContainsFunc(in.External, func(x External) bool { return x.Recompute })
	},
	Needs: func(in *Inputs) string {
		if len(in.External) == 0 {
			return "external checkpoints (" + setting.Iterates.String() + ")"
		}
		return ""
	},
	Cost: func(in *Inputs, c Cost) (total int64) {
		for _, x := range in.External {
			total += int64(len(x.Models)) * c.Data
			if x.Recompute {
				total += int64(len(x.Models)) * (c.Data + c.BatchNorm)
			}
		}
		return total
	},
	Run: func(w *work) error {
		for _, x := range w.External {
			if err := w.external(x); err != nil {
				return err
			}
		}
		return nil
	},
}

func (w *work) external(x External) error {
	own, fresh := w.predicted(), w.predicted()
	own.Name, fresh.Name = x.Name, x.Name+", BN recomputed"
	for _, m := range x.Models {
		if err := w.checkpoint(own, m); err != nil {
			return err
		}
		if !x.Recompute {
			continue
		}
		n := w.Runs[0].Network
		parameters, _, err := n.Vectors(m)
		if err == nil {
			err = w.draw(fresh, n, m.Path, 1, parameters)
		}
		if err != nil {
			return err
		}
	}
	if err := w.yield(own); err != nil || !x.Recompute {
		return err
	}
	return w.yield(fresh)
}
