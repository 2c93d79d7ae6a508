package infer

import (
	"sync"
	"sync/atomic"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Passes are the plans for batch-norm passes of a network. Package batchnorm runs them.
type Passes struct {
	Plan   *bnupdate.Plan
	Keep   bnupdate.Keep // of the plan
	Model  *onnxio.Model // that the plan is made from
	Batch  int           // examples in a batch, 0 for any number; set by Ready
	Stale  bool          // keeps statistics that training updated
	Placed atomic.Bool   // see [Engine.Place]

	// Explicit returns the plan that writes out batch norm in training in operators, for providers that support batch
	// norm in inference only.
	Explicit func() (*bnupdate.Plan, error)

	once sync.Once
	err  error
}

func newPasses(m *onnxio.Model, l *weights.Layout, stored weights.Slice, keep func(mean, variance weights.Tensor) (kept, stale bool)) (p *Passes, err error) {
	p = &Passes{Model: m}
	p.Keep = bnupdate.Keep{Statistics: stored, Layer: func(mean, variance weights.Tensor) bool {
		kept, stale := keep(mean, variance)
		p.Stale = p.Stale || stale
		return kept
	}}
	p.Explicit = sync.OnceValues(func() (*bnupdate.Plan, error) { return bnupdate.NewExplicitPlan(p.Model, l, p.Keep) })
	p.Plan, err = bnupdate.NewPlan(m, l, p.Keep)
	return p, err
}

// Ready calls f once, to make the passes ready. Later calls return the same error.
func (p *Passes) Ready(f func() error) error {
	p.once.Do(func() { p.err = f() })
	return p.err
}
