package task

import (
	"fmt"
	"slices"

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

// ofClasses computes a figure of classes.
func ofClasses(f func(*calibrate.ClassSums) float64) func(positionSums) float64 {
	return func(s positionSums) float64 { return f(s.(*classSums).ClassSums) }
}

var pixelMeasures = func() []measure[*result] {
	further := func(key, header, note string, percent bool, of func(*calibrate.ClassSums, int) float64) measure[*result] {
		m := Metric{Key: key, Header: header, Digits: 4, Further: true, Optional: true, Note: note}
		if percent {
			m.Digits, m.Percent = 1, true
		}
		return measure[*result]{m, func(r *result) float64 { return of(r.all.(*classSums).ClassSums, r.bins) }}
	}
	return slices.Concat(
		resampled(Metric{
			Key:     "accuracy",
			Header:  "accuracy",
			Digits:  1,
			Percent: true,
			Note:    ofPositions,
		}, ofClasses((*calibrate.ClassSums).Accuracy)),
		resampled(Metric{Key: "nll", Header: "NLL", Digits: 4, Unit: "nats"}, ofClasses((*calibrate.ClassSums).MeanNLL)),
		[]measure[*result]{{Metric{Key: "ece", Header: "ECE", Digits: 4}, func(r *result) float64 {
			return r.all.(*classSums).ECE(r.bins)
		}}},
		[]measure[*result]{{Metric{Key: "brier", Header: "Brier", Digits: 4}, func(r *result) float64 {
			return r.all.(*classSums).MeanBrier()
		}}},
		resampled(Metric{Key: "mean_iou", Header: "mean IoU", Digits: 1, Percent: true,
			Note: "mean IoU: one confusion matrix of all positions; mean over the classes that occur in labels or predictions"},
			ofClasses((*calibrate.ClassSums).MeanIoU)),
		[]measure[*result]{
			further("smooth_ece", "smooth ECE", smoothNote, false, func(s *calibrate.ClassSums, _ int) float64 { return s.SmoothECE() }),
			further("mean_dice", "mean Dice", "", true, func(s *calibrate.ClassSums, _ int) float64 { return s.MeanDice() }),
			further("ece_classwise", "classwise ECE", "classwise ECE: of the probability of each class, in 20 bins of equal width", false,
				func(s *calibrate.ClassSums, _ int) float64 { return s.ClasswiseECE() }),
			further("ece_border", "ECE at borders",
				"ECE at borders: of pixels next to a pixel of another class; inside: of the others", false,
				func(s *calibrate.ClassSums, bins int) float64 { return s.BorderECE(bins) }),
			further("ece_inside", "ECE inside", "", false, func(s *calibrate.ClassSums, bins int) float64 { return s.InsideECE(bins) }),
		})
}()

func (s *classSums) measures() []measure[*result] { return pixelMeasures }

func (s *classSums) parts(bins int) (list []Part, reliability []calibrate.ReliabilityBin) {
	iou, dice, shares, ece := s.IoU(), s.Dice(), s.Shares(), s.ClassECE()
	for c := range s.Classes {
		list = append(list, Part{Name: fmt.Sprint(c), Scores: []Score{
			{Metric: Metric{Key: "iou", Header: "IoU", Digits: 1, Percent: true, Optional: true}, Value: iou[c]},
			{Metric: Metric{Key: "dice", Header: "Dice", Digits: 1, Percent: true, Optional: true}, Value: dice[c]},
			{Metric: Metric{Key: "share", Header: "share of labels", Digits: 2, Percent: true}, Value: shares[c]},
			{Metric: Metric{Key: "ece", Header: "calibration error", Digits: 4}, Value: ece[c]},
		}})
	}
	return list, s.Reliability(bins)
}

const smoothNote = "smooth ECE: without bins (Błasiok & Nakkiran 2023)"
