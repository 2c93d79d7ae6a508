package expect

import "math"

// Labels is what labels of some of the examples say, alone and together with the rules.
type Labels struct {
	Examples int     `json:"examples"`
	Accuracy float64 `json:"accuracy"` // of all examples, by the labels alone
	Error    float64 `json:"error"`    // its standard error
	// Combined is the accuracy to expect by both sources, and Low and High its 95 % interval. Alone says that the rules do not
	// count, because they have only a bound, or contradict the labels.
	Combined float64 `json:"combined"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Alone    bool    `json:"alone"`
	// Halve is the number of further labels that would halve the interval, or 0 if there are not as many examples.
	Halve int `json:"halve"`
}

// contradiction is the number of standard deviations between labels and rules from which only the labels count. A smaller one would drop
// the rules where labels are off by chance.
const contradiction = 3

// labels combines labels with an estimate.
//
// The accuracy by labels is post-stratified by confidence (Cochran 1977, section 5A.9; with predictions that were made by a network it
// is stratified prediction-powered inference, Fisch et al. 2024, arXiv:2406.04291): Σ W·p over strata, W the share of all examples.
// Inside a stratum labels must be drawn at random. How many each has does not matter, so lists of [Sums.Allocate] count as they are.
// A stratum without labels is joined with the next. The variance is Σ W²·p(1−p)/n·(1 − n/N), with p shrunk by one example of
// validation data, so that few labels that agree are not certain.
//
// The rules are an independent source whose error has the standard deviation band/z on the side of the labels. Both are weighted by the
// inverse of their variances. So the interval holds over shifts like those that the bands come from, and not for each of them.
func (r *Reference) labels(s *Sums, e Estimate) *Labels {
	l := &Labels{Examples: s.labelled()}
	all, variance, unit := float64(s.Examples), 0.0, 0.0
	for _, h := range r.joined(s) {
		w := h.examples / all
		p := (h.right + h.prior) / (h.labelled + 1)
		l.Accuracy += w * h.right / h.labelled
		variance += w * w * p * (1 - p) / h.labelled * max(0, 1-h.labelled/h.examples)
		unit += w * w * p * (1 - p) / h.labelled
	}
	l.Error = math.Sqrt(variance)
	l.Combined, l.Alone = l.Accuracy, true
	precision := 1 / variance
	if variance == 0 {
		l.Low, l.High = l.Accuracy, l.Accuracy
		return l
	}
	side, own := e.High-e.Accuracy, 0.0
	if l.Accuracy < e.Accuracy {
		side = e.Accuracy - e.Low
	}
	if sd := side / z; e.Bound == "" && sd > 0 && math.Abs(l.Accuracy-e.Accuracy) <= contradiction*math.Hypot(sd, l.Error) {
		own = 1 / (sd * sd)
		l.Alone, l.Combined = false, (l.Accuracy*precision+e.Accuracy*own)/(precision+own)
	}
	half := z / math.Sqrt(precision+own)
	l.Low, l.High = max(0, l.Combined-half), min(1, l.Combined+half)
	// n labels have the variance unit·labelled/n, less the part of the examples that are known.
	n := float64(l.Examples)
	want := 1/(4*(precision+own)-own) + unit*n/all
	if more := math.Ceil(unit*n/want - n); n+more < all {
		l.Halve = int(max(1, more))
	}
	return l
}

// joint is a stratum, or neighbours that were joined.
type joint struct{ examples, labelled, right, prior float64 }

// joined returns strata that all have labels. prior is the accuracy on validation data.
func (r *Reference) joined(s *Sums) (out []joint) {
	var open joint
	var was, wrong float64
	for h := range strata {
		open.examples += float64(s.Strata[h])
		open.labelled += float64(s.Labelled[h])
		open.right += float64(s.Right[h])
		was, wrong = was+float64(r.StratumExamples[h]), wrong+float64(r.StratumWrong[h])
		open.prior = 1 - (wrong+1)/(was+2) // never certain
		if open.labelled > 0 {
			out, open, was, wrong = append(out, open), joint{}, 0, 0
		}
	}
	if open.examples > 0 { // the last have none, and there is an earlier one
		last := &out[len(out)-1]
		last.examples += open.examples
	}
	return out
}

// Allocate returns how many of the next n labels each stratum should have: in proportion to the examples times the standard deviation
// of a right prediction there (Neyman 1934), and at least one. It counts examples without a label.
func (s *Sums) Allocate(r *Reference, n int) (each [strata]int) {
	var weight [strata]float64
	total, left := 0.0, [strata]int{}
	for h := range strata {
		left[h] = s.Strata[h] - s.Labelled[h]
		p := (float64(r.StratumWrong[h]) + 1) / (float64(r.StratumExamples[h]) + 2)
		weight[h] = float64(s.Strata[h]) * math.Sqrt(p*(1-p))
		total += weight[h]
	}
	for range n {
		best, most := -1, 0.0
		for h := range strata {
			// The next label goes where most are missing.
			if missing := (weight[h]/max(total, 1) + 1e-9) / float64(each[h]+s.Labelled[h]+1); left[h] > each[h] && missing > most {
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
