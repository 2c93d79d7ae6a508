package task

import (
	"math"

	"github.com/swagwrap/swagwrap/calibrate/expect"
	"github.com/swagwrap/swagwrap/internal/target"
)

// signs counts, over the positions of an example, what package expect compares. Labels of a position are predictions of their own.
type signs struct {
	threshold   float64
	predictions float64
	confidence  float64   // sum
	below       float64   // confidences up to the threshold
	known       float64   // predictions whose target is known
	wrong       float64   // of these
	predicted   []float64 // by class; of labels those that are absent and there
}

// signsColumn is a hidden column with the numbers of signs. Places in it:
const (
	signsColumn   = "signs"
	atPredictions = iota - 1
	atConfidence
	atBelow
	atKnown
	atWrong
	atPredicted
)

// groups returns the number of classes, 2 for labels, or 0 for a task without signs. The targets of tokens of a text are always
// known, and numbers have no accuracy.
func groups(t several) int {
	switch {
	case t.Next || t.about.Classes == 0:
		return 0
	case t.hasClass:
		return t.about.Classes
	}
	return 2
}

// signsColumns returns the hidden column, if rows are to have it.
func signsColumns(t several, want RowOptions) (list []Column) {
	if n := groups(t); n > 0 && want.Signs > 0 {
		list = append(list, Column{Name: signsColumn, Shape: []int{atPredicted + n}, Hidden: true})
	}
	return list
}

// count counts a position. values are those of its row, and one is its label if it has one.
func (s *signs) count(t several, values []float64, one target.Target, has bool) {
	if t.hasClass {
		class := int(values[t.columns["prediction"]])
		s.add(values[t.columns["confidence"]], class, has, has && one.Classes[0] != class)
		return
	}
	for k := range t.about.Classes {
		p := values[t.columns["probabilities"]+k]
		class, known := 0, has && one.Values[k] >= 0
		if p >= 0.5 {
			class = 1
		}
		s.add(max(p, 1-p), class, known, known && int(one.Values[k]) != class)
	}
}

func (s *signs) add(confidence float64, class int, known, wrong bool) {
	s.predictions++
	s.confidence += confidence
	if confidence <= s.threshold {
		s.below++
	}
	if known {
		s.known++
	}
	if wrong {
		s.wrong++
	}
	s.predicted[class]++
}

// append appends the numbers of the column.
func (s *signs) append(dst []float64) []float64 {
	return append(append(dst, s.predictions, s.confidence, s.below, s.known, s.wrong), s.predicted...)
}

// signsReader implements [Signs].
type signsReader struct {
	signs, mutual int
	each          float64 // predictions of a position
	seen          expect.Seen
}

// Signs implements [Sighted].
func (t several) Signs(columns []Column) Signs {
	r, at := &signsReader{-1, -1, 1, expect.Seen{}}, 0
	for _, c := range columns {
		switch c.Name {
		case signsColumn:
			r.signs = at
		case "mutual_information":
			r.mutual = at
		}
		at += c.Len()
	}
	if groups(t) == 0 || r.signs < 0 || r.mutual < 0 {
		return nil
	}
	if !t.hasClass {
		r.each = float64(t.about.Classes)
	}
	r.seen.All = &expect.Example{Predicted: make([]float64, groups(t))}
	return r
}

func (r *signsReader) Figure() expect.Figure { return expect.Accuracy }

func (r *signsReader) Fits(v *expect.Validation) bool { return Fits(v, &r.seen) }

// Limits returns none: see [Confidences].
func (r *signsReader) Limits(Rows) (all expect.Limits, _ []expect.Limits) { return all, nil }

func (r *signsReader) Read(row []float64, _ int, _ expect.Limits, _ []expect.Limits) *expect.Seen {
	v, e := row[r.signs:], r.seen.All
	n := v[atPredictions]
	r.seen.Uncertainty, r.seen.Kind = -v[atConfidence]/n, 0
	e.Size, e.Signs = n, [2]float64{v[atBelow] / n, row[r.mutual] / r.each}
	most := 0.0
	for c := range e.Predicted {
		if e.Predicted[c] = v[atPredicted+c]; e.Predicted[c] > most {
			most, r.seen.Kind = e.Predicted[c], float64(c)
		}
	}
	if e.Known, e.Loss = v[atKnown], 0; e.Known > 0 {
		e.Loss = v[atWrong] / e.Known
	}
	return &r.seen
}

// Confidences counts confidences of labelled predictions of pixels or tokens. Memory does not grow with their number.
type Confidences struct {
	t     several
	cells []int
	wrong int
}

// Cells of a confidence c are of the same width in −log₂(1 − c). The last has those that differ from 1 by rounding only.
const (
	cellsPerHalving = 256
	halvings        = 52
)

// NewConfidences returns those of no predictions. It is nil for a task without signs.
func NewConfidences(t Task) *Confidences {
	own, ok := t.(several)
	if !ok || groups(own) == 0 {
		return nil
	}
	return &Confidences{t: own, cells: make([]int, cellsPerHalving*halvings+1)}
}

// Add adds the labelled predictions of an example.
func (c *Confidences) Add(outcome []float64, label target.Target) error {
	var values []float64
	return EachKnown(c.t, outcome, label, func(_ int, row []float64, one target.Target) error {
		values = c.t.each.Values(values[:0], positionOptions, Average{Outcome: row}, one)
		s := signs{predicted: make([]float64, groups(c.t))}
		each := func(confidence float64) { c.cells[cellOf(confidence)]++ }
		if c.t.hasClass {
			each(values[c.t.columns["confidence"]])
		} else {
			for k := range c.t.about.Classes {
				if p := values[c.t.columns["probabilities"]+k]; one.Values[k] >= 0 {
					each(max(p, 1-p))
				}
			}
		}
		s.count(c.t, values, one, true)
		c.wrong += int(s.wrong)
		return nil
	})
}

func cellOf(confidence float64) int {
	return int(min(halvings, max(0, -math.Log2(max(0, 1-confidence)))) * cellsPerHalving)
}

// Threshold returns the confidence below which as many predictions lie as are wrong. It is 0 without a wrong one.
func (c *Confidences) Threshold() float64 {
	n := 0
	for cell, count := range c.cells {
		if n += count; n >= c.wrong {
			if c.wrong == 0 {
				return 0
			}
			return 1 - math.Exp2(-float64(cell+1)/cellsPerHalving)
		}
	}
	return 1
}
