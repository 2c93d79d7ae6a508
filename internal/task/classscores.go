package task

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
	"github.com/swagwrap/swagwrap/internal/target"
)

// classResult is what was found about the probabilities of classes.
type classResult struct {
	calibrate.Metrics
	auroc            chance.Interval // AUROC of class 1 of two; NaN for more classes
	averagePrecision float64
	threshold        float64
	decided          detect.Decisions // decisions by the threshold
	// calibrated is the ECE of a calibrated model with the same confidences: see [calibrate.NewECENoise].
	calibrated func() chance.Interval
	bins       []calibrate.ReliabilityBin // of the ECE; nil with MainOnly
}

// judgeBins sets what the noise of the ECE follows from.
func (r *classResult) judgeBins(e *classReducer, bins []calibrate.ReliabilityBin) {
	r.bins = bins
	r.calibrated = sync.OnceValue(func() chance.Interval {
		if e.opts.NoIntervals {
			return chance.Interval{Mean: math.NaN(), Low: math.NaN(), High: math.NaN()}
		}
		return calibrate.NewECENoise(e.tops, e.opts.ECE, e.opts.Seed)
	})
}

// eceNoise returns the metrics that show how much of an ECE is noise.
func eceNoise() []measure[*classResult] {
	metric := func(key, header, note string) Metric {
		return Metric{
			Key:      key,
			Header:   header,
			Digits:   4,
			Further:  true,
			Brief:    key != "rmsce_debiased",
			Optional: key == "rmsce_debiased",
			Note:     note,
		}
	}
	return []measure[*classResult]{
		{metric("ece_calibrated", "ECE if calibrated",
			"ECE if calibrated: mean for a calibrated model with the same confidences. From and to: 95 % of such models lie between. An "+
				"ECE within this range is no sign of bad calibration"),
			func(r *classResult) float64 { return r.calibrated().Mean }},
		{metric("ece_calibrated_low", "from", ""), func(r *classResult) float64 { return r.calibrated().Low }},
		{metric("ece_calibrated_high", "to", ""), func(r *classResult) float64 { return r.calibrated().High }},
		{metric("rmsce_debiased", "RMSCE, debiased",
			"RMSCE, debiased: root of the squared calibration error without what finite bins add (Kumar et al. 2019)"),
			func(r *classResult) float64 { return calibrate.DebiasedRMSCE(r.bins) }},
	}
}

// These measures are of both tasks, classes and binary.
var (
	accuracy = measure[*classResult]{Metric{Key: "accuracy", Header: "accuracy", Digits: 1, Percent: true}, func(r *classResult) float64 {
		return r.Accuracy
	}}
	meanNLL = measure[*classResult]{Metric{Key: "nll", Header: "NLL", Digits: 4, Unit: "nats"}, func(r *classResult) float64 {
		return r.NLL
	}}
	meanBrier = measure[*classResult]{Metric{Key: "brier", Header: "Brier", Digits: 4}, func(r *classResult) float64 {
		return r.Brier
	}}
	aurocOf = measure[*classResult]{Metric{Key: "auroc", Header: "AUROC", Digits: 4, Optional: true}, func(r *classResult) float64 {
		return r.auroc.Mean
	}}
	equalWidth = measure[*classResult]{Metric{
		Key:     "ece_equal_width",
		Header:  "ECE, equal width",
		Digits:  4,
		Further: true,
	}, func(r *classResult) float64 {
		return r.ECEEqualWidth
	}}
	aurc = measure[*classResult]{Metric{Key: "aurc", Header: "AURC", Digits: 5, Further: true}, func(r *classResult) float64 {
		return r.AURC
	}}
	smoothECE = measure[*classResult]{Metric{
		Key:     "smooth_ece",
		Header:  "smooth ECE",
		Digits:  4,
		Further: true,
		Note:    "smooth ECE: without bins (Błasiok & Nakkiran 2023)",
	}, func(r *classResult) float64 {
		return r.SmoothECE
	}}
	calibrationLoss = measure[*classResult]{Metric{
		Key:      "nll_calibration",
		Header:   "calibration loss",
		Digits:   4,
		Unit:     "nats",
		Further:  true,
		Optional: true,
		Note: "NLL = calibration loss + refinement loss. Recalibration can remove the calibration loss: " +
			"a temperature or an isotonic map does, fitted on one half of the examples and judged on the other",
	}, func(r *classResult) float64 { return r.NLL - r.Refinement }}
	refinementLoss = measure[*classResult]{Metric{
		Key:      "nll_refinement",
		Header:   "refinement loss",
		Digits:   4,
		Unit:     "nats",
		Further:  true,
		Optional: true,
	}, func(r *classResult) float64 {
		return r.Refinement
	}}
	entropyOf = measure[*classResult]{Metric{Key: "entropy", Header: "entropy", Digits: 4, Further: true}, func(r *classResult) float64 {
		return r.Entropy
	}}
)

var classMeasures = slices.Concat(slices.Insert([]measure[*classResult]{
	accuracy,
	meanNLL,
	{Metric{Key: "ece", Header: "ECE", Digits: 4}, func(r *classResult) float64 { return r.ECE }},
	meanBrier,
	{Metric{Key: "top5", Header: "top-5", Digits: 1, Percent: true, Further: true, Optional: true}, func(r *classResult) float64 {
		return r.Top5
	}},
	calibrationLoss, refinementLoss, smoothECE,
	{Metric{Key: "ece_classwise", Header: "classwise ECE", Digits: 4, Further: true}, func(r *classResult) float64 {
		return r.ClasswiseECE
	}},
	equalWidth,
	{Metric{Key: "ece_equal_width_15", Header: "ECE, 15 equal width", Digits: 4, Further: true,
		Note: "ECE, 15 equal width: in 15 bins of equal width, as most papers quote it (Guo et al. 2017); in the other columns in 20 bins"},
		func(r *classResult) float64 { return r.ECE15 }},
	{Metric{Key: "ece_swag_reference", Header: "ECE, reference", Digits: 4, Further: true}, func(r *classResult) float64 {
		return r.ECEReference
	}},
	aurc,
	{Metric{
		Key:     "risk_at_90",
		Header:  "risk at 90 %",
		Digits:  2,
		Percent: true,
		Further: true,
		Note:    "risk at 90 %: errors among the 90 % most confident",
	},
		func(r *classResult) float64 { return r.SelectiveRisk }},
	entropyOf,
	aurocOf.further(),
}, 3, eceNoise()...), setsLater()) // the noise behind the ECE

// setMeasures are the metrics of sets of classes. [Align] chooses their level.
var setMeasures = func() (list []measure[calibrate.Sets]) {
	add := func(key, header string, digits int, percent bool, note string, of func(calibrate.Sets) float64) {
		list = append(list, measure[calibrate.Sets]{Metric{
			Key:      key,
			Header:   header,
			Digits:   digits,
			Percent:  percent,
			Further:  true,
			Optional: true,
			Set:      true,
			Note:     note,
		}, of})
	}
	add("set_level", "sets of", 1, true, "sets of classes are fitted to contain the true class in 90, 95, 99 or 99.9 % of examples. The "+
		"level is the first of these above the best accuracy: "+
		"below it, sets are the most probable class or empty. One half of the examples gives the thresholds for the other half",
		func(s calibrate.Sets) float64 {
			return s.Level
		})
	for _, m := range []struct {
		key, header, note string
		of                func(calibrate.Sets) calibrate.SetScores
	}{
		{"set", "APS size", "APS: adaptive prediction sets (Romano et al. 2020)", func(s calibrate.Sets) calibrate.SetScores {
			return s.APS
		}},
		{"raps", "RAPS size", "RAPS: with a penalty for large sets (Angelopoulos et al. 2021)", func(s calibrate.Sets) calibrate.SetScores {
			return s.RAPS
		}},
		{"classwise", "class-wise size", "class-wise: APS with a threshold for each class, so that the guarantee holds for each class " +
			"(Vovk 2012)", func(s calibrate.Sets) calibrate.SetScores {
			return s.Classwise
		}},
	} {
		add(m.key+"_size", m.header, 2, false, m.note, func(s calibrate.Sets) float64 { return m.of(s).Size })
		add(m.key+"_coverage", "coverage", 1, true, "", func(s calibrate.Sets) float64 { return m.of(s).Coverage })
		add(m.key+"_class_gap", "class gap", 1, true, "", func(s calibrate.Sets) float64 { return m.of(s).ClassGap })
	}
	add("set_empty", "empty APS", 1, true, "class gap: mean over classes of the distance of their coverage from the level, in "+
		"percentage points. Part of it is chance", func(s calibrate.Sets) float64 {
		return s.APS.Empty
	})
	return list
}()

// setsLater stands for the metrics of sets, which [Align] computes.
func setsLater() (list []measure[*classResult]) {
	for _, m := range setMeasures {
		list = append(list, measure[*classResult]{m.Metric, func(*classResult) float64 { return math.NaN() }})
	}
	return list
}

// decisionMeasure is a metric of the decisions by a threshold.
func decisionMeasure(key, header string, digits int, percent bool, of func(detect.Decisions) float64) measure[*classResult] {
	return measure[*classResult]{Metric{
		Key:      key,
		Header:   header,
		Digits:   digits,
		Percent:  percent,
		Further:  true,
		Brief:    true,
		Optional: true,
		Decision: true,
	},
		func(r *classResult) float64 { return of(r.decided) }}
}

var binaryMeasures = slices.Insert([]measure[*classResult]{
	accuracy,
	meanNLL,
	{Metric{Key: "ece", Header: "ECE of class 1", Digits: 4}, func(r *classResult) float64 { return r.ECE }},
	meanBrier,
	aurocOf,
	{Metric{Key: "average_precision", Header: "AP", Digits: 4, Optional: true}, func(r *classResult) float64 { return r.averagePrecision }},
	{Metric{Key: "threshold", Header: "threshold", Digits: 4, Further: true, Decision: true}, func(r *classResult) float64 {
		return r.threshold
	}},
	decisionMeasure("sensitivity", "sensitivity", 1, true, detect.Decisions.Sensitivity),
	decisionMeasure("specificity", "specificity", 1, true, detect.Decisions.Specificity),
	decisionMeasure("precision", "precision", 1, true, detect.Decisions.Precision),
	decisionMeasure("f1", "F1", 4, false, detect.Decisions.F1),
	{Metric{Key: "auroc_low", Header: "AUROC from", Digits: 4, Further: true, Brief: true, Optional: true}, func(r *classResult) float64 {
		return r.auroc.Low
	}},
	{Metric{
		Key:      "auroc_high",
		Header:   "to",
		Digits:   4,
		Further:  true,
		Brief:    true,
		Optional: true,
		Note:     "AUROC from, to: its 95 % interval by DeLong et al. 1988",
	},
		func(r *classResult) float64 { return r.auroc.High }},
	calibrationLoss, refinementLoss, smoothECE,
	equalWidth,
	{Metric{
		Key:     "ece_equal_width_15",
		Header:  "ECE, 15 equal width",
		Digits:  4,
		Further: true,
		Note:    "calibration errors compare the probability of class 1 with the share of class 1",
	},
		func(r *classResult) float64 { return r.ECE15 }},
	aurc,
	{Metric{
		Key:     "risk_at_90",
		Header:  "risk at 90 %",
		Digits:  2,
		Percent: true,
		Further: true,
		Note:    "AURC and risk at 90 % are of the more probable class, whatever the threshold",
	},
		func(r *classResult) float64 { return r.SelectiveRisk }},
	entropyOf,
}, 3, eceNoise()...) // behind the ECE

// lossSum adds up a loss. It also keeps the loss of each example, unless only the mean is needed.
type lossSum struct {
	sum  float64
	n    int
	each []float64
}

func (l *lossSum) add(v float64, keep bool) {
	l.sum += v
	l.n++
	if keep {
		l.each = append(l.each, v)
	}
}

func (l *lossSum) merge(o lossSum) {
	l.sum, l.n, l.each = l.sum+o.sum, l.n+o.n, append(l.each, o.each...)
}

func (l *lossSum) mean() float64 {
	if l.each != nil {
		return stat.Mean(l.each, nil)
	}
	return l.sum / float64(l.n)
}

// classReducer implements [Reducer] for probabilities of classes.
type classReducer struct {
	t                 classes
	opts              EvaluateOptions
	nll, wrong, brier lossSum
	impossible        int                  // true classes with probability 0
	tops              []calibrate.TopLabel // 16 bytes for each example; of class 1 for the task binary
	// all has the outcomes, and units the name of each example's unit of chance. Both are empty with MainOnly.
	all   calibrate.Predictions
	units []string
}

func (t classes) NewReducer(opts EvaluateOptions) Reducer { return newClassReducer(t, opts) }

func newClassReducer(t classes, opts EvaluateOptions) *classReducer {
	e := &classReducer{t: t, opts: opts, all: calibrate.Predictions{Classes: t.count}}
	if !opts.MainOnly {
		e.all.Probs = make([]float64, 0, opts.Expected*t.count)
	}
	return e
}

func (e *classReducer) Add(outcome []float64, target target.Target, unit string) error {
	label := target.Class()
	if err := calibrate.CheckRow(outcome, label); err != nil {
		return err
	}
	e.keep(outcome, label, unit)
	e.addTop(calibrate.JudgeRow(outcome, label))
	return nil
}

// predictions returns all outcomes. Examples without the name of a unit do not depend on each other.
func (e *classReducer) predictions() calibrate.Predictions {
	if slices.ContainsFunc(e.units, func(name string) bool { return name != "" }) {
		e.all.Units = Numbered(e.units)
	}
	return e.all
}

// keep keeps the outcome for the metrics that need all of them.
func (e *classReducer) keep(outcome []float64, label int, unit string) {
	if !e.opts.MainOnly {
		e.all.Probs, e.all.Labels = append(e.all.Probs, outcome...), append(e.all.Labels, label)
		e.units = append(e.units, unit)
	}
}

func (e *classReducer) AddRow(values []float64, label int, _ []byte, _ string) bool {
	if label >= 0 {
		top := calibrate.TopLabel{Confidence: values[confidence], Correct: int(values[prediction]) == label}
		e.addTop(calibrate.Judged{TopLabel: top, NLL: values[nll], Brier: values[brier]})
	}
	return label >= 0
}

func (e *classReducer) addTop(j calibrate.Judged) {
	e.add(j)
	e.tops = append(e.tops, j.TopLabel)
}

// add adds the losses of an example.
func (e *classReducer) add(j calibrate.Judged) {
	wrong := 1.0
	if j.Correct {
		wrong = 0
	}
	each := !e.opts.NoLosses
	e.nll.add(j.NLL, each)
	e.wrong.add(wrong, each)
	e.brier.add(j.Brier, each)
	if math.IsInf(j.NLL, 1) {
		e.impossible++
	}
}

func (e *classReducer) Merge(other Reducer) { e.merge(other.(*classReducer)) }

func (e *classReducer) merge(o *classReducer) {
	e.nll.merge(o.nll)
	e.wrong.merge(o.wrong)
	e.brier.merge(o.brier)
	e.impossible += o.impossible
	e.tops = append(e.tops, o.tops...)
	e.all.Probs, e.all.Labels = append(e.all.Probs, o.all.Probs...), append(e.all.Labels, o.all.Labels...)
	e.units = append(e.units, o.units...)
}

func (e *classReducer) Metrics() []Metric { return metrics(classMeasures) }

func (e *classReducer) Losses() []Loss {
	if e.opts.NoLosses {
		return nil
	}
	return []Loss{{"nll", "NLL", e.nll.each}, {"error", "error", e.wrong.each}, {"brier", "Brier score", e.brier.each}}
}

func (e *classReducer) Evaluation() *Evaluation {
	out := &Evaluation{Losses: e.Losses()}
	r := &classResult{auroc: chance.Interval{Mean: math.NaN()}}
	if e.opts.MainOnly {
		r.Metrics = e.main()
		r.ECE = calibrate.TopLabelECE(e.tops, e.opts.ECE)
		out.Warnings = e.warnings()
	} else {
		all := e.predictions()
		r.Metrics = calibrate.Evaluate(all, e.opts.EvaluateOptions)
		if e.t.count == 2 { // the AUROC is the same for both classes
			r.auroc, _ = areas(logOdds(all))
		}
		out.Reliability, out.RiskCoverage = calibrate.Reliability(all, e.opts.ECE), calibrate.RiskCoverage(all)
		out.Warnings, out.sets = r.Warnings, r.Sets
	}
	r.judgeBins(e, out.Reliability)
	out.Scores = measured(classMeasures, r, e.opts.MainOnly)
	Align(out)
	return out
}

// main returns the metrics that follow from sums.
func (e *classReducer) main() calibrate.Metrics {
	n := e.wrong.n
	return calibrate.Metrics{N: n, Accuracy: (float64(n) - e.wrong.sum) / float64(n), NLL: e.nll.mean(), Brier: e.brier.mean()}
}

func (e *classReducer) warnings() []error {
	if e.impossible == 0 {
		return nil
	}
	return []error{fmt.Errorf("NLL is infinite: %d of %d labels have probability 0, or less than a float64 holds", e.impossible, e.wrong.n)}
}

// binaryReducer implements [Reducer] for two classes with a threshold. It keeps 24 bytes for each example, and its
// losses.
type binaryReducer struct {
	*classReducer
	in, out []float64 // log-odds of class 1, for examples of class 0 and of class 1
	decided detect.Decisions
}

func (t binary) NewReducer(opts EvaluateOptions) Reducer {
	return &binaryReducer{classReducer: newClassReducer(t.classes, opts)}
}

func (e *binaryReducer) Add(outcome []float64, target target.Target, unit string) error {
	label := target.Class()
	if err := calibrate.CheckRow(outcome, label); err != nil {
		return err
	}
	e.keep(outcome, label, unit)
	j := calibrate.JudgeRow(outcome, label)
	j.Correct = byThreshold(outcome[1], e.opts.Threshold) == label
	e.add(j, outcome[1], outcome[0], label)
	return nil
}

func (e *binaryReducer) AddRow(values []float64, label int, _ []byte, _ string) bool {
	if label >= 0 {
		p := values[len(values)-2:]
		e.add(calibrate.Judged{
			TopLabel: calibrate.TopLabel{Correct: int(values[prediction]) == label},
			NLL:      values[nll],
			Brier:    values[brier],
		}, p[0], p[1], label)
	}
	return label >= 0
}

// add adds an example with the probabilities p of class 1 and q of class 0. j.Correct is by the threshold.
func (e *binaryReducer) add(j calibrate.Judged, p, q float64, label int) {
	e.classReducer.add(j)
	e.tops = append(e.tops, calibrate.TopLabel{Confidence: p, Correct: label == 1})
	odds := multilabel.LogOdds([]float64{p}, []float64{q})[0]
	switch {
	case label == 1 && j.Correct:
		e.decided.TruePositives++
	case label == 1:
		e.decided.FalseNegatives++
	case j.Correct:
		e.decided.TrueNegatives++
	default:
		e.decided.FalsePositives++
	}
	if label == 1 {
		e.out = append(e.out, odds)
	} else {
		e.in = append(e.in, odds)
	}
}

func (e *binaryReducer) Merge(other Reducer) {
	o := other.(*binaryReducer)
	e.merge(o.classReducer)
	e.in, e.out = append(e.in, o.in...), append(e.out, o.out...)
	e.decided = e.decided.Add(o.decided)
}

func (e *binaryReducer) Metrics() []Metric { return metrics(binaryMeasures) }

var errOneClass = errors.New("all labels are of one class: there is no AUROC, and no average precision")

func (e *binaryReducer) Evaluation() *Evaluation {
	ece := func(opts calibrate.ECEOptions) float64 { return calibrate.TopLabelECE(e.tops, opts) }
	out := &Evaluation{Losses: e.Losses()}
	r := &classResult{Metrics: e.main(), threshold: orDefault(e.opts.Threshold), decided: e.decided}
	r.auroc, r.averagePrecision = areas(e.in, e.out)
	r.ECE = ece(e.opts.ECE)
	if !e.opts.MainOnly {
		r.ECEEqualWidth, r.ECE15 = ece(calibrate.ECEOptions{Binning: calibrate.EqualWidth, Bins: e.opts.ECE.Bins}), ece(calibrate.GuoBins())
		all := e.predictions()
		r.AURC, r.SelectiveRisk = calibrate.AURC(all), calibrate.SelectiveRisk(all, 0.9)
		r.Entropy = stat.Mean(calibrate.PredictiveEntropy(nil, all.Probs, e.t.count), nil)
		r.Refinement, r.SmoothECE = calibrate.Refinement(all, e.opts.Seed), calibrate.SmoothECE(e.tops)
		out.Decided, out.RiskCoverage = e.decided, calibrate.RiskCoverage(all)
		out.Reliability, out.Warnings = calibrate.TopLabelReliability(e.tops, e.opts.ECE)
	}
	if len(e.in) == 0 || len(e.out) == 0 {
		out.Warnings = append(out.Warnings, errOneClass)
	} else if !e.opts.MainOnly {
		out.Points = detect.OperatingPoints(e.in, e.out)
	}
	out.Warnings = append(out.Warnings, e.warnings()...)
	r.judgeBins(e.classReducer, out.Reliability)
	out.Scores = measured(binaryMeasures, r, e.opts.MainOnly)
	return out
}

// logOdds returns the log-odds of class 1 of two, for the examples of class 0 and of class 1. They also order
// probabilities that round to 1.
func logOdds(p calibrate.Predictions) (in, out []float64) {
	for i, label := range p.Labels {
		odds := multilabel.LogOdds(p.Row(i)[1:], p.Row(i)[:1])
		if label == 1 {
			out = append(out, odds...)
		} else {
			in = append(in, odds...)
		}
	}
	return in, out
}

// areas returns the AUROC with its interval, and the average precision. Both are NaN if all examples are of one class.
func areas(in, out []float64) (auroc chance.Interval, precision float64) {
	if nan := math.NaN(); len(in) == 0 || len(out) == 0 {
		return chance.Interval{Mean: nan, Low: nan, High: nan}, nan
	}
	return detect.AUROCInterval(in, out), detect.AUPR(in, out)
}

// ECEOf says whose probabilities the calibration errors of a task are about, or "" if it has none. Of two classes it is that of class 1,
// while papers often take the more probable one.
func ECEOf(t Task) string {
	switch t.(type) {
	case classes:
		return "top label"
	case binary:
		return "class 1"
	}
	return ""
}
