package task

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	judge "github.com/swagwrap/swagwrap/calibrate/labels"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// binary is the task with one score for class 1 of two: a logit, or a probability. An outcome holds the probabilities
// of both classes, so the rows are those of two classes. The prediction depends on a threshold on the probability of
// class 1.
type binary struct{ classes }

func newBinary(s OutputSpec) (Task, bool, error) {
	return binary{classes{s, 2}}, s.Count == 1 && !strings.HasSuffix(s.Activation, "softmax"), nil
}

func (t binary) Name() string { return "binary" }

func (t binary) Describe() string {
	return fmt.Sprintf("output %q: the %s of class 1 of 2", t.Output, t.one())
}

func (t binary) Outcome(dst []float64, scores []float32) (float64, error) {
	z, err := t.single(scores)
	if err != nil {
		return 0, err
	}
	switch t.form() {
	case Probabilities:
		dst[0], dst[1] = 1-z, z
	case LogProbabilities: // 1 − e^z keeps its digits if e^z is near 1
		dst[0], dst[1] = -math.Expm1(z), math.Exp(z)
	default: // the softmax of (0, z)
		t.Link(dst, []float64{z})
	}
	return calibrate.Entropy(dst), nil
}

// single checks and returns a score that stands alone. It fails if the score does not have the form of s.
func (s OutputSpec) single(score []float32) (float64, error) {
	switch z := float64(score[0]); {
	case s.form() == LogProbabilities && z <= 0:
		return z, nil
	case z-z != 0:
		return 0, fmt.Errorf("the network's output is not finite: %v", score[0])
	case s.form() == Probabilities && z >= -Rounding && z <= 1+Rounding:
		return min(max(z, 0), 1), nil
	case s.form() == Probabilities:
		return 0, fmt.Errorf("the network's scores are taken for probabilities, but one is %v", score[0])
	case s.form() == LogProbabilities:
		return 0, fmt.Errorf("the network's scores are taken for log-probabilities, but one is %v", score[0])
	default:
		return z, nil
	}
}

func (t binary) Link(dst, logits []float64) {
	calibrate.Softmax(dst, []float64{0, logits[0]}, 2, 1)
}

// AddCurvature adds the sum of p(1−p) over the examples.
func (t binary) AddCurvature(hessian, logits *mat.Dense) {
	n, _ := logits.Dims()
	p := make([]float64, 2)
	for i := range n {
		t.Link(p, logits.RawRowView(i))
		hessian.Set(0, 0, hessian.At(0, 0)+p[0]*p[1])
	}
}

// Say implements [Fusable]. It turns the score into scores of two classes.
func (t binary) Say(g Graph, scores string) Said {
	two := classes{count: 2}
	switch t.form() {
	case LogProbabilities:
		scores = g.Op("Exp", scores)
		fallthrough
	case Probabilities:
		two.Form, two.Activation = Probabilities, t.Activation
		scores = t.bounded(g, scores)
		return two.Say(g, g.Rowwise("Concat", g.Op("Sub", g.Constant([]float32{1}, 1, 1), scores), scores))
	}
	return two.Say(g, g.Rowwise("Concat", g.Op("Sub", scores, scores), scores)) // the logits 0 and z
}

// Decide implements [Decided].
func (t binary) Decide(outcomes []float64, labels truth.Truth, by calibrate.Criterion) (calibrate.OperatingPoint, error) {
	j := t.judged(outcomes, labels)
	return by.Choose(j.in, j.out)
}

// Columns lists the columns of two classes, and the probability of class 1.
func (t binary) Columns(want Want) []Column {
	return append(t.classes.Columns(want), Column{Name: "class_1_probability"}, Column{Name: "complement", Hidden: true})
}

// Values appends a row. The threshold decides the prediction. The confidence is the probability of the predicted class.
func (t binary) Values(dst []float64, want Want, a Average, label truth.Truth) []float64 {
	at := len(dst)
	dst = t.classes.Values(dst, want, a, label)
	p, row := a.Outcome, dst[at:]
	class := 0
	if p[1] >= orDefault(a.Threshold) {
		class = 1
	}
	row[prediction], row[confidence] = float64(class), p[class]
	for k := range t.top(want) {
		c := class ^ k // the prediction first, then the other class
		row[ranked+2*k], row[ranked+2*k+1] = float64(c), p[c]
	}
	return append(dst, p[1], p[0])
}

// orDefault returns the threshold, or the default for 0.
func orDefault(threshold float64) float64 {
	if threshold == 0 {
		return calibrate.DefaultThreshold
	}
	return threshold
}

// binaryRows collects the predictions of labelled examples.
type binaryRows struct {
	in, out         []float64            // probabilities of class 1, for examples of class 0 and of class 1
	inOdds, outOdds []float64            // their log-odds, which also order probabilities that round to 1
	both            []calibrate.TopLabel // all examples
}

func (r *binaryRows) add(p, q float64, label int) {
	r.both = append(r.both, calibrate.TopLabel{Confidence: p, Correct: label == 1})
	odds := judge.LogOdds(nil, []float64{p}, []float64{q})[0]
	if label == 1 {
		r.out, r.outOdds = append(r.out, p), append(r.outOdds, odds)
	} else {
		r.in, r.inOdds = append(r.in, p), append(r.inOdds, odds)
	}
}

func (t binary) judged(outcomes []float64, labels truth.Truth) *binaryRows {
	r := new(binaryRows)
	for i, label := range labels.Classes {
		r.add(outcomes[2*i+1], outcomes[2*i], label)
	}
	return r
}

// ece returns the calibration error of the probability of class 1. It sorts r.both.
func (r *binaryRows) ece(opts calibrate.ECEOptions) float64 {
	return calibrate.TopLabelECE(r.both, opts)
}

// areas returns the AUROC with its interval, and the average precision. Both are NaN if all examples are of one class.
func (r *binaryRows) areas() (auroc calibrate.Interval, precision float64) {
	if nan := math.NaN(); len(r.in) == 0 || len(r.out) == 0 {
		return calibrate.Interval{Mean: nan, Low: nan, High: nan}, nan
	}
	return calibrate.AUROCInterval(r.inOdds, r.outOdds), calibrate.AUPR(r.inOdds, r.outOdds)
}

var errOneClass = errors.New("all labels are of one class: there is no AUROC, and no average precision")

var (
	accuracyMetric = Metric{Key: "accuracy", Header: "accuracy", Digits: 1, Percent: true}
	nllMetric      = Metric{Key: "nll", Header: "NLL", Digits: 4}
	eceOfClass1    = Metric{Key: "ece", Header: "ECE of class 1", Digits: 4}
	brierMetric    = Metric{Key: "brier", Header: "Brier", Digits: 4}
	aurocMetric    = Metric{Key: "auroc", Header: "AUROC", Digits: 4, Optional: true}
	apMetric       = Metric{Key: "average_precision", Header: "AP", Digits: 4, Optional: true}
	sensitivity    = Metric{Key: "sensitivity", Header: "sensitivity", Digits: 1, Percent: true, Optional: true, Decision: true}
	specificity    = Metric{Key: "specificity", Header: "specificity", Digits: 1, Percent: true, Optional: true, Decision: true}
	precision      = Metric{Key: "precision", Header: "precision", Digits: 1, Percent: true, Optional: true, Decision: true}
	f1             = Metric{Key: "f1", Header: "F1", Digits: 4, Optional: true, Decision: true}
)

func decisions(d calibrate.Decisions) []float64 {
	return []float64{d.Sensitivity(), d.Specificity(), d.Precision(), d.F1()}
}

func (t binary) NewSummary() Summary { return &binarySummary{} }

// binarySummary sums up the scores of labelled rows. It keeps 48 bytes per row.
type binarySummary struct {
	classSummary
	rows binaryRows
	calibrate.Decisions
}

func (s *binarySummary) Add(values []float64, label int) bool {
	if !s.classSummary.Add(values, label) {
		return false
	}
	p := values[len(values)-2:]
	s.rows.add(p[0], p[1], label)
	one, yes, no := calibrate.Decisions{}, int(values[prediction]), 1-int(values[prediction])
	if label == 1 {
		one.TruePositives, one.FalseNegatives = yes, no
	} else {
		one.FalsePositives, one.TrueNegatives = yes, no
	}
	s.Decisions = s.Decisions.Add(one)
	return true
}

func (s *binarySummary) Scores() []Score {
	list := s.classSummary.Scores()
	for i := range list {
		if list[i].Key == eceOfClass1.Key {
			list[i] = Score{eceOfClass1, s.rows.ece(calibrate.ECEOptions{}), ""}
		}
	}
	auroc, ap := s.rows.areas()
	add := func(m Metric, value float64, unit string) {
		if value == value {
			list = append(list, Score{m, value, unit})
		}
	}
	add(aurocMetric, auroc.Mean, fmt.Sprintf("[%.4f, %.4f]", auroc.Low, auroc.High))
	add(apMetric, ap, "")
	for i, m := range []Metric{sensitivity, specificity, precision, f1} {
		add(m, decisions(s.Decisions)[i], "")
	}
	return list
}

func (s *binarySummary) Warning() string {
	var warnings []error
	if w := s.classSummary.Warning(); w != "" {
		warnings = append(warnings, errors.New(w))
	}
	if len(s.rows.in) == 0 || len(s.rows.out) == 0 {
		warnings = append(warnings, errOneClass)
	}
	return inWords(warnings)
}

func (t binary) Metrics() []Metric {
	further := func(m Metric) Metric { m.Further = true; return m }
	low, high := aurocMetric, aurocMetric
	low.Key, low.Header, high.Key, high.Header = "auroc_low", "AUROC from", "auroc_high", "to"
	high.Note = "AUROC from, to: its 95 % interval by DeLong et al. 1988"
	list := []Metric{accuracyMetric, nllMetric, eceOfClass1, brierMetric, aurocMetric, apMetric}
	for _, m := range []Metric{{Key: "threshold", Header: "threshold", Digits: 4, Decision: true}, sensitivity, specificity, precision, f1, low, high,
		{Key: "ece_equal_width", Header: "ECE, equal width", Digits: 4},
		{Key: "ece_equal_width_15", Header: "ECE, 15 equal width", Digits: 4, Note: "calibration errors are of the probability of class 1, beside the share of class 1"},
		{Key: "aurc", Header: "AURC", Digits: 5},
		{Key: "risk_at_90", Header: "risk at 90 %", Digits: 2, Percent: true, Note: "AURC and risk at 90 % are of the more probable class, whatever the threshold"},
		{Key: "entropy", Header: "entropy", Digits: 4}} {
		list = append(list, further(m))
	}
	return list
}

// Align does nothing, because no metric depends on other methods.
func (t binary) Align([]*Evaluation) {}

func (t binary) Evaluate(outcomes []float64, labels truth.Truth, opts EvaluateOptions) (*Evaluation, error) {
	p, err := calibrate.NewPredictions(outcomes, t.count, labels.Classes)
	if err != nil {
		return nil, err
	}
	r, threshold := t.judged(outcomes, labels), orDefault(opts.Threshold)
	d := calibrate.Decide(r.in, r.out, threshold)
	wrong := make([]float64, p.Len())
	for i, label := range labels.Classes {
		if (outcomes[2*i+1] >= threshold) != (label == 1) {
			wrong[i] = 1
		}
	}
	auroc, ap := r.areas()
	e := &Evaluation{Losses: [][]float64{calibrate.NegLogLikelihoods(nil, p), wrong, calibrate.Briers(nil, p)},
		Values: []float64{d.Accuracy(), calibrate.NegLogLikelihood(p), r.ece(opts.ECE), calibrate.Brier(p), auroc.Mean, ap}}
	if opts.MainOnly {
		for range t.Metrics()[len(e.Values):] {
			e.Values = append(e.Values, math.NaN())
		}
		return e, nil
	}
	e.Values = append(append(append(e.Values, threshold), decisions(d)...), auroc.Low, auroc.High,
		r.ece(calibrate.ECEOptions{Binning: calibrate.EqualWidth, Bins: opts.ECE.Bins}), r.ece(calibrate.GuoBins()),
		calibrate.AURC(p), calibrate.SelectiveRisk(p, 0.9), stat.Mean(calibrate.PredictiveEntropy(nil, outcomes, t.count), nil))
	e.Decided, e.RiskCoverage = d, calibrate.RiskCoverage(p)
	e.Reliability, e.Warnings = calibrate.TopLabelReliability(r.both, opts.ECE)
	if len(r.in) == 0 || len(r.out) == 0 {
		e.Warnings = append(e.Warnings, errOneClass)
	} else {
		e.Points = calibrate.OperatingPoints(r.inOdds, r.outOdds)
	}
	impossible := 0
	for _, loss := range e.Losses[0] {
		if math.IsInf(loss, 1) {
			impossible++
		}
	}
	if impossible > 0 {
		e.Warnings = append(e.Warnings, fmt.Errorf("NLL is infinite: %d of %d true classes have probability 0", impossible, p.Len()))
	}
	return e, nil
}
