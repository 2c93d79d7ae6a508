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

// mean returns a mean over all known labels of a loss.
func (s *labelSums) mean(k int) float64 {
	n, sums := s.losses()
	return sums[k] / n
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

var pixelLabelMeasures = slices.Concat(
	resampled(Metric{Key: "accuracy", Header: "accuracy", Digits: 1, Percent: true, Note: ofPositions}, func(s positionSums) float64 {
		return 1 - s.(*labelSums).mean(1)
	}),
	resampled(Metric{Key: "nll", Header: "NLL", Digits: 4, Unit: "nats"}, func(s positionSums) float64 {
		return s.(*labelSums).mean(0)
	}),
	[]measure[*result]{
		{Metric{
			Key:    "ece",
			Header: "ECE",
			Digits: 4,
			Note:   "ECE: of the probability of a label, in 20 bins of equal width, mean over labels",
		},
			func(r *result) float64 {
				return r.all.(*labelSums).over(func(s *calibrate.ClassSums) float64 { return s.ClassECE()[1] })
			}},
		{Metric{Key: "brier", Header: "Brier", Digits: 4}, func(r *result) float64 { return r.all.(*labelSums).mean(2) / 2 }},
	},
	resampled(Metric{
		Key:     "mean_iou",
		Header:  "mean IoU",
		Digits:  1,
		Percent: true,
		Note:    "mean IoU: of positions with the label, at probability 0.5; mean over the labels that occur",
	},
		func(s positionSums) float64 {
			return s.(*labelSums).over(func(s *calibrate.ClassSums) float64 { return s.IoU()[1] })
		}),
)

func (s *labelSums) measures() []measure[*result] { return pixelLabelMeasures }

func (s *labelSums) parts(int) (list []Part, _ []calibrate.ReliabilityBin) {
	for k, each := range s.each {
		one, _ := (&classSums{each}).parts(0)
		list = append(list, Part{Name: fmt.Sprint(k), Scores: one[1].Scores})
	}
	return list, nil
}
