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

// mostCorrection bounds what a control may change: a mean by so many standard
// deviations, and a variance by the factor of twice as much or as little. The
// noise of whole batches is far less but in channels that hardly any image
// excites, and there one network tells little of another.
const mostCorrection = 0.5

// Correct takes the noise that the control knows of out of statistics, which are
// of the batches that its Some is of: means are moved by as many standard
// deviations, and variances by the factor, that lie between Some and All. The
// control's own Some becomes its All.
func (p *Plan) Correct(statistics []float32, by Control) {
	for _, l := range p.layers {
		for c := range l.mean.Len() {
			mean, variance := l.mean.Offset+c, l.vari.Offset+c
			m, v := &statistics[mean], &statistics[variance]
			some, all := float64(by.Some[variance]), float64(by.All[variance])
			switch {
			case *m == by.Some[mean] && *v == by.Some[variance]:
				*m, *v = by.All[mean], by.All[variance]
			case some > 0: // else the channel is dead in the control, which tells nothing
				shift := (float64(by.All[mean]) - float64(by.Some[mean])) / math.Sqrt(some)
				shift = min(max(shift, -mostCorrection), mostCorrection)
				*m = float32(float64(*m) + shift*math.Sqrt(float64(*v)))
				*v = float32(float64(*v) * min(max(all/some, mostCorrection), 1/mostCorrection))
			}
		}
	}
}

// First returns the result of the first batches alone.
func (p *Plan) First(r Result, batches int) Result {
	r.batches = r.batches[:min(batches, len(r.batches))]
	r.summarise(p)
	return r
}
