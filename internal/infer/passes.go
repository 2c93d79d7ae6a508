package infer

import (
	"sync"
	"sync/atomic"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Passes are what batch-norm passes of a network run, which package batchnorm makes.
type Passes struct {
	Plan   *bnupdate.Plan
	Keep   bnupdate.Keep // of the plan
	Model  *onnxio.Model // that the plan is made of
	Batch  int           // examples of a batch, 0 for any number; once they are Ready
	Stale  bool          // keeps statistics that training updated
	Placed atomic.Bool   // see [Engine.Place]

	once  sync.Once
	err   error
	plain struct { // the plan for providers that do not know batch norm in training
		sync.Once
		plan *bnupdate.Plan
		err  error
	}
}

func newPasses(m *onnxio.Model, l *weights.Layout, stored weights.Slice, keep func(mean, variance weights.Tensor) (kept, stale bool)) (p *Passes, err error) {
	p = &Passes{Model: m}
	p.Keep = bnupdate.Keep{Statistics: stored, Layer: func(mean, variance weights.Tensor) bool {
		kept, stale := keep(mean, variance)
		p.Stale = p.Stale || stale
		return kept
	}}
	p.Plan, err = bnupdate.NewPlan(m, l, p.Keep)
	return p, err
}

// Ready has f make them ready, once; of later calls it returns what that returned.
func (p *Passes) Ready(f func() error) error {
	p.once.Do(func() { p.err = f() })
	return p.err
}

// Explicit is the plan with the operators that batch norm in training is made of.
func (p *Passes) Explicit(l *weights.Layout) (*bnupdate.Plan, error) {
	x := &p.plain
	x.Do(func() { x.plan, x.err = bnupdate.NewExplicitPlan(p.Model, l, p.Keep) })
	return x.plan, x.err
}
