package task

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// classes is the task with mutually exclusive classes. An outcome holds their probabilities.
type classes struct {
	OutputSpec
	count int
}

func newClasses(s OutputSpec) (Task, bool, error) {
	if err := contradiction("classes", s); err != nil {
		return nil, false, err
	}
	return classes{s, s.Count}, s.Count > 1, nil
}

func (t classes) Name() string { return "classes" }

func (t classes) Describe() string {
	return fmt.Sprintf("output %q: %d classes, a %s for each", t.Output, t.count, t.one())
}

func (t classes) Size() string { return fmt.Sprintf("%d classes", t.count) }

func (t classes) Width() int { return t.count }

func (t classes) ClassNames() int { return t.count }

func (t classes) CheckLabel(label truth.Truth) error {
	if c := label.Class(); c >= t.count {
		return fmt.Errorf("label %d, want 0 to %d", c, t.count-1)
	}
	return nil
}

// Outcome applies the softmax to logits and to log-probabilities. For log-probabilities this divides the probabilities
// by their sum. Probabilities are also divided by their sum, because float32 leaves it only near 1.
func (t classes) Outcome(dst []float64, scores []float32) (float64, error) {
	total, err := t.sum(scores)
	if err != nil {
		return 0, err
	}
	if t.form() != Probabilities {
		for c, v := range scores {
			dst[c] = float64(v)
		}
		calibrate.Softmax(dst, dst, len(dst), 1)
		return calibrate.Entropy(dst), nil
	}
	if math.Abs(total-1) > SumTolerance || slices.Min(scores) < -Rounding {
		return 0, fmt.Errorf("the network's scores are taken for probabilities, but they add up to %v, and the least is %v", total, slices.Min(scores))
	}
	for c, v := range scores {
		dst[c] = max(0, float64(v)) / total
	}
	return calibrate.Entropy(dst), nil
}

// SumTolerance is the largest accepted distance of a sum of probabilities from 1. A softmax in float32 stays within
// 1e-6. Probabilities from a softmax in bfloat16, or clipped ones, may be off by 1e-2.
const SumTolerance = 1e-2

// Rounding is how far a probability may be below 0 or above 1 because of rounding in float32. Examples are 1 − Σp and
// (1 + tanh)/2.
const Rounding = 1e-6

// sum adds up the scores, which must all be finite. A log-probability may be −∞, but not all of them.
func (s OutputSpec) sum(scores []float32) (total float64, err error) {
	for c, v := range scores {
		impossible := s.form() == LogProbabilities && math.IsInf(float64(v), -1)
		if impossible && slices.Max(scores) > v {
			continue
		}
		if v-v != 0 {
			return 0, fmt.Errorf("the network's output is not finite: class %d has %v", c, v)
		}
		total += float64(v)
	}
	return total, nil
}

func (t classes) Divergence(a, b []float64) float64 { return calibrate.Divergence(a, b, t.count) }

func (t classes) Link(dst, logits []float64) { calibrate.Softmax(dst, logits, len(logits), 1) }

// AddCurvature adds the sum of diag(p) − ppᵀ over the examples.
func (t classes) AddCurvature(hessian, logits *mat.Dense) {
	n, k := logits.Dims()
	p := mat.NewDense(n, k, nil)
	for i := range n {
		row := p.RawRowView(i)
		t.Link(row, logits.RawRowView(i))
		for c, v := range row {
			hessian.Set(c, c, hessian.At(c, c)+v)
		}
	}
	blas64.Gemm(blas.Trans, blas.NoTrans, -1, p.RawMatrix(), p.RawMatrix(), 1, hessian.RawMatrix())
}

// Indices of the first values in a row.
const (
	prediction = iota
	confidence
	predictiveEntropy
	expectedEntropy
	mutualInformation
	nll
	brier
	ranked
)

func (t classes) Columns(want Want) []Column {
	list := []Column{
		{Name: "prediction", Kind: Class},
		{Name: "confidence"},
		{Name: "predictive_entropy"},
		{Name: "expected_entropy"},
		{Name: "mutual_information"},
		{Name: "nll", Hidden: true},
		{Name: "brier", Hidden: true},
		{Name: "top", Kind: Ranked, Cell: "top_%d", Shape: []int{t.top(want)}},
	}
	if want.Outcomes {
		list = append(list, Column{Name: "probs", Cell: "p_%d", Shape: []int{t.count}})
	}
	if want.Members > 0 {
		list = append(list, Column{Name: "member_probs", Cell: "member_%d_p_%d", Kind: Float32, Shape: []int{want.Members, t.count}})
	}
	return list
}

// top returns the number of ranked classes.
func (t classes) top(want Want) int { return min(max(want.Top, 1), t.count) }

// Values appends a row. The predictive entropy is computed from the calibrated average. The expected entropy and the
// mutual information are computed from the uncalibrated members.
func (t classes) Values(dst []float64, want Want, a Average, label truth.Truth) []float64 {
	at := len(dst)
	p := a.Outcome
	mutual := calibrate.MutualInformation(nil, p, t.count, []float64{a.Entropy})[0]
	if a.Calibrate != nil {
		a.Calibrate(p)
	}
	dst = append(dst, 0, 0, calibrate.Entropy(p), a.Entropy, mutual, math.NaN(), math.NaN())
	if label.Known() {
		one := calibrate.Predictions{Classes: t.count, Probs: p, Labels: label.Classes}
		dst[at+nll], dst[at+brier] = calibrate.NegLogLikelihood(one), calibrate.Brier(one)
	}
	dst = appendRanked(dst, p, t.top(want))
	dst[at+prediction], dst[at+confidence] = dst[at+ranked], dst[at+ranked+1]
	if want.Outcomes {
		dst = append(dst, p...)
	}
	if want.Members > 0 {
		for _, v := range a.Members {
			dst = append(dst, float64(v))
		}
	}
	return dst
}

// appendRanked appends the n most probable classes with their probabilities. Classes with equal probabilities keep
// their order.
func appendRanked(dst, p []float64, n int) []float64 {
	start := len(dst)
	for c, v := range p {
		if len(dst) == start+2*n && v <= dst[len(dst)-1] {
			continue
		}
		if len(dst) < start+2*n {
			dst = append(dst, 0, 0)
		}
		at := len(dst) - 2
		for ; at > start && dst[at-1] < v; at -= 2 {
			dst[at], dst[at+1] = dst[at-2], dst[at-1]
		}
		dst[at], dst[at+1] = float64(c), v
	}
	return dst
}

func (t classes) Shown(outcomes []float64) ([]float64, int) { return outcomes, t.count }

func (t classes) NewSummary() Summary { return &classSummary{} }

// classSummary adds up the scores of labelled rows.
type classSummary struct {
	right, nll, brier float64
	impossible        int                  // labels with probability 0
	judged            []calibrate.TopLabel // 16 bytes per example
}

func (s *classSummary) Add(values []float64, label int) bool {
	if label < 0 {
		return false
	}
	right := int(values[prediction]) == label
	if right {
		s.right++
	}
	s.nll += values[nll]
	if math.IsInf(values[nll], 1) {
		s.impossible++
	}
	s.brier += values[brier]
	s.judged = append(s.judged, calibrate.TopLabel{Confidence: values[confidence], Correct: right})
	return true
}

func (s *classSummary) Scores() []Score {
	n := float64(len(s.judged))
	return []Score{
		{Metric{Key: "accuracy", Header: "accuracy", Digits: 1, Percent: true}, s.right / n, ""},
		{Metric{Key: "nll", Header: "NLL", Digits: 4}, s.nll / n, "nats"},
		{Metric{Key: "ece", Header: "ECE", Digits: 4}, calibrate.TopLabelECE(s.judged, calibrate.ECEOptions{}), ""},
		{Metric{Key: "brier", Header: "Brier", Digits: 4}, s.brier / n, ""},
	}
}

func (s *classSummary) Warning() string {
	if s.impossible == 0 {
		return ""
	}
	return fmt.Sprintf("NLL is infinite: %d of %d labels have probability 0, or less than a float64 holds", s.impossible, len(s.judged))
}

func (t classes) Metrics() []Metric {
	return []Metric{
		{Key: "accuracy", Header: "accuracy", Digits: 1, Percent: true},
		{Key: "nll", Header: "NLL", Digits: 4},
		{Key: "ece", Header: "ECE", Digits: 4},
		{Key: "brier", Header: "Brier", Digits: 4},
		{Key: "top5", Header: "top-5", Digits: 1, Percent: true, Further: true, Optional: true},
		{Key: "ece_classwise", Header: "classwise ECE", Digits: 4, Further: true},
		{Key: "ece_equal_width", Header: "ECE, equal width", Digits: 4, Further: true},
		{Key: "ece_equal_width_15", Header: "ECE, 15 equal width", Digits: 4, Further: true,
			Note: "ECE, 15 equal width: in 15 bins of equal width, as most papers quote it (Guo et al. 2017); in the other columns as --ece says, or in 20 bins"},
		{Key: "ece_swag_reference", Header: "ECE, reference", Digits: 4, Further: true},
		{Key: "aurc", Header: "AURC", Digits: 5, Further: true},
		{Key: "risk_at_90", Header: "risk at 90 %", Digits: 2, Percent: true, Further: true,
			Note: "risk at 90 %: errors among the 90 % most confident"},
		{Key: "entropy", Header: "entropy", Digits: 4, Further: true},
		{Key: "auroc", Header: "AUROC", Digits: 4, Further: true, Optional: true},
		{Key: "set_level", Header: "sets of", Digits: 1, Percent: true, Further: true, Optional: true},
		{Key: "set_size", Header: "set size", Digits: 2, Further: true, Optional: true},
		{Key: "set_coverage", Header: "set coverage", Digits: 1, Percent: true, Further: true, Optional: true},
		{Key: "set_empty", Header: "empty sets", Digits: 1, Percent: true, Further: true, Optional: true,
			Note: "sets of classes (APS) are fitted to hold the true one in 90, 95, 99 or 99.9 %, in the first of these that is above the best accuracy: " +
				"at a level below it they are the most probable class or none, and tell nothing"},
	}
}

// Align compares all methods at the same level of the prediction sets, just above the best accuracy.
func (t classes) Align(evaluations []*Evaluation) {
	best := 0.0
	for _, e := range evaluations {
		best = max(best, e.Values[0])
	}
	for _, e := range evaluations {
		s := calibrate.SetsAbove(e.sets, best)
		copy(e.Values[len(e.Values)-4:], []float64{s.Level, s.Size, s.Coverage, s.Empty})
	}
}

func (t classes) Losses() []Loss {
	return []Loss{{"nll", "NLL"}, {"error", "error"}, {"brier", "Brier score"}}
}

func (t classes) Evaluate(outcomes []float64, labels truth.Truth, opts EvaluateOptions) (*Evaluation, error) {
	p, err := calibrate.NewPredictions(outcomes, t.count, labels.Classes)
	if err != nil {
		return nil, err
	}
	losses := [][]float64{calibrate.NegLogLikelihoods(nil, p), calibrate.Errors(nil, p), calibrate.Briers(nil, p)}
	if opts.MainOnly {
		values := []float64{calibrate.Accuracy(p), calibrate.NegLogLikelihood(p), calibrate.ECE(p, opts.ECE), calibrate.Brier(p)}
		for range t.Metrics()[len(values):] {
			values = append(values, math.NaN())
		}
		return &Evaluation{Values: values, Losses: losses}, nil
	}
	m := calibrate.Evaluate(p, opts.EvaluateOptions)
	e := &Evaluation{
		Values: []float64{m.Accuracy, m.NLL, m.ECE, m.Brier, m.Top5, m.ClasswiseECE, m.ECEEqualWidth, m.ECE15, m.ECEReference, m.AURC, m.SelectiveRisk, m.Entropy, t.auroc(outcomes, labels), 0, 0, 0, 0},
		Losses: losses, Reliability: calibrate.Reliability(p, opts.ECE), RiskCoverage: calibrate.RiskCoverage(p), Warnings: m.Warnings, sets: m.Sets,
	}
	t.Align([]*Evaluation{e})
	return e, nil
}

// auroc returns the AUROC for two classes, which is the same for both. It is NaN for more classes.
func (t classes) auroc(outcomes []float64, labels truth.Truth) float64 {
	if t.count != 2 {
		return math.NaN()
	}
	auroc, _ := binary{t}.judged(outcomes, labels).areas()
	return auroc.Mean
}

func (t classes) Likelihoods(outcomes []float64, labels truth.Truth) []float64 {
	out := make([]float64, labels.Len())
	for i, label := range labels.Classes {
		out[i] = outcomes[i*t.count+label]
	}
	return out
}

func (t classes) Uncertainties() []Uncertainty {
	return []Uncertainty{
		{Key: "entropy", Name: "entropy", Of: func(p, _ []float64) []float64 { return calibrate.PredictiveEntropy(nil, p, t.count) }},
		{Key: "mutual_information", Name: "mutual information", Members: true, Of: func(p, expected []float64) []float64 {
			return calibrate.MutualInformation(nil, p, t.count, expected)
		}},
		{Key: "max_probability", Name: "largest probability", Of: func(p, _ []float64) []float64 { return calibrate.LeastConfidence(nil, p, t.count) }},
	}
}

func (t classes) Calibrators() []Calibrator {
	nll, ece := Metric{Key: "nll", Digits: 4}, Metric{Key: "ece", Digits: 4}
	named := func(m Metric, header string) Metric { m.Header = header; return m }
	return []Calibrator{
		{calibrate.ByTemperature, "Temp", "temperature scaling", "T", []Metric{named(nll, "NLL at T"), named(ece, "ECE at T")}},
		{calibrate.ByVector, "Vector", "", "", []Metric{{Key: "accuracy", Header: "accuracy, vector", Digits: 1, Percent: true}, named(nll, "NLL, vector"), named(ece, "ECE, vector")}},
	}
}

// Averaged probabilities are repaired by their logarithms.

func (t classes) Fit(by calibrate.Scaler, outcomes []float64, labels truth.Truth) (*calibrate.Scaling, error) {
	return by.Fit(calibrate.LogProbs(nil, outcomes), t.count, labels.Classes)
}

func (t classes) Apply(dst []float64, s *calibrate.Scaling, outcomes []float64) []float64 {
	logits := calibrate.LogProbs(dst, outcomes)
	return s.Apply(logits, logits, t.count)
}

func (t classes) CrossFit(by calibrate.Scaler, outcomes []float64, labels truth.Truth, seed uint64) ([]float64, *calibrate.Scaling, error) {
	return by.CrossFit(nil, calibrate.LogProbs(nil, outcomes), t.count, labels.Classes, 0, seed)
}

func (t classes) CrossFits(by calibrate.Scaler, outcomes []float64, labels truth.Truth, seed uint64) (calibrate.CrossFitted, error) {
	return by.CrossFits(calibrate.LogProbs(nil, outcomes), t.count, labels.Classes, 0, 0, seed)
}

// Say implements [Fusable].
func (t classes) Say(g Graph, scores string) Said {
	if t.form() == Probabilities {
		scores = t.bounded(g, scores)
		return Said{Outcome: g.Op("Div", scores, g.Sum(scores))}
	}
	if t.form() == LogProbabilities { // the logarithm of probability 0 must stay finite
		scores = g.Op("Max", scores, g.Constant([]float32{-1e38}, 1, 1))
	}
	return Said{Outcome: g.Rowwise("Softmax", scores), Logits: scores}
}

// Fuse implements [Fusable].
func (t classes) Fuse(g Graph, said []Said, weights []float64, by *calibrate.Scaling) []Output {
	j := fusing{g, weights}
	var probs, logs []string
	for _, s := range said {
		probs = append(probs, s.Outcome)
		if by != nil && s.Logits != "" {
			logs = append(logs, g.Rowwise("LogSoftmax", s.Logits))
		}
	}
	mean := j.average(probs)
	p := mean
	switch {
	case by == nil:
	case len(logs) == len(said):
		p = j.calibrated(j.logAverage(logs), by)
	case by.Vector == nil:
		p = j.calibrated(g.Op("Log", mean), by)
	default: // no scale may revive a class with probability 0
		p = g.Op("Mul", j.calibrated(j.logOf(mean), by), j.ruledOut(mean))
		p = g.Op("Div", p, g.Sum(p))
	}
	return []Output{{"prob", p, t.count}, {"entropy", j.entropy(p, t.count), 1}, {"mutual_information", j.mutualInformation(probs, mean), 1}}
}
