package expect

import "math"

// Labels is what labels of some of the examples say, alone and together with the signs.
type Labels struct {
	Examples int     `json:"examples"`
	Value    float64 `json:"value"` // the figure of all examples, by the labels alone
	Error    float64 `json:"error"` // its standard error
	// Combined is the figure to expect by both sources, and Low and High its 95 % interval. Alone says that the signs do not
	// count, because they have only a bound, or contradict the labels.
	Combined float64 `json:"combined"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Alone    bool    `json:"alone"`
	// Halve is the number of further labels that would halve the interval, or 0 if there are not as many examples.
	Halve int `json:"halve"`
}

// contradiction is the number of standard deviations between labels and signs from which only the labels count. A smaller one would drop
// the signs where labels are off by chance.
const contradiction = 3

// labels combines labels with an estimate.
//
// The loss by labels is post-stratified by uncertainty (Cochran 1977, section 5A.9). It is Σ W·loss over strata, with the share W of all
// predictions. With predictions of a network this is stratified prediction-powered inference (Fisch et al. 2024, arXiv:2406.04291).
// Inside a stratum labels must be drawn at random. How many each has does not matter, so lists of [Validation.allocate] count as they are.
// A stratum without labels is joined with the next. The variance is Σ W²·v/n·(1 − n/N), with v over examples, shrunk by one example of
// validation data, so that few labels that agree are not certain.
//
// The signs are an independent source whose error has the standard deviation band/z on the side of the labels. Both are weighted by the
// inverse of their variances. So the interval holds over shifts like those that the bands come from, and not for each of them.
func (r *Reference) labels(s *Sums, at on) *Labels {
	c, l := scales[r.Figure], &Labels{Examples: s.Labelled()}
	loss, variance, unit := 0.0, 0.0, 0.0
	for _, h := range r.joined(s) {
		w, n := h.Size/s.Size, float64(h.Labelled)
		loss += w * h.Loss / h.Known
		v := h.variance()
		variance += w * w * v / n * max(0, 1-n/float64(h.Examples))
		unit += w * w * v / n
	}
	value := c.value(loss)
	l.Value = c.figure(value)
	both := func(v, half float64) {
		l.Combined, l.Low, l.High = c.figure(v), c.figure(max(c.least, v-half)), c.figure(min(c.best, v+half))
		if l.Low > l.High {
			l.Low, l.High = l.High, l.Low
		}
	}
	l.Alone = true
	if variance == 0 {
		both(value, 0)
		return l
	}
	sd := c.deviation(loss, variance)
	unit *= sd * sd / variance // on the scale
	if l.Error = sd; r.Figure == RMSE {
		l.Error *= l.Value
	}
	side, own, combined := at.high-at.value, 0.0, value
	if value < at.value {
		side = at.value - at.low
	}
	precision := 1 / (sd * sd)
	if by := side / z; at.bound == "" && by > 0 && math.Abs(value-at.value) <= contradiction*math.Hypot(by, sd) {
		own = 1 / (by * by)
		l.Alone, combined = false, (value*precision+at.value*own)/(precision+own)
	}
	both(combined, z/math.Sqrt(precision+own))
	// n labels have the variance unit·labelled/n, less the part of the examples that are known.
	n, all := float64(l.Examples), float64(s.Examples)
	want := 1/(4*(precision+own)-own) + unit*n/all
	if more := math.Ceil(unit*n/want - n); n+more < all {
		l.Halve = int(max(1, more))
	}
	return l
}

// joint is a stratum, or neighbours that were joined, with the loss of one example there on validation data, and its square.
type joint struct {
	Stratum
	mean, square float64
}

// variance returns that of the mean loss of one example. It counts one example of validation data.
func (h *joint) variance() float64 {
	size := h.Known / float64(h.Labelled)
	rate := (h.Loss + size*h.mean) / (h.Known + size)
	one := h.square - 2*rate*h.mean + rate*rate
	return (h.residuals(rate)/(size*size) + one) / float64(h.Labelled+1)
}

// joined returns strata that all have labels.
func (r *Reference) joined(s *Sums) (out []joint) {
	var open, was Stratum
	for h := range strata {
		open.merge(s.Strata[h])
		was.merge(r.Strata[h])
		if open.Labelled > 0 {
			mean, square := scales[r.Figure].prior(was, r)
			out, open, was = append(out, joint{open, mean, square}), Stratum{}, Stratum{}
		}
	}
	if open.Examples > 0 { // the last have none, and there is an earlier one
		last := &out[len(out)-1]
		last.Examples, last.Size = last.Examples+open.Examples, last.Size+open.Size
	}
	return out
}

// allocate returns the number of labels of each stratum, of the next n. It is in proportion to the examples times the standard deviation
// of their loss there (Neyman 1934), and at least one. It counts examples without a label. Several references count alike.
func (s *Sums) allocate(references []*Reference, n int) (each [strata]int) {
	var weight [strata]float64
	total, left := 0.0, [strata]int{}
	for h := range strata {
		left[h] = s.Strata[h].Examples - s.Strata[h].Labelled
		for _, r := range references {
			mean, square := scales[r.Figure].prior(r.Strata[h], r)
			weight[h] += float64(s.Strata[h].Examples) * math.Sqrt(max(0, square-mean*mean)) / r.Loss
		}
		total += weight[h]
	}
	for range n {
		best, most := -1, 0.0
		for h := range strata {
			// The next label goes where most are missing.
			if missing := (weight[h]/total + 1e-9) / float64(each[h]+s.Strata[h].Labelled+1); left[h] > each[h] && missing > most {
				best, most = h, missing
			}
		}
		if best < 0 {
			break
		}
		each[best]++
	}
	return each
}
