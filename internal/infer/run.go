package infer

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/store"
)

// A Run is an engine at work for one caller. Only the engine is needed.
type Run struct {
	*Engine
	// Store, if not nil, keeps the outputs of networks. Outputs in the store are not computed again.
	Store *store.Store
	// Progress, if not nil, is called with the number of images that went through a network. It is called from
	// several goroutines.
	Progress func(images int)
}

// Report calls Progress with a number of images that went through a network.
func (r Run) Report(images int) {
	if r.Progress != nil {
		r.Progress(images)
	}
}

// Quiet returns the run without Progress, for passes that do not count.
func (r Run) Quiet() Run {
	r.Progress = nil
	return r
}

// On returns the run with another engine.
func (r Run) On(e *Engine) Run {
	r.Engine = e
	return r
}

// Predict runs a model over the data and adds its outcomes, times its weight, to sums. Outcomes in the Store are not
// computed again.
func (r Run) Predict(ctx context.Context, m Model, data dataset.Dataset, sums *Sums) error {
	if r.Store == nil {
		_, err := r.predict(ctx, m, data, false, sums, sums, r.Progress, later{})
		return err
	}
	one, err := r.stored(ctx, m, data, sums)
	if err == nil {
		sums.Init(m.Name, data.Len(), one.Task)
		sums.addWeighted(one, m.Weight)
	}
	return err
}
