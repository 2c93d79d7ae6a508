package expect

import "math"

// Sums adds up predictions. The zero value has none.
type Sums struct {
	Examples  int
	Size      float64    // predictions
	Signs     [2]float64 // sums over predictions
	Predicted []float64
	Strata    [strata]Stratum
}

// add adds an example of a stratum.
func (s *Sums) add(h int, e *Example) {
	s.Examples++
	s.Size += e.Size
	for k, v := range e.Signs {
		s.Signs[k] += float64(e.Size * max(0, v))
	}
	if s.Predicted == nil {
		s.Predicted = make([]float64, len(e.Predicted))
	}
	for c, n := range e.Predicted {
		s.Predicted[c] += n
	}
	s.Strata[h].add(e)
}

// Labelled returns the number of examples with a known prediction.
func (s *Sums) Labelled() (n int) {
	for _, h := range s.Strata {
		n += h.Labelled
	}
	return n
}

// Why is the reason why there is only a bound.
type Why string

// The reasons for a bound.
const (
	// Large is a large estimated drop: the signs err by too much there.
	Large Why = "large drop"
	// Shares are predictions that are distributed otherwise. Either the target is so, or the network confuses them, and no sign tells.
	Shares Why = "predicted classes"
)

// Estimate is a figure to expect. With a bound, an accuracy is at most High, and an error at least Low. An accuracy with other shares of
// predicted classes has neither.
type Estimate struct {
	Figure     Figure  `json:"figure"`
	Accuracy   float64 `json:"accuracy,omitempty"` // missing with a bound, and for numbers
	RMSE       float64 `json:"rmse,omitempty"`     // missing with a bound, and for classes
	Low        float64 `json:"low,omitempty"`      // 95 %
	High       float64 `json:"high,omitempty"`
	Bound      Why     `json:"bound,omitempty"`
	Validation float64 `json:"validation"` // the figure on validation data
	Examples   int     `json:"examples"`
	// Confidence, Variance and Disagreement are the estimates by each sign, and Moved is the share of predictions that are distributed
	// otherwise, beyond chance.
	Confidence   float64 `json:"by_confidence,omitempty"`
	Variance     float64 `json:"by_variance,omitempty"`
	Disagreement float64 `json:"by_disagreement"`
	Moved        float64 `json:"moved"`
	// Labels has what labels say; nil without any.
	Labels *Labels `json:"labels,omitempty"`
}

// Value returns the estimate.
func (e *Estimate) Value() float64 { return e.Accuracy + e.RMSE }

// on is an estimate on the figure's scale.
type on struct {
	value, low, high float64 // low is the worse end
	bound            Why
}

// Estimate returns the figure to expect. units is the number of independent examples, at most s.Examples. There must be an example.
func (r *Reference) Estimate(s *Sums, units int) Estimate {
	c := scales[r.Figure]
	var by [2]float64
	for k := range by {
		by[k] = c.value(r.Loss * s.Signs[k] / s.Size / r.Signs[k])
		if r.Signs[k] == 0 || s.Signs[k] == 0 && r.Figure == RMSE {
			by[k] = c.value(r.Loss)
		}
	}
	was := c.value(r.Loss)
	at, moved := on{value: (by[0] + by[1]) / 2}, r.moved(s, units)
	drop, dispersion := was-at.value, math.Abs(by[0]-by[1])
	chance := z * math.Sqrt(c.chance(r, at.value, units)+math.Pow(c.deviation(r.Loss, r.Spread/float64(r.Examples)), 2))
	at.low = max(c.least, at.value-math.Hypot(c.below.width(drop, dispersion, moved), chance))
	at.high = min(c.best, at.value+math.Hypot(c.above.width(drop, dispersion, moved), chance))
	limit := c.moved
	if r.Dispersion != nil {
		limit = c.several
	}
	switch {
	case moved >= limit:
		at.bound = Shares
	case drop >= c.drop:
		at.bound, at.high = Large, min(c.best, was-min(c.drop, c.credited*drop))
	}
	e := Estimate{
		Bound:        at.bound,
		Validation:   r.Value(),
		Examples:     s.Examples,
		Disagreement: c.figure(by[1]),
		Moved:        moved,
		Figure:       r.Figure,
	}
	e.put(c, at)
	if r.Figure == RMSE {
		e.Variance = c.figure(by[0])
	} else {
		e.Confidence = c.figure(by[0])
	}
	if s.Labelled() > 0 {
		e.Labels = r.labels(s, at)
	}
	return e
}

const z = 1.959963984540054 // 97.5 % of the normal distribution

// put stores an estimate. With a bound only the better end counts.
func (e *Estimate) put(c *scale, at on) {
	to := &e.Accuracy
	e.Low, e.High = c.figure(at.low), c.figure(at.high)
	if e.Figure == RMSE {
		to, e.Low, e.High = &e.RMSE, e.High, e.Low
	}
	switch {
	case at.bound == "":
		*to = c.figure(at.value)
	case e.Figure == RMSE:
		e.High = 0
	case at.bound == Shares: // other classes may be easier, too
		e.Low, e.High = 0, 0
	default:
		e.Low = 0
	}
}

// moved returns the total variation of the predicted classes, less twice what chance makes of it on average.
func (r *Reference) moved(s *Sums, units int) float64 {
	n, m := r.Size, s.Size
	each, d := 1/float64(r.Examples)+1/float64(units), 0.0
	for c, was := range r.Predicted {
		p, q := was/n, s.Predicted[c]/m
		both, dispersion := (was+s.Predicted[c])/(n+m), 1.0
		if r.Dispersion != nil {
			dispersion = r.Dispersion[c]
		}
		d += math.Abs(p-q)/2 - math.Sqrt(both*(1-both)*dispersion*each)
	}
	return max(0, d)
}

// mean returns the mean of the figures of several targets, with the means of the ends of their intervals: errors of targets may all go
// together. There is a bound if one target has one. There must be an estimate.
func mean(list []Estimate) Estimate {
	n, out := float64(len(list)), Estimate{Figure: list[0].Figure, Examples: list[0].Examples}
	labels := &Labels{}
	for _, e := range list {
		out.RMSE, out.Low, out.High = out.RMSE+e.RMSE/n, out.Low+e.Low/n, out.High+e.High/n
		out.Validation, out.Variance, out.Disagreement, out.Moved = out.Validation+e.Validation/n, out.Variance+e.Variance/n,
			out.Disagreement+e.Disagreement/n, max(out.Moved, e.Moved)
		if out.Bound == "" {
			out.Bound = e.Bound
		}
		if l := e.Labels; l == nil {
			labels = nil
		} else if labels != nil {
			labels.Examples, labels.Alone, labels.Halve = l.Examples, labels.Alone || l.Alone, max(labels.Halve, l.Halve)
			labels.Value, labels.Error = labels.Value+l.Value/n, labels.Error+l.Error/n
			labels.Combined, labels.Low, labels.High = labels.Combined+l.Combined/n, labels.Low+l.Low/n, labels.High+l.High/n
		}
	}
	if out.Labels = labels; out.Bound != "" {
		out.RMSE, out.High = 0, 0
	}
	return out
}
