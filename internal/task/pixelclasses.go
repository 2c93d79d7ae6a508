package task

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate"
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
