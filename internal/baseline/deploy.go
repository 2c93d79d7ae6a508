package baseline

import (
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/swag"
)

// Deploy returns what sample makes the ensemble of a method by, and of which runs. No
// ensemble is what MC dropout says, Laplace's approximation, checkpoints from
// elsewhere, or a control: then it returns nil.
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

// Networks is how many networks a prediction of the method takes.
func (p *Predicted) Networks() int {
	if find(p.Key).OneNetwork {
		return 1
	}
	return p.Members
}

// What methods are made of.

func averaged(in *Inputs) *ensemble.Settings { return in.drawn(swag.SampleOptions{}) }

func likeSWAG(in *Inputs) *ensemble.Settings { return in.drawn(in.swag()) }

func (in *Inputs) drawn(how swag.SampleOptions) *ensemble.Settings {
	how.Seed = in.Seed
	return ensemble.FromSampling(how, in.Members)
}

func allCheckpoints(*Inputs) *ensemble.Settings {
	return &ensemble.Settings{Method: ensemble.Iterates, Seed: 1}
}

// lastCheckpoints are those of so many runs.
func lastCheckpoints(runs int) *ensemble.Settings {
	return &ensemble.Settings{Method: ensemble.Iterates, Members: runs, Seed: 1}
}
