package baseline

import (
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/swag"
)

// Deploy returns the settings with which sample makes the ensemble of a method, and the runs that it needs. It
// returns nil for methods that cannot be saved as ensembles, such as MC dropout and the Laplace approximation.
func (in *Inputs) Deploy(key string) (*ensemble.Settings, []Run) {
	m := find(key)
	if m.Deploy == nil {
		return nil, nil
	}
	if m.AllRuns {
		return m.Deploy(in), in.Runs
	}
	return m.Deploy(in), in.Runs[:min(1, len(in.Runs))]
}

// Networks returns the number of networks that the method needs for a prediction.
func (p *Predicted) Networks() int {
	if find(p.Key).OneNetwork {
		return 1
	}
	return p.Members
}

// MovedCheckpoints returns the folders of the checkpoints of runs, if some are not at the paths in their posteriors. Otherwise, or
// if the checkpoints of a run are missing, it returns nil.
func MovedCheckpoints(runs []Run) (folders []string) {
	elsewhere := false
	for _, run := range runs {
		if len(run.Checkpoints) == 0 {
			return nil
		}
		p := run.Network.Posterior
		elsewhere = elsewhere || run.Checkpoints[0].Path != infer.CheckpointPath(p, p.Checkpoints[0], "")
		folders = append(folders, filepath.Dir(run.Checkpoints[0].Path))
	}
	if !elsewhere {
		return nil
	}
	return folders
}

// Functions for Method.Deploy.

func averaged(in *Inputs) *ensemble.Settings { return in.drawn(swag.SampleOptions{}) }

func likeSWAG(in *Inputs) *ensemble.Settings { return in.drawn(in.swag()) }

func (in *Inputs) drawn(how swag.SampleOptions) *ensemble.Settings {
	how.Seed = in.Seed
	return ensemble.FromSampling(how, in.most())
}

func allCheckpoints(*Inputs) *ensemble.Settings { return ensemble.FromCheckpoints() }
func lastCheckpoint(*Inputs) *ensemble.Settings { return ensemble.FromLast() }
