package bnupdate

import "math"

// Control is a control variate (Glasserman, "Monte Carlo Methods in Financial Engineering", section 4.1). It holds
// statistics of a network with nearby weights, from some batches and from many more. The difference between the two
// is the noise of the smaller set, which is nearly the same for all networks nearby. A member's statistics from the
// same small set, minus that noise, are nearly as good as from all batches.
type Control struct {
	Some, All []float32 // in the layout's order
}

// mostCorrection bounds what a control may change. A mean changes by at most this many standard deviations, a
// variance at most by a factor of 2 up or down. The noise of whole batches is far smaller, except in channels that
// hardly any image excites. There one network says little about another.
const mostCorrection = 0.5

// Correct removes the noise that the control shows from statistics, which must come from the batches of by.Some. Each
// mean moves by the number of standard deviations between Some and All. Each variance is multiplied by the ratio of
// All to Some. The control's own Some becomes its All.
func (p *Plan) Correct(statistics []float32, by Control) {
	for _, l := range p.layers {
		for c := range l.mean.Len() {
			mean, variance := l.mean.Offset+c, l.vari.Offset+c
			m, v := &statistics[mean], &statistics[variance]
			some, all := float64(by.Some[variance]), float64(by.All[variance])
			switch {
			case *m == by.Some[mean] && *v == by.Some[variance]:
				*m, *v = by.All[mean], by.All[variance]
			case some > 0: // else the channel is dead in the control, which shows nothing
				shift := (float64(by.All[mean]) - float64(by.Some[mean])) / math.Sqrt(some)
				shift = min(max(shift, -mostCorrection), mostCorrection)
				*m = float32(float64(*m) + shift*math.Sqrt(float64(*v)))
				*v = float32(float64(*v) * min(max(all/some, mostCorrection), 1/mostCorrection))
			}
		}
	}
}

// First returns the result of the first batches only.
func (p *Plan) First(r Result, batches int) Result {
	r.batches = r.batches[:min(batches, len(r.batches))]
	r.summarise(p)
	return r
}
