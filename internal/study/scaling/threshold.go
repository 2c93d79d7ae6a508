package scaling

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
)

// None is the method that does not change predictions and only chooses a threshold.
const None calibrate.Scaler = "none"

// threshold is the chosen threshold, in the form of its JSON.
type threshold struct {
	Value     float64 `json:"value"`
	Criterion string  `json:"criterion,omitempty"` // empty if the user gave the value
}

// binary holds the scores of two classes; class 1 is the positive one.
type binary struct {
	AUROC            *float64 `json:"auroc"`
	AUROCLow         *float64 `json:"auroc_low"`
	AUROCHigh        *float64 `json:"auroc_high"`
	AveragePrecision *float64 `json:"average_precision"`
	ECEOfClass1      *float64 `json:"ece_of_class_1"`
	// The following use a threshold: 0.5, or the chosen one.
	Sensitivity *float64 `json:"sensitivity"`
	Specificity *float64 `json:"specificity"`
	Precision   *float64 `json:"precision"`
	F1          *float64 `json:"f1"`
}

// ofClass1 returns the probabilities of class 1 of some rows, separated by their labels.
func ofClass1(p calibrate.Predictions, rows []int) (in, out []float64) {
	for _, i := range rows {
		if v := p.Row(i)[1]; p.Labels[i] == 1 {
			out = append(out, v)
		} else {
			in = append(in, v)
		}
	}
	return in, out
}

func all(p calibrate.Predictions) []int {
	rows := make([]int, p.Len())
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// judge scores decisions between two classes, or returns nil for other numbers of classes. It orders rows by
// log-odds, because different probabilities may both round to 1.
func judge(p calibrate.Predictions, d calibrate.Decisions) *binary {
	if p.Classes != 2 {
		return nil
	}
	odds := calibrate.Predictions{Classes: 2, Labels: p.Labels}
	var top []calibrate.TopLabel
	for i, label := range p.Labels {
		row := p.Row(i)
		top = append(top, calibrate.TopLabel{Confidence: row[1], Correct: label == 1})
		odds.Probs = append(odds.Probs, 0, math.Log(row[1])-math.Log(row[0]))
	}
	b := &binary{ECEOfClass1: study.Finite(calibrate.TopLabelECE(top, calibrate.ECEOptions{})), Sensitivity: study.Finite(d.Sensitivity()), Specificity: study.Finite(d.Specificity()),
		Precision: study.Finite(d.Precision()), F1: study.Finite(d.F1())}
	if in, out := ofClass1(odds, all(p)); len(in) > 0 && len(out) > 0 {
		auroc := calibrate.AUROCInterval(in, out)
		b.AUROC, b.AUROCLow, b.AUROCHigh = study.Finite(auroc.Mean), study.Finite(auroc.Low), study.Finite(auroc.High)
		b.AveragePrecision = study.Finite(calibrate.AUPR(in, out))
	}
	return b
}

// choose finds the threshold on the fitting rows, after calibration.
func (k *Result) choose(s *Scaling, p calibrate.Predictions) error {
	if s.Threshold == 0 && s.By == (calibrate.Criterion{}) {
		return nil
	}
	if p.Classes != 2 {
		return fmt.Errorf("a threshold is on the probability of class 1 of two, and there are %d classes", p.Classes)
	}
	if s.Threshold > 0 {
		k.Threshold = &threshold{Value: s.Threshold}
		return nil
	}
	chosen, err := s.By.Choose(ofClass1(p, all(p)))
	if err != nil {
		return err
	}
	k.Threshold = &threshold{chosen.Threshold, s.By.String()}
	return nil
}

// decide counts the decisions by the chosen threshold, or by the default.
func (k *Result) decide(p calibrate.Predictions) calibrate.Decisions {
	if p.Classes != 2 {
		return calibrate.Decisions{}
	}
	at := calibrate.DefaultThreshold
	if k.Threshold != nil {
		at = k.Threshold.Value
	}
	in, out := ofClass1(p, all(p))
	return calibrate.Decide(in, out, at)
}

// crossDecide counts the decisions on each fold of the fitting rows by the threshold that the other folds choose.
func (k *Result) crossDecide(s *Scaling, p calibrate.Predictions) (total calibrate.Decisions) {
	if k.Threshold == nil || k.Threshold.Criterion == "" {
		return k.decide(p)
	}
	folds := calibrate.Folds(p.Len(), s.Folds, s.Seed)
	for f, rows := range folds {
		others := slices.Concat(slices.Concat(folds[:f]...), slices.Concat(folds[f+1:]...))
		chosen, err := s.By.Choose(ofClass1(p, others))
		if err != nil {
			k.warn("no cross-fitted threshold: without one of %d folds: %v", s.Folds, err)
			return calibrate.Decisions{}
		}
		in, out := ofClass1(p, rows)
		total = total.Add(calibrate.Decide(in, out, chosen.Threshold))
	}
	return total
}

// describe names the threshold.
func (t *threshold) describe() string {
	if t.Criterion == "" {
		return "threshold " + report.Fixed(t.Value, 4)
	}
	return fmt.Sprintf("threshold %s by %s", report.Fixed(t.Value, 4), t.Criterion)
}
