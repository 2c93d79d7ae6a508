package calibrate

import (
	"runtime"
	"sync"
)

// passes computes the losses of rows once for each temperature at which all fits to parts of the same rows look: 1 and the bounds.
type passes struct {
	peaks []peak
	known map[float64]*pass // by 1/T
}

// peak is the largest logit of a row.
type peak struct {
	class int
	logit float64
}

// pass holds losses of rows at one temperature.
type pass struct {
	losses []rowLoss
	done   []bool
}

// fewPerCore is the number of logits below which another core does not pay.
const fewPerCore = 1 << 16

// losses returns the loss of each of the given rows at inverse temperature beta. All cores compute them, and the caller adds them
// up in one order. So the bits do not depend on the number of cores.
func (s scored) losses(rows []int, beta float64) []rowLoss {
	p := s.passes
	if p.peaks == nil {
		p.peaks, p.known = make([]peak, len(s.wanted)), map[float64]*pass{}
		for i := range p.peaks {
			p.peaks[i].class, p.peaks[i].logit = top(s.row(i))
		}
	}
	compute := func(i int) rowLoss {
		return lossBelow(s.row(i), p.peaks[i].class, p.peaks[i].logit, s.wanted[i], beta)
	}
	out := make([]rowLoss, len(rows))
	if beta != 1 && beta != 1/MinTemperature && beta != 1.0/usualTemperature {
		s.parallel(len(rows), func(k int) { out[k] = compute(rows[k]) })
		return out
	}
	at := p.known[beta]
	if at == nil {
		at = &pass{make([]rowLoss, len(s.wanted)), make([]bool, len(s.wanted))}
		p.known[beta] = at
	}
	s.parallel(len(rows), func(k int) { // rows differ from each other
		if i := rows[k]; !at.done[i] {
			at.losses[i], at.done[i] = compute(i), true
		}
		out[k] = at.losses[rows[k]]
	})
	return out
}

// parallel calls f for each of n rows, on all cores if there are enough logits.
func (s scored) parallel(n int, f func(k int)) {
	cores := max(1, min(runtime.GOMAXPROCS(0), n*s.classes/fewPerCore))
	var all sync.WaitGroup
	for core := 1; core < cores; core++ {
		all.Go(func() { span(n, core, cores, f) })
	}
	span(n, 0, cores, f)
	all.Wait()
}

// span calls f for the numbers of one of several equal parts.
func span(n, part, parts int, f func(k int)) {
	for k := part * n / parts; k < (part+1)*n/parts; k++ {
		f(k)
	}
}
