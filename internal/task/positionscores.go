package task

import (
	"cmp"
	wire "encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/target"
)

// positionSums is what the labelled positions of examples add to all metrics of a task.
type positionSums interface {
	add(position) error
	reset()
	merge(positionSums)
	// brief returns what losses and intervals need of an example.
	brief() positionSums
	append([]byte) []byte
	parse([]byte) error
	// losses returns the number of positions, and the sum of each loss over them. The first loss is the NLL.
	losses() (n float64, sums [3]float64)
	measures() []measure
	// found returns the means over the positions.
	found() *result
	// confidences are those of the predicted classes, or nil.
	confidences() confidences
	// parts returns the metrics of each class, label or unit.
	parts() []Part
}

// position is a labelled position.
type position struct {
	outcome []float64 // averaged
	label   target.Target
	border  bool      // a neighbour has another class
	values  []float64 // of its row, or nil if they are not known
}

// newSums returns the sums of no positions.
func (t several) newSums() positionSums {
	if t.Next {
		return &tokenSums{columns: t.columns, all: &calibrate.TokenSums{}}
	}
	switch each := t.each.(type) {
	case Targeted:
		return &numberSums{t: each}
	case Paired:
		s := &labelSums{t: each}
		for range t.about.Classes {
			s.each = append(s.each, calibrate.NewClassSums(2))
		}
		return s
	}
	return &classSums{calibrate.NewClassSums(t.about.Classes)}
}

var errSums = errors.New("damaged sums")

// appendPart appends a part behind its length.
func appendPart(b, part []byte) []byte {
	return append(wire.AppendUvarint(b, uint64(len(part))), part...)
}

// cutPart returns the first part of b and the bytes behind it.
func cutPart(b []byte) (part, rest []byte, err error) {
	size, n := wire.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, errSums
	}
	return b[n:][:size], b[n:][size:], nil
}

// confidences count predictions by their confidence.
type confidences interface {
	ECE(bins int) float64
	SmoothECE() float64
	Reliability(bins int) []calibrate.ReliabilityBin
}

// positionReducer implements [Reducer] for tasks with several positions. It keeps a few numbers of each example, about
// C² for C classes, whatever the number of positions.
type positionReducer struct {
	t     several
	opts  EvaluateOptions
	all   positionSums
	one   positionSums   // of an example; its memory is reused
	units []positionSums // the sums of each example, or of each group
	group map[string]int // the unit of a group
}

func (t several) NewReducer(opts EvaluateOptions) Reducer {
	return &positionReducer{t: t, opts: opts, all: t.newSums(), one: t.newSums()}
}

func (e *positionReducer) Add(outcome []float64, known target.Target, unit string) error {
	e.one.reset()
	err := EachKnown(e.t, outcome, known, func(p int, row []float64, label target.Target) error {
		return e.one.add(position{outcome: row, label: label, border: e.t.border(known, p)})
	})
	if err == nil {
		e.add(e.one, unit)
	}
	return err
}

func (e *positionReducer) AddRow(_ []float64, _ int, sums []byte, unit string) bool {
	one := e.t.newSums()
	if len(sums) == 0 || one.parse(sums) != nil {
		return false
	}
	e.add(one, unit)
	return true
}

func (e *positionReducer) add(one positionSums, unit string) {
	e.all.merge(one)
	if tokens, ok := one.(*tokenSums); ok && unit == "" && tokens.units != nil {
		tokens.split(e.addUnit)
	} else if n, _ := one.losses(); n > 0 {
		e.addUnit(unit, one)
	}
}

// addUnit adds positions of a unit of chance. A unit without a name has no others.
func (e *positionReducer) addUnit(name string, one positionSums) {
	if k, ok := e.group[name]; ok {
		e.units[k].merge(one.brief())
		return
	}
	if name != "" {
		if e.group == nil {
			e.group = map[string]int{}
		}
		e.group[name] = len(e.units)
		own := e.t.newSums() // no other unit shares these sums
		own.merge(one)
		one = own
	}
	e.units = append(e.units, one.brief())
}

func (e *positionReducer) Merge(other Reducer) {
	o := other.(*positionReducer)
	e.all.merge(o.all)
	names := make([]string, len(o.units))
	for name, k := range o.group {
		names[k] = name
	}
	for k, one := range o.units {
		e.addUnit(names[k], one)
	}
}

func (e *positionReducer) Metrics() []Metric { return metrics(e.all.measures()) }

// Losses returns a number for each example whose mean is the mean over all positions: see [calibrate.Linearised].
func (e *positionReducer) Losses() []Loss {
	if e.opts.NoLosses {
		return nil
	}
	list := []Loss{{Key: "nll", Name: "NLL"}, {Key: "error", Name: "error"}, {Key: "brier", Name: "Brier score"}}
	if _, numbers := e.t.each.(Targeted); numbers {
		list = []Loss{{Key: "nll", Name: "NLL"}, {Key: "squared_error", Name: "squared error"},
			{Key: "absolute_error", Name: "absolute error"}}
	}
	for k := range list {
		var sums, n []float64
		for _, u := range e.units {
			count, of := u.losses()
			sums, n = append(sums, of[k]), append(n, count)
		}
		list[k].Values = calibrate.Linearised(sums, n)
	}
	return list
}

// intervals returns the intervals of the figures that have one, by their key. All figures have the same resamples.
func (e *positionReducer) intervals() map[string]chance.Interval {
	var figures []measure
	measures := e.all.measures()
	for i, m := range measures[1:] {
		if figure := measures[i]; m.Key == figure.Key+"_low" {
			figures = append(figures, figure)
		}
	}
	out := map[string]chance.Interval{}
	if len(e.units) < 2 || e.opts.NoIntervals {
		for _, m := range figures {
			out[m.Key] = chance.Interval{Low: math.NaN(), High: math.NaN()}
		}
		return out
	}
	sum := e.t.newSums()
	found := chance.FigureBootstrap(len(e.units), func(rows []int) (values []float64) {
		sum.reset()
		for _, i := range rows {
			sum.merge(e.units[i])
		}
		r := sum.found()
		for _, m := range figures {
			values = append(values, m.of(r))
		}
		return values
	}, chance.BootstrapOptions{Seed: e.opts.Seed, Resamples: resamples})
	for k, m := range figures {
		out[m.Key] = found[k]
	}
	return out
}

func (e *positionReducer) Evaluation() *Evaluation {
	const paper = 20 // bins, as in package calibrate
	r, out := e.all.found(), &Evaluation{Losses: e.Losses(), Parts: e.all.parts()}
	r.bins, r.intervals = cmp.Or(e.opts.ECE.Bins, paper), e.intervals()
	if c := e.all.confidences(); c != nil {
		r.ECE, r.diagram = c.ECE(r.bins), c.Reliability(r.bins)
		if !e.opts.MainOnly {
			r.SmoothECE = c.SmoothECE()
		}
	}
	out.Scores, out.Reliability = r.scores(e.all.measures(), e.opts.MainOnly), r.diagram
	if n := len(e.units); e.opts.NoLosses && e.group != nil && n < fewUnits {
		out.Warnings = append(out.Warnings, fmt.Errorf("there are only %d groups: intervals from so few are rough, and too narrow", n))
	}
	if v := out.Value("nll"); math.IsInf(v, 1) {
		out.Warnings = append(out.Warnings, errors.New("NLL is infinite: a label has probability 0, or less than a float64 holds"))
	}
	return out
}

// fewUnits is the number of groups below which a bootstrap is too narrow: with 10 it covers about 90 %.
const fewUnits = 10

// resamples is enough for ends of intervals that differ by 3 % of their width between seeds.
const resamples = 1000
