package bnupdate

import "math"

// Control is a control variate (Glasserman, "Monte Carlo Methods in Financial
// Engineering", section 4.1): statistics of a network of nearby weights, from some
// batches and from many more. What the two differ by is the noise of the few, and
// that is nearly the same for all networks nearby. A member's statistics from the
// same few batches, less that noise, are nearly as good as from all.
type Control struct {
	Some, All []float32 // in the layout's order
}

// Correct takes the noise that the control knows of out of statistics, which are
// of the batches that its Some is of: means are moved by as many standard
// deviations, and variances by the factor, that lie between Some and All. The
// control's own Some becomes its All.
func (p *Plan) Correct(statistics []float32, by Control) {
	for _, l := range p.layers {
		for c := range l.mean.Len() {
			m, v := &statistics[l.mean.Offset+c], &statistics[l.vari.Offset+c]
			some, all := float64(by.Some[l.vari.Offset+c]), float64(by.All[l.vari.Offset+c])
			if !(some > 0) {
				continue // a channel that is dead in the control tells nothing
			}
			shift := float64(by.All[l.mean.Offset+c]) - float64(by.Some[l.mean.Offset+c])
			*m = float32(float64(*m) + shift*math.Sqrt(float64(*v)/some))
			*v = float32(all * (float64(*v) / some))
		}
	}
}

// First returns the result of the first batches alone.
func (p *Plan) First(r Result, batches int) Result {
	r.batches = r.batches[:min(batches, len(r.batches))]
	r.summarise(p)
	return r
}
