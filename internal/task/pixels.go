package task

import (
	wire "encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/regression"
)

// classSums implements [positionSums] for classes that exclude each other.
type classSums struct{ *calibrate.ClassSums }

func (s *classSums) add(p position) error {
	if err := calibrate.CheckRow(p.outcome, p.label.Classes[0]); err != nil {
		return err
	}
	s.Add(p.outcome, p.label.Classes[0], p.border)
	return nil
}

func (s *classSums) reset()                 { s.Reset() }
func (s *classSums) merge(o positionSums)   { s.Merge(o.(*classSums).ClassSums) }
func (s *classSums) brief() positionSums    { return &classSums{s.Brief()} }
func (s *classSums) append(b []byte) []byte { return s.Append(b) }

func (s *classSums) parse(b []byte) error {
	read, err := calibrate.ParseClassSums(b)
	if err == nil && read.Classes != s.Classes {
		err = fmt.Errorf("%d classes, want %d", read.Classes, s.Classes)
	}
	if err == nil {
		s.ClassSums = read
	}
	return err
}

func (s *classSums) losses() (n float64, sums [3]float64) {
	n = float64(s.Positions)
	return n, [3]float64{s.NLL, n - float64(s.Right()), s.Brier}
}

func (s *classSums) found() *result {
	return &result{Metrics: calibrate.Metrics{Accuracy: s.Accuracy(), NLL: s.MeanNLL(), Brier: s.MeanBrier()}, sums: s}
}

func (s *classSums) measures() []measure      { return pixelMeasures }
func (s *classSums) confidences() confidences { return s }

func (s *classSums) parts() (list []Part) {
	iou, dice, shares, ece := s.IoU(), s.Dice(), s.Shares(), s.ClassECE()
	for c := range s.Classes {
		list = append(list, Part{Name: fmt.Sprint(c), Scores: []Score{
			{Metric{Key: "iou", Header: "IoU", Digits: 1, Percent: true, Optional: true}, iou[c]},
			{Metric{Key: "dice", Header: "Dice", Digits: 1, Percent: true, Optional: true}, dice[c]},
			{Metric{Key: "share", Header: "share of labels", Digits: 2, Percent: true}, shares[c]},
			{Metric{Key: "ece", Header: "calibration error", Digits: 4}, ece[c]},
		}})
	}
	return list
}

// numberSums implements [positionSums] for a regression. Errors of several targets add up, in their own units.
type numberSums struct {
	t Targeted
	calibrate.NumberSums
}

func (s *numberSums) add(p position) error {
	densities := s.t.LogLikelihoods(p.outcome, p.label)
	if densities == nil {
		s.NLL = math.NaN()
	}
	for _, v := range densities {
		s.NLL -= v
	}
	means, _ := s.t.Shown(p.outcome)
	for k, y := range p.label.Values {
		off := y - means[k]
		s.Squared, s.Absolute = s.Squared+float64(off*off), s.Absolute+math.Abs(off)
	}
	s.Positions++
	return nil
}

func (s *numberSums) reset()               { s.NumberSums = calibrate.NumberSums{} }
func (s *numberSums) merge(o positionSums) { s.Merge(&o.(*numberSums).NumberSums) }

func (s *numberSums) brief() positionSums {
	own := *s
	return &own
}

func (s *numberSums) append(b []byte) []byte {
	b = wire.AppendUvarint(b, uint64(s.Positions))
	for _, v := range []float64{s.Squared, s.Absolute, s.NLL} {
		b = wire.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func (s *numberSums) parse(b []byte) error {
	v, n := wire.Uvarint(b)
	if n <= 0 || len(b) != n+24 {
		return errSums
	}
	s.Positions = int64(v)
	for i, to := range []*float64{&s.Squared, &s.Absolute, &s.NLL} {
		*to = math.Float64frombits(wire.LittleEndian.Uint64(b[n+8*i:]))
	}
	return nil
}

func (s *numberSums) losses() (n float64, sums [3]float64) {
	return float64(s.Positions), [3]float64{s.NLL, s.Squared, s.Absolute}
}

func (s *numberSums) found() *result {
	r := &result{numbers: regression.Metrics{RMSE: s.RMSE(), MAE: s.MAE()}}
	r.NLL = s.NLL / float64(s.Positions)
	return r
}

func (s *numberSums) measures() []measure      { return pixelNumberMeasures }
func (s *numberSums) confidences() confidences { return nil }
func (s *numberSums) parts() []Part            { return nil }

// labelSums implements [positionSums] for independent labels. Each label is a task of two classes.
type labelSums struct {
	t    Paired
	each []*calibrate.ClassSums
}

// pairsOf returns the probabilities that each label of an outcome is absent and that it is there.
func pairsOf(t Paired, outcome []float64) [][]float64 {
	return slices.Collect(slices.Chunk(t.Pairs(outcome), 2))
}

func (s *labelSums) add(p position) error {
	for k, pair := range pairsOf(s.t, p.outcome) {
		if v := p.label.Values[k]; v >= 0 {
			s.each[k].Add(pair, int(v), p.border)
		}
	}
	return nil
}

func (s *labelSums) reset() {
	for _, each := range s.each {
		each.Reset()
	}
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
		one, err := calibrate.ParseClassSums(part)
		if err != nil || one.Classes != 2 {
			return errors.Join(err, errSums)
		}
		s.each[k], b = one, rest
	}
	return nil
}

// losses counts every known label of a position.
func (s *labelSums) losses() (n float64, sums [3]float64) {
	for _, each := range s.each {
		one, of := (&classSums{each}).losses()
		n += one
		for k, v := range of {
			sums[k] += v
		}
	}
	return n, sums
}

func (s *labelSums) found() *result {
	n, sums := s.losses()
	return &result{Metrics: calibrate.Metrics{Accuracy: 1 - sums[1]/n, NLL: sums[0] / n, Brier: sums[2] / n / 2}, sums: s}
}

// over returns the mean of a figure over the labels that have one.
func (s *labelSums) over(figure func(*calibrate.ClassSums) float64) float64 {
	total, n := 0.0, 0.0
	for _, each := range s.each {
		if v := figure(each); v == v {
			total, n = total+v, n+1
		}
	}
	return total / n
}

// MeanIoU is that of positions with a label.
func (s *labelSums) MeanIoU() float64 {
	return s.over(func(s *calibrate.ClassSums) float64 { return s.IoU()[1] })
}

func (s *labelSums) measures() []measure      { return pixelLabelMeasures }
func (s *labelSums) confidences() confidences { return nil }

func (s *labelSums) parts() (list []Part) {
	for k, each := range s.each {
		one := (&classSums{each}).parts()
		list = append(list, Part{Name: fmt.Sprint(k), Scores: one[1].Scores})
	}
	return list
}
