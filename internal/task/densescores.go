package task

import (
	"cmp"
	encoding "encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/calibrate/positions"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// positionSums is what the labelled positions of examples add to all metrics of a task.
type positionSums interface {
	add(position) error
	merge(positionSums)
	// brief returns what losses and intervals need of an example.
	brief() positionSums
	append([]byte) []byte
	parse([]byte) error
	// losses returns the number of positions, and the sum of each loss over them.
	losses() (n float64, sums []Loss)
	measures() []measure[*denseResult]
	// parts returns the metrics of each class or label, and the bins of confidences.
	parts(bins int) ([]Part, []calibrate.ReliabilityBin)
}

// position is a labelled position.
type position struct {
	outcome []float64 // averaged
	label   truth.Truth
	border  bool      // a neighbour has another class
	values  []float64 // of its row, or nil if they are not known
}

// newSums returns the sums of no positions.
func (t dense) newSums() positionSums {
	if t.Next {
		return newTokenSums()
	}
	switch t.each.(type) {
	case regression:
		return &numberSums{t: t}
	case labels:
		s := &labelSums{}
		for range t.about.Classes {
			s.each = append(s.each, positions.New(2))
		}
		return s
	}
	return &classSums{positions.New(t.about.Classes)}
}

var errSums = errors.New("damaged sums")

// appendPart appends a part behind its length.
func appendPart(b, part []byte) []byte {
	return append(encoding.AppendUvarint(b, uint64(len(part))), part...)
}

// cutPart returns the first part of b and the bytes behind it.
func cutPart(b []byte) (part, rest []byte, err error) {
	size, n := encoding.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, errSums
	}
	return b[n:][:size], b[n:][size:], nil
}

// denseResult is what was found about the labelled positions of all examples.
type denseResult struct {
	all       positionSums
	intervals map[string]chance.Interval // of figures, by their key
	bins      int
}

// resampled is a figure with its interval: whole examples are resampled, since neighbouring positions depend on each other.
func resampled(m Metric, of func(positionSums) float64) []measure[*denseResult] {
	low, high := m, m
	low.Key, high.Key, low.Header, high.Header = m.Key+"_low", m.Key+"_high", m.Header+" from", "to"
	low.Further, high.Further, low.Brief, high.Brief, low.Note, high.Note = true, true, true, true, "", ""
	return []measure[*denseResult]{
		{m, func(r *denseResult) float64 { return of(r.all) }},
		{low, func(r *denseResult) float64 { return r.intervals[m.Key].Low }},
		{high, func(r *denseResult) float64 { return r.intervals[m.Key].High }},
	}
}

// denseEvaluator implements [Evaluator] for tasks with several positions. It keeps a few numbers of each example, about
// C² for C classes, whatever the number of positions.
type denseEvaluator struct {
	t     dense
	opts  EvaluateOptions
	all   positionSums
	units []positionSums // of each example, or of each group
	group map[string]int // the unit of a group
	next  string         // the group of the next example, or ""
}

func (e *denseEvaluator) Unit(name string) { e.next = name }

func (t dense) NewEvaluator(opts EvaluateOptions) Evaluator {
	return &denseEvaluator{t: t, opts: opts, all: t.newSums()}
}

func (e *denseEvaluator) Add(outcome []float64, target truth.Truth) error {
	one := e.t.newSums()
	err := e.t.eachKnown(outcome, target, func(p int, row []float64, label truth.Truth) error {
		return one.add(position{outcome: row, label: label, border: e.t.border(target, p)})
	})
	if err == nil {
		e.add(one)
	}
	return err
}

func (e *denseEvaluator) AddRow(_ []float64, _ int, sums []byte) bool {
	one := e.t.newSums()
	if len(sums) == 0 || one.parse(sums) != nil {
		return false
	}
	e.add(one)
	return true
}

func (e *denseEvaluator) add(one positionSums) {
	e.all.merge(one)
	if tokens, ok := one.(*tokenSums); ok && e.next == "" && tokens.units != nil {
		tokens.split(e.addUnit)
	} else if n, _ := one.losses(); n > 0 {
		e.addUnit(e.next, one)
	}
}

// addUnit adds positions of a unit of chance. A unit without a name has no others.
func (e *denseEvaluator) addUnit(name string, one positionSums) {
	if k, ok := e.group[name]; ok {
		e.units[k].merge(one.brief())
		return
	}
	if name != "" {
		if e.group == nil {
			e.group = map[string]int{}
		}
		e.group[name] = len(e.units)
		own := e.t.newSums() // that no other unit shares
		own.merge(one)
		one = own
	}
	e.units = append(e.units, one.brief())
}

func (e *denseEvaluator) Merge(other Evaluator) {
	o := other.(*denseEvaluator)
	e.all.merge(o.all)
	names := make([]string, len(o.units))
	for name, k := range o.group {
		names[k] = name
	}
	for k, one := range o.units {
		e.addUnit(names[k], one)
	}
}

func (e *denseEvaluator) Metrics() []Metric { return metrics(e.all.measures()) }

// Losses returns a number for each example whose mean is the mean over all positions: see [positions.Linearised].
func (e *denseEvaluator) Losses() []Loss {
	if e.opts.NoLosses {
		return nil
	}
	_, list := e.all.losses()
	for k := range list {
		var sums, n []float64
		for _, u := range e.units {
			count, of := u.losses()
			sums, n = append(sums, of[k].Values[0]), append(n, count)
		}
		list[k].Values = positions.Linearised(sums, n)
	}
	return list
}

func (e *denseEvaluator) Evaluation() *Evaluation {
	const paper = 20 // bins, as in package calibrate
	r := &denseResult{e.all, map[string]chance.Interval{}, cmp.Or(e.opts.ECE.Bins, paper)}
	measures := e.all.measures()
	for i, m := range measures {
		switch {
		case i+1 == len(measures) || measures[i+1].Key != m.Key+"_low":
		case len(e.units) < 2 || e.opts.NoIntervals:
			r.intervals[m.Key] = chance.Interval{Low: math.NaN(), High: math.NaN()}
		default:
			r.intervals[m.Key] = chance.FigureBootstrap(len(e.units), func(rows []int) float64 {
				sum := e.t.newSums()
				for _, i := range rows {
					sum.merge(e.units[i])
				}
				return m.of(&denseResult{all: sum, bins: r.bins})
			}, chance.BootstrapOptions{Seed: e.opts.Seed, Resamples: resamples})
		}
	}
	out := &Evaluation{Losses: e.Losses(), Scores: measured(measures, r, e.opts.MainOnly)}
	out.Parts, out.Reliability = e.all.parts(r.bins)
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

const ofPositions = "figures count the labelled positions (pixels, tokens) of all examples together; intervals are 95 % and resample whole examples"

// classSums implements [positionSums] for classes that exclude each other.
type classSums struct{ *positions.Sums }

func (s *classSums) add(p position) error {
	if err := calibrate.CheckRow(p.outcome, p.label.Classes[0]); err != nil {
		return err
	}
	s.Add(p.outcome, p.label.Classes[0], p.border)
	return nil
}

func (s *classSums) merge(o positionSums)   { s.Merge(o.(*classSums).Sums) }
func (s *classSums) brief() positionSums    { return &classSums{s.Brief()} }
func (s *classSums) append(b []byte) []byte { return s.Append(b) }

func (s *classSums) parse(b []byte) error {
	read, err := positions.Parse(b)
	if err == nil && read.Classes != s.Classes {
		err = fmt.Errorf("%d classes, want %d", read.Classes, s.Classes)
	}
	if err == nil {
		s.Sums = read
	}
	return err
}

func (s *classSums) losses() (float64, []Loss) {
	n := float64(s.Positions)
	return n, []Loss{{"nll", "NLL", []float64{s.NLL}}, {"error", "error", []float64{n - float64(s.Right())}}, {"brier", "Brier score", []float64{s.Brier}}}
}

// ofClasses computes a figure of classes.
func ofClasses(f func(*positions.Sums) float64) func(positionSums) float64 {
	return func(s positionSums) float64 { return f(s.(*classSums).Sums) }
}

var denseClassMeasures = func() []measure[*denseResult] {
	further := func(key, header, note string, percent bool, of func(*positions.Sums, int) float64) measure[*denseResult] {
		m := Metric{Key: key, Header: header, Digits: 4, Further: true, Optional: true, Note: note}
		if percent {
			m.Digits, m.Percent = 1, true
		}
		return measure[*denseResult]{m, func(r *denseResult) float64 { return of(r.all.(*classSums).Sums, r.bins) }}
	}
	return slices.Concat(
		resampled(Metric{Key: "accuracy", Header: "accuracy", Digits: 1, Percent: true, Note: ofPositions}, ofClasses((*positions.Sums).Accuracy)),
		resampled(Metric{Key: "nll", Header: "NLL", Digits: 4, Unit: "nats"}, ofClasses((*positions.Sums).MeanNLL)),
		[]measure[*denseResult]{{Metric{Key: "ece", Header: "ECE", Digits: 4}, func(r *denseResult) float64 { return r.all.(*classSums).ECE(r.bins) }}},
		[]measure[*denseResult]{{Metric{Key: "brier", Header: "Brier", Digits: 4}, func(r *denseResult) float64 { return r.all.(*classSums).MeanBrier() }}},
		resampled(Metric{Key: "mean_iou", Header: "mean IoU", Digits: 1, Percent: true,
			Note: "mean IoU: one confusion matrix of all positions; mean over the classes that occur in labels or predictions"}, ofClasses((*positions.Sums).MeanIoU)),
		[]measure[*denseResult]{
			further("smooth_ece", "smooth ECE", smoothECE.Note, false, func(s *positions.Sums, _ int) float64 { return s.SmoothECE() }),
			further("mean_dice", "mean Dice", "", true, func(s *positions.Sums, _ int) float64 { return s.MeanDice() }),
			further("ece_classwise", "classwise ECE", "classwise ECE: of the probability of each class, in 20 bins of equal width", false,
				func(s *positions.Sums, _ int) float64 { return s.ClasswiseECE() }),
			further("ece_border", "ECE at borders", "ECE at borders: of pixels next to a pixel of another class; inside: of the others", false,
				func(s *positions.Sums, bins int) float64 { return s.BorderECE(bins) }),
			further("ece_inside", "ECE inside", "", false, func(s *positions.Sums, bins int) float64 { return s.InsideECE(bins) }),
		})
}()

func (s *classSums) measures() []measure[*denseResult] { return denseClassMeasures }

func (s *classSums) parts(bins int) (list []Part, reliability []calibrate.ReliabilityBin) {
	for c := range s.Classes {
		list = append(list, Part{fmt.Sprint(c), []Score{
			{Metric{Key: "iou", Header: "IoU", Digits: 1, Percent: true, Optional: true}, s.IoU(c)},
			{Metric{Key: "dice", Header: "Dice", Digits: 1, Percent: true, Optional: true}, s.Dice(c)},
			{Metric{Key: "share", Header: "share of labels", Digits: 2, Percent: true}, s.Share(c)},
			{Metric{Key: "ece", Header: "calibration error", Digits: 4}, s.ClassECE(c)},
		}})
	}
	return list, s.Reliability(bins)
}

// labelSums implements [positionSums] for independent labels. Each label is a task of two classes.
type labelSums struct{ each []*positions.Sums }

func (s *labelSums) add(p position) error {
	n := len(s.each)
	for k, v := range p.label.Values {
		if v >= 0 {
			s.each[k].Add([]float64{p.outcome[n+k], p.outcome[k]}, int(v), p.border)
		}
	}
	return nil
}

func (s *labelSums) merge(o positionSums) {
	for k, each := range o.(*labelSums).each {
		s.each[k].Merge(each)
	}
}

func (s *labelSums) brief() positionSums {
	out := &labelSums{}
	for _, each := range s.each {
		out.each = append(out.each, each.Brief())
	}
	return out
}

func (s *labelSums) append(b []byte) []byte {
	for _, each := range s.each {
		b = appendPart(b, each.Append(nil))
	}
	return b
}

func (s *labelSums) parse(b []byte) error {
	for k := range s.each {
		part, rest, err := cutPart(b)
		if err != nil {
			return err
		}
		one, err := positions.Parse(part)
		if err != nil || one.Classes != 2 {
			return errors.Join(err, errSums)
		}
		s.each[k], b = one, rest
	}
	return nil
}

// losses counts every known label of a position.
func (s *labelSums) losses() (n float64, sums []Loss) {
	sums = []Loss{{"nll", "NLL", []float64{0}}, {"error", "error", []float64{0}}, {"brier", "Brier score", []float64{0}}}
	for _, each := range s.each {
		one, of := (&classSums{each}).losses()
		n += one
		for k := range sums {
			sums[k].Values[0] += of[k].Values[0]
		}
	}
	return n, sums
}

// mean returns a mean over all known labels of a loss.
func (s *labelSums) mean(k int) float64 {
	n, sums := s.losses()
	return sums[k].Values[0] / n
}

// over returns the mean of a figure over the labels that have one.
func (s *labelSums) over(figure func(*positions.Sums) float64) float64 {
	total, n := 0.0, 0.0
	for _, each := range s.each {
		if v := figure(each); v == v {
			total, n = total+v, n+1
		}
	}
	return total / n
}

var denseLabelMeasures = slices.Concat(
	resampled(Metric{Key: "accuracy", Header: "accuracy", Digits: 1, Percent: true, Note: ofPositions}, func(s positionSums) float64 { return 1 - s.(*labelSums).mean(1) }),
	resampled(Metric{Key: "nll", Header: "NLL", Digits: 4, Unit: "nats"}, func(s positionSums) float64 { return s.(*labelSums).mean(0) }),
	[]measure[*denseResult]{
		{Metric{Key: "ece", Header: "ECE", Digits: 4, Note: "ECE: of the probability of a label, in 20 bins of equal width, mean over labels"},
			func(r *denseResult) float64 {
				return r.all.(*labelSums).over(func(s *positions.Sums) float64 { return s.ClassECE(1) })
			}},
		{Metric{Key: "brier", Header: "Brier", Digits: 4}, func(r *denseResult) float64 { return r.all.(*labelSums).mean(2) / 2 }},
	},
	resampled(Metric{Key: "mean_iou", Header: "mean IoU", Digits: 1, Percent: true, Note: "mean IoU: of positions with the label, at probability 0.5; mean over the labels that occur"},
		func(s positionSums) float64 {
			return s.(*labelSums).over(func(s *positions.Sums) float64 { return s.IoU(1) })
		}),
)

func (s *labelSums) measures() []measure[*denseResult] { return denseLabelMeasures }

func (s *labelSums) parts(int) (list []Part, _ []calibrate.ReliabilityBin) {
	for k, each := range s.each {
		one, _ := (&classSums{each}).parts(0)
		list = append(list, Part{fmt.Sprint(k), one[1].Scores})
	}
	return list, nil
}

// numberSums implements [positionSums] for a regression. Errors of several targets add up, in their own units.
type numberSums struct {
	t dense
	positions.Numbers
}

func (s *numberSums) add(p position) error {
	each := s.t.each.(regression)
	if each.noiseless(p.outcome) {
		s.NLL = math.NaN()
	} else {
		for _, score := range each.scores(p.outcome, p.label) {
			s.NLL -= score.Gaussian.LogLikelihood
		}
	}
	means, _ := each.Shown(p.outcome)
	for k, y := range p.label.Values {
		off := y - means[k]
		s.Squared, s.Absolute = s.Squared+float64(off*off), s.Absolute+math.Abs(off)
	}
	s.Positions++
	return nil
}

func (s *numberSums) merge(o positionSums) { s.Merge(&o.(*numberSums).Numbers) }
func (s *numberSums) brief() positionSums  { return s }

func (s *numberSums) append(b []byte) []byte {
	b = encoding.AppendUvarint(b, uint64(s.Positions))
	for _, v := range []float64{s.Squared, s.Absolute, s.NLL} {
		b = encoding.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func (s *numberSums) parse(b []byte) error {
	v, n := encoding.Uvarint(b)
	if n <= 0 || len(b) != n+24 {
		return errSums
	}
	s.Positions = int64(v)
	for i, to := range []*float64{&s.Squared, &s.Absolute, &s.NLL} {
		*to = math.Float64frombits(encoding.LittleEndian.Uint64(b[n+8*i:]))
	}
	return nil
}

func (s *numberSums) losses() (float64, []Loss) {
	return float64(s.Positions), []Loss{{"nll", "NLL", []float64{s.NLL}}, {"squared_error", "squared error", []float64{s.Squared}}, {"absolute_error", "absolute error", []float64{s.Absolute}}}
}

var denseNumberMeasures = slices.Concat(
	resampled(Metric{Key: "nll", Header: "NLL", Digits: 4, Unit: "nats", Note: ofPositions}, func(s positionSums) float64 { n := s.(*numberSums); return n.NLL / float64(n.Positions) }),
	resampled(Metric{Key: "rmse", Header: "RMSE", Digits: 4}, func(s positionSums) float64 { return s.(*numberSums).RMSE() }),
	resampled(Metric{Key: "mae", Header: "MAE", Digits: 4}, func(s positionSums) float64 { return s.(*numberSums).MAE() }),
)

func (s *numberSums) measures() []measure[*denseResult] { return denseNumberMeasures }

func (s *numberSums) parts(int) ([]Part, []calibrate.ReliabilityBin) { return nil, nil }
