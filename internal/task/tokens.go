package task

import (
	wire "encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/target"
)

// tokenSums implements [positionSums] for language models. A text has units of chance: see [target.Text].
type tokenSums struct {
	columns map[string]int // of the values of a token
	all     *calibrate.TokenSums
	units   map[int]*calibrate.TokenSums // without cells; nil for an example that is one unit
}

func (s *tokenSums) add(p position) error {
	label, text := p.label.Classes[0], p.label.Text
	var token calibrate.Judged
	var entropy float64
	if v := p.values; v != nil {
		token = calibrate.Judged{
			TopLabel: calibrate.TopLabel{Confidence: v[s.columns["confidence"]], Correct: int(v[s.columns["prediction"]]) == label},
			NLL:      v[s.columns["nll"]],
			Brier:    v[s.columns["brier"]],
		}
		entropy = v[s.columns["predictive_entropy"]]
	} else if err := calibrate.CheckRow(p.outcome, label); err != nil {
		return err
	} else {
		token, entropy = calibrate.JudgeRow(p.outcome, label), calibrate.Entropy(p.outcome)
	}
	characters, bytes := 0, 0
	if text != nil && text.Characters != nil {
		characters, bytes = text.Characters[0], text.Bytes[0]
	}
	s.all.Add(token, entropy, characters, bytes, s.unit(text))
	return nil
}

// unit returns the sums of the unit of one token, or nil for an example that is one unit.
func (s *tokenSums) unit(of *target.Text) *calibrate.TokenSums {
	if of == nil {
		return nil
	}
	k := of.Unit[0]
	if s.units == nil {
		s.units = map[int]*calibrate.TokenSums{}
	}
	if s.units[k] == nil {
		s.units[k] = &calibrate.TokenSums{}
	}
	return s.units[k]
}

func (s *tokenSums) reset() { s.all, s.units = &calibrate.TokenSums{}, nil }

func (s *tokenSums) merge(o positionSums) {
	from := o.(*tokenSums)
	s.all.Merge(from.all)
	for k, u := range from.units {
		s.unit(&target.Text{Unit: []int{k}}).Merge(u)
	}
}

func (s *tokenSums) brief() positionSums { return &tokenSums{s.columns, s.all.Brief(), s.units} }

// split calls f with the sums of each unit, in their order.
func (s *tokenSums) split(f func(unit string, of positionSums)) {
	for _, k := range s.order() {
		f(fmt.Sprint(k), &tokenSums{all: s.units[k]})
	}
}

func (s *tokenSums) order() []int { return slices.Sorted(maps.Keys(s.units)) }

func (s *tokenSums) append(b []byte) []byte {
	b = appendPart(b, s.all.Append(nil))
	for _, k := range s.order() {
		b = appendPart(wire.AppendUvarint(b, uint64(k)), s.units[k].Append(nil))
	}
	return b
}

func (s *tokenSums) parse(b []byte) error {
	part, b, err := cutPart(b)
	if err != nil {
		return err
	}
	if s.all, err = calibrate.ParseTokenSums(part); err != nil {
		return err
	}
	for s.units = nil; len(b) > 0; {
		k, n := wire.Uvarint(b)
		if n <= 0 || k > math.MaxInt32 {
			return errSums
		}
		if part, b, err = cutPart(b[n:]); err != nil {
			return err
		}
		unit, err := calibrate.ParseTokenSums(part)
		if err != nil {
			return err
		}
		s.unit(&target.Text{Unit: []int{int(k)}}).Merge(unit)
	}
	return nil
}

func (s *tokenSums) losses() (n float64, sums [3]float64) {
	n = float64(s.all.Positions)
	return n, [3]float64{s.all.NLL, n - float64(s.all.Right), s.all.Brier}
}

func (s *tokenSums) found() *result {
	n := float64(s.all.Positions)
	return &result{Metrics: calibrate.Metrics{
		Accuracy: float64(s.all.Right) / n,
		NLL:      s.all.NLL / n,
		Brier:    s.all.Brier / n,
		Entropy:  s.all.Entropy / n,
	}, sums: s}
}

func (s *tokenSums) measures() []measure      { return tokenMeasures }
func (s *tokenSums) confidences() confidences { return s.all }

// parts returns the figures of each document or block.
func (s *tokenSums) parts() (list []Part) {
	s.split(func(unit string, of positionSums) {
		r := of.found()
		p := Part{Name: unit}
		for _, m := range tokenMeasures {
			switch m.Key {
			case "tokens", "perplexity", "nll", "accuracy", "bits_per_character":
				m.Further = false
				p.Scores = append(p.Scores, Score{m.Metric, m.of(r)})
			}
		}
		list = append(list, p)
	})
	return list
}

// NextToken is the name of the task of language models. Its classes are those of the task "classes", with a vocabulary
// that may be large. So its figures need no table of all pairs of classes, and no list of classes.
const NextToken = "next-token"

func newNextToken(s OutputSpec) (Task, bool, error) {
	if s.Axis != -1 { // one answer for a text, or pixels
		return nil, false, nil
	}
	t, ok, err := newClasses(s)
	if err == nil {
		t.About().Name = NextToken
	}
	return t, ok, err
}
