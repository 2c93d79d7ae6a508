package task

import (
	"errors"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
)

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
