package swag

import (
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/swag/internal/dense"
	"github.com/swagwrap/swagwrap/weights"
)

// Needs returns the checkpoints that hold the data left out of the file, until they are attached. With deviations
// from the running mean they are the last K. With deviations from the final mean they are all models.
func (p *Posterior) Needs() []Checkpoint {
	switch {
	case !p.Options.Referenced || p.attached != nil:
		return nil
	case p.Options.Deviations == Running:
		return p.Checkpoints[len(p.Checkpoints)-p.Options.Columns:]
	}
	return p.Models()
}

// Models returns the models in the moments: θ0, if it counts, and the checkpoints.
func (p *Posterior) Models() []Checkpoint {
	if p.Theta0 == nil {
		return p.Checkpoints
	}
	return append([]Checkpoint{*p.Theta0}, p.Checkpoints...)
}

// Attach gives the posterior the vectors of the checkpoints that [Posterior.Needs] lists, in that order. They must be
// those that it was fitted to. release, if not nil, is called from time to time to give the memory of mapped files
// back.
func (p *Posterior) Attach(thetas []weights.Vector, release func()) error {
	needs := p.Needs()
	if len(thetas) != len(needs) {
		return fmt.Errorf("%s: %d checkpoints, want %d", p.Path, len(thetas), len(needs))
	}
	for t, v := range thetas {
		if v.Len() != p.Len() {
			return fmt.Errorf("%s: %d weights, want %d as in %s", needs[t], v.Len(), p.Len(), p.Path)
		}
	}
	p.attached, p.released = thetas, release
	return nil
}

// Continues returns nil if a fit can continue from this posterior without its checkpoints. Otherwise the error says
// why not.
func (p *Posterior) Continues() error {
	switch {
	case p.Single():
		return fmt.Errorf("%s: holds one checkpoint, and no deviations", p.Path)
	case p.GivenMean != nil:
		return fmt.Errorf("%s: its mean was given, and is not that of its checkpoints", p.Path)
	case p.Options.Compat != "":
		return fmt.Errorf("%s: was fitted as the reference's code does, which keeps too little to go on", p.Path)
	case p.Options.Deviations == Final:
		return fmt.Errorf("%s: its deviations are from the final mean, which moves with every checkpoint", p.Path)
	case p.Options.Referenced:
		return fmt.Errorf("%s: its deviations are in the checkpoints", p.Path)
	}
	return nil
}

// rebuilding holds the buffers that are needed to compute deviations again.
type rebuilding struct {
	theta          [][]float32
	mean, variance []float64
}

// rebuild computes the deviations that a fit would have stored, with the same bits.
func (p *Posterior) rebuild(dst [][]float32, off int64) error {
	if p.attached == nil {
		return errors.New("checkpoints are not attached")
	}
	n := len(dst[0])
	r, _ := p.scratch.Get().(*rebuilding)
	if r == nil || cap(r.mean) < n {
		r = &rebuilding{dense.Rows[float32](len(p.attached), n), make([]float64, n), make([]float64, n)}
	}
	defer p.scratch.Put(r)
	r.mean, r.variance = r.mean[:n], r.variance[:n]
	for t, v := range p.attached {
		r.theta[t] = r.theta[t][:n]
		if err := v.ReadAt(r.theta[t], off); err != nil {
			return err
		}
	}
	p.read(4 * int64(n) * int64(len(r.theta)))
	if p.Options.Deviations == Final {
		p.Mean(r.mean, off)
		mixedDeviations(r.theta, p.Mixing[:len(dst)], r.mean, dst)
		return nil
	}
	p.before.Float64s(r.mean, off)
	running(r.theta, p.Options.Models-p.Options.Columns, p.Options.Power, r.mean, r.variance, dst) // the variance is not used
	return nil
}
