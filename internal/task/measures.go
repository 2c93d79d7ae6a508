package task

import (
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
	"github.com/swagwrap/swagwrap/calibrate/regression"
)

// result is what a [Reducer] found about all examples, whether they have one position or several. All metrics follow from it.
type result struct {
	// Metrics are means over positions. Calibration errors and the like are of classes, and NaN or 0 for tasks without such.
	calibrate.Metrics
	sums      positionSums               // of several positions, or nil
	intervals map[string]chance.Interval // of figures of several positions, by their key
	numbers   regression.Metrics         // of a regression
	mace      float64                    // likewise
	labels    multilabel.Metrics         // of independent labels
	chosen    calibrate.Sets             // one of the Sets
	auroc     chance.Interval            // AUROC of class 1 of two; NaN for more classes
	precision float64                    // average precision of class 1
	threshold float64                    // of the decisions
	decided   detect.Decisions           // decisions by the threshold
	noise     func() chance.Interval     // the ECE of a calibrated model with the same confidences: see [calibrate.NewECENoise]
	bins      int                        // of the ECE
	diagram   []calibrate.ReliabilityBin // of confidences; nil where there are none, and for one position with MainOnly
}

// measure is a metric with its computation. Each stands once for examples of one position and of several.
type measure struct {
	Metric
	of func(r *result) float64
}

func figure(key, header string, digits int, of func(r *result) float64) measure {
	return measure{Metric{Key: key, Header: header, Digits: digits}, of}
}

// percent returns a figure that is shown as a percentage.
func percent(key, header string, digits int, of func(r *result) float64) measure {
	m := figure(key, header, digits, of)
	m.Percent = true
	return m
}

// further returns the measure for extended tables only.
func (m measure) further() measure {
	m.Further = true
	return m
}

// brief is like further, but score prints the measure.
func (m measure) brief() measure {
	m.Further, m.Brief = true, true
	return m
}

func (m measure) optional() measure {
	m.Optional = true
	return m
}

func (m measure) nats() measure {
	m.Unit = "nats"
	return m
}

func (m measure) note(text string) measure {
	m.Note = text
	return m
}

// resampled returns a figure with the ends of its interval: whole examples are resampled, since neighbouring positions depend on
// each other.
func (m measure) resampled() []measure {
	low, high := m.note("").brief(), m.note("").brief()
	low.Key, high.Key, low.Header, high.Header = m.Key+"_low", m.Key+"_high", m.Header+" from", "to"
	low.of = func(r *result) float64 { return r.intervals[m.Key].Low }
	high.of = func(r *result) float64 { return r.intervals[m.Key].High }
	return []measure{m, low, high}
}

func metrics(measures []measure) []Metric {
	var out []Metric
	for _, m := range measures {
		out = append(out, m.Metric)
	}
	return out
}

// scores computes the metrics. If mainOnly is set, those that only extended tables show are NaN.
func (r *result) scores(measures []measure, mainOnly bool) []Score {
	out := make([]Score, len(measures))
	for i, m := range measures {
		out[i] = Score{m.Metric, math.NaN()}
		if m.Shown(mainOnly) {
			out[i].Value = m.of(r)
		}
	}
	return out
}

// Metrics of several tasks.
var (
	accuracy   = percent("accuracy", "accuracy", 1, func(r *result) float64 { return r.Accuracy })
	meanNLL    = figure("nll", "NLL", 4, func(r *result) float64 { return r.NLL }).nats()
	meanBrier  = figure("brier", "Brier", 4, func(r *result) float64 { return r.Brier })
	ece        = figure("ece", "ECE", 4, func(r *result) float64 { return r.ECE })
	smoothECE  = figure("smooth_ece", "smooth ECE", 4, func(r *result) float64 { return r.SmoothECE }).further().note(smoothNote)
	classwise  = figure("ece_classwise", "classwise ECE", 4, func(r *result) float64 { return r.ClasswiseECE }).further()
	equalWidth = figure("ece_equal_width", "ECE, equal width", 4, func(r *result) float64 { return r.ECEEqualWidth }).further()
	guo        = figure("ece_equal_width_15", "ECE, 15 equal width", 4, func(r *result) float64 { return r.ECE15 }).further()
	aurc       = figure("aurc", "AURC", 5, func(r *result) float64 { return r.AURC }).further()
	riskAt90   = percent("risk_at_90", "risk at 90 %", 2, func(r *result) float64 { return r.SelectiveRisk }).further()
	entropyOf  = figure("entropy", "entropy", 4, func(r *result) float64 { return r.Entropy }).further()
	aurocOf    = figure("auroc", "AUROC", 4, func(r *result) float64 { return r.auroc.Mean }).optional()
	rmse       = figure("rmse", "RMSE", 4, func(r *result) float64 { return r.numbers.RMSE })
	mae        = figure("mae", "MAE", 4, func(r *result) float64 { return r.numbers.MAE })

	refinement = []measure{
		figure("nll_calibration", "calibration loss", 4, func(r *result) float64 { return r.NLL - r.Refinement }).nats().further().
			optional().note("NLL = calibration loss + refinement loss. Recalibration can remove the calibration loss: " +
			"a temperature or an isotonic map does, fitted on one half of the examples and judged on the other"),
		figure("nll_refinement", "refinement loss", 4, func(r *result) float64 { return r.Refinement }).nats().further().optional(),
	}
	// eceNoise shows how much of an ECE is noise.
	eceNoise = []measure{
		figure("ece_calibrated", "ECE if calibrated", 4, func(r *result) float64 { return r.noise().Mean }).brief().
			note("ECE if calibrated: mean for a calibrated model with the same confidences. From and to: 95 % of such models lie " +
				"between. An ECE within this range is no sign of bad calibration"),
		figure("ece_calibrated_low", "from", 4, func(r *result) float64 { return r.noise().Low }).brief(),
		figure("ece_calibrated_high", "to", 4, func(r *result) float64 { return r.noise().High }).brief(),
		figure("rmsce_debiased", "RMSCE, debiased", 4, func(r *result) float64 { return calibrate.DebiasedRMSCE(r.diagram) }).further().
			optional().note("RMSCE, debiased: root of the squared calibration error without what finite bins add (Kumar et al. 2019)"),
	}
)

const (
	smoothNote  = "smooth ECE: without bins (Błasiok & Nakkiran 2023)"
	ofPositions = "figures count the labelled positions (pixels, tokens) of all examples together; intervals are 95 % and resample " +
		"whole examples"
	ofTexts = "figures count all predicted tokens; intervals are 95 % and resample whole documents, or blocks of a text without documents"
)

var classMeasures = slices.Concat(
	[]measure{accuracy, meanNLL, ece}, eceNoise,
	[]measure{meanBrier, percent("top5", "top-5", 1, func(r *result) float64 { return r.Top5 }).further().optional()}, refinement,
	[]measure{
		smoothECE, classwise, equalWidth,
		guo.note("ECE, 15 equal width: in 15 bins of equal width, as most papers quote it (Guo et al. 2017); in the other columns in " +
			"20 bins"),
		figure("ece_swag_reference", "ECE, reference", 4, func(r *result) float64 { return r.ECEReference }).further(),
		aurc, riskAt90.note("risk at 90 %: errors among the 90 % most confident"), entropyOf, aurocOf.further(),
	},
	setMeasures)

// setMeasures are the metrics of sets of classes, for the level that [Align] chooses.
var setMeasures = func() (list []measure) {
	add := func(m measure, note string) {
		m.Set = true
		list = append(list, m.further().optional().note(note))
	}
	add(percent("set_level", "sets of", 1, func(r *result) float64 { return r.chosen.Level }),
		"sets of classes are fitted to contain the true class in 90, 95, 99 or 99.9 % of examples. The level is the first of these above "+
			"the best accuracy: below it, sets are the most probable class or empty. One half of the examples gives the thresholds for "+
			"the other half")
	for _, m := range []struct {
		key, header, note string
		of                func(calibrate.Sets) calibrate.SetScores
	}{
		{"set", "APS size", "APS: adaptive prediction sets (Romano et al. 2020)",
			func(s calibrate.Sets) calibrate.SetScores { return s.APS }},
		{"raps", "RAPS size", "RAPS: with a penalty for large sets (Angelopoulos et al. 2021)",
			func(s calibrate.Sets) calibrate.SetScores { return s.RAPS }},
		{"classwise", "class-wise size", "class-wise: APS with a threshold for each class, so that the guarantee holds for each class " +
			"(Vovk 2012)", func(s calibrate.Sets) calibrate.SetScores { return s.Classwise }},
	} {
		add(figure(m.key+"_size", m.header, 2, func(r *result) float64 { return m.of(r.chosen).Size }), m.note)
		add(percent(m.key+"_coverage", "coverage", 1, func(r *result) float64 { return m.of(r.chosen).Coverage }), "")
		add(percent(m.key+"_class_gap", "class gap", 1, func(r *result) float64 { return m.of(r.chosen).ClassGap }), "")
	}
	add(percent("set_empty", "empty APS", 1, func(r *result) float64 { return r.chosen.APS.Empty }),
		"class gap: mean over classes of the distance of their coverage from the level, in percentage points. Part of it is chance")
	return list
}()

// decision is a metric of the decisions by a threshold.
func decision(m measure) measure {
	m.Decision = true
	return m.brief().optional()
}

var binaryMeasures = slices.Concat(
	[]measure{accuracy, meanNLL, figure("ece", "ECE of class 1", 4, ece.of)}, eceNoise,
	[]measure{
		meanBrier, aurocOf,
		figure("average_precision", "AP", 4, func(r *result) float64 { return r.precision }).optional(),
		{Metric{Key: "threshold", Header: "threshold", Digits: 4, Further: true, Decision: true},
			func(r *result) float64 { return r.threshold }},
		decision(percent("sensitivity", "sensitivity", 1, func(r *result) float64 { return r.decided.Sensitivity() })),
		decision(percent("specificity", "specificity", 1, func(r *result) float64 { return r.decided.Specificity() })),
		decision(percent("precision", "precision", 1, func(r *result) float64 { return r.decided.Precision() })),
		decision(figure("f1", "F1", 4, func(r *result) float64 { return r.decided.F1() })),
		figure("auroc_low", "AUROC from", 4, func(r *result) float64 { return r.auroc.Low }).brief().optional(),
		figure("auroc_high", "to", 4, func(r *result) float64 { return r.auroc.High }).brief().optional().
			note("AUROC from, to: its 95 % interval by DeLong et al. 1988"),
	}, refinement,
	[]measure{
		smoothECE, equalWidth, guo.note("calibration errors compare the probability of class 1 with the share of class 1"), aurc,
		riskAt90.note("AURC and risk at 90 % are of the more probable class, whatever the threshold"), entropyOf,
	})

var labelMeasures = []measure{
	meanNLL, meanBrier,
	figure("ece_macro", "macro ECE", 4, func(r *result) float64 { return r.labels.MacroECE }).optional(),
	figure("ece_micro", "micro ECE", 4, func(r *result) float64 { return r.labels.MicroECE }).optional(),
	figure("map", "mAP", 4, func(r *result) float64 { return r.labels.MeanAveragePrecision }).optional(),
	figure("auroc", "AUROC", 4, func(r *result) float64 { return r.labels.AUROC }).optional(),
}

var regressionMeasures = []measure{
	meanNLL, rmse, mae,
	figure("crps", "CRPS", 4, func(r *result) float64 { return r.numbers.Gaussian.CRPS }),
	percent("coverage", "coverage", 1, func(r *result) float64 { return r.numbers.Gaussian.Coverage }),
	figure("width", "width", 4, func(r *result) float64 { return r.numbers.Gaussian.Width }),
	figure("ence", "ENCE", 4, func(r *result) float64 { return r.numbers.ENCE }),
	figure("std", "std", 4, func(r *result) float64 { return r.numbers.Std }).further(),
	figure("aleatoric", "aleatoric variance", 4, func(r *result) float64 { return r.numbers.Aleatoric }).further(),
	figure("epistemic", "epistemic variance", 4, func(r *result) float64 { return r.numbers.Epistemic }).further(),
	figure("mace", "MACE", 4, func(r *result) float64 { return r.mace }).further().
		note("MACE: mean distance between how much central intervals are to hold and how much they do, over levels from 0 to 100 %"),
	figure("nll_mixture", "mixture NLL", 4, func(r *result) float64 { return -r.numbers.Mixture.LogLikelihood }).nats().brief().optional(),
	figure("crps_mixture", "mixture CRPS", 4, func(r *result) float64 { return r.numbers.Mixture.CRPS }).brief().optional(),
	percent("coverage_mixture", "mixture coverage", 1, func(r *result) float64 { return r.numbers.Mixture.Coverage }).brief().optional(),
	figure("width_mixture", "mixture width", 4, func(r *result) float64 { return r.numbers.Mixture.Width }).brief().optional().
		note("scores are of Gaussians with the mean and variance of the members' mixture, intervals those of 1.96 standard deviations, " +
			"but for the last four, which are of the mixture itself; all in the targets' units, and of several targets they are means"),
}

// meanIoU returns the metric, which both kinds of sums over pixels have.
func meanIoU(note string) measure {
	return percent("mean_iou", "mean IoU", 1, func(r *result) float64 {
		return r.sums.(interface{ MeanIoU() float64 }).MeanIoU()
	}).note(note)
}

var pixelMeasures = slices.Concat(
	accuracy.note(ofPositions).resampled(), meanNLL.resampled(), []measure{ece, meanBrier},
	meanIoU("mean IoU: one confusion matrix of all positions; mean over the classes that occur in labels or predictions").resampled(),
	[]measure{
		smoothECE.optional(),
		percent("mean_dice", "mean Dice", 1, func(r *result) float64 { return r.sums.(*classSums).MeanDice() }).further().optional(),
		figure("ece_classwise", "classwise ECE", 4, func(r *result) float64 { return r.sums.(*classSums).ClasswiseECE() }).further().
			optional().note("classwise ECE: of the probability of each class, in 20 bins of equal width"),
		figure("ece_border", "ECE at borders", 4, func(r *result) float64 { return r.sums.(*classSums).BorderECE(r.bins) }).further().
			optional().note("ECE at borders: of pixels next to a pixel of another class; inside: of the others"),
		figure("ece_inside", "ECE inside", 4, func(r *result) float64 { return r.sums.(*classSums).InsideECE(r.bins) }).further().
			optional(),
	})

var pixelLabelMeasures = slices.Concat(
	accuracy.note(ofPositions).resampled(), meanNLL.resampled(),
	[]measure{
		figure("ece", "ECE", 4, func(r *result) float64 {
			return r.sums.(*labelSums).over(func(s *calibrate.ClassSums) float64 { return s.ClassECE()[1] })
		}).note("ECE: of the probability of a label, in 20 bins of equal width, mean over labels"),
		meanBrier,
	},
	meanIoU("mean IoU: of positions with the label, at probability 0.5; mean over the labels that occur").resampled())

var pixelNumberMeasures = slices.Concat(meanNLL.note(ofPositions).resampled(), rmse.resampled(), mae.resampled())

// bits returns the code length for each of n tokens, characters or bytes of a text.
func bits(key, header string, n func(*calibrate.TokenSums) int64) measure {
	return figure(key, header, 4, func(r *result) float64 {
		s := r.sums.(*tokenSums).all
		return s.Bits(n(s))
	}).further()
}

var tokenMeasures = slices.Concat(
	figure("perplexity", "perplexity", 2, func(r *result) float64 { return math.Exp(r.NLL) }).note(ofTexts).resampled(),
	meanNLL.resampled(), accuracy.resampled(),
	[]measure{
		ece,
		bits("bits_per_character", "bits/character", func(s *calibrate.TokenSums) int64 { return s.Characters }).brief().optional(),
		bits("bits_per_byte", "bits/byte", func(s *calibrate.TokenSums) int64 { return s.Bytes }).optional(),
		bits("bits_per_token", "bits/token", func(s *calibrate.TokenSums) int64 { return s.Positions }),
		entropyOf.nats().note("entropy: mean of the predictive entropy. It equals NLL for a calibrated model (Braverman et al. 2020)"),
		smoothECE, meanBrier.further(),
		figure("tokens", "tokens", 0, func(r *result) float64 { return float64(r.sums.(*tokenSums).all.Positions) }).brief(),
	})
