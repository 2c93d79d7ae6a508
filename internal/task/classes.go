package task

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/target"
)

// classes is the task with mutually exclusive classes. An outcome holds their probabilities.
type classes struct {
	described
	OutputSpec
	count int
}

func newClasses(s OutputSpec) (Task, bool, error) {
	if err := contradiction("classes", s); err != nil {
		return nil, false, err
	}
	about := &About{
		Name:    "classes",
		Meaning: fmt.Sprintf("output %q: %d classes, a %s for each", s.Output, s.Count, s.scoreWord()),
		Size:    fmt.Sprintf("%d classes", s.Count),
		Width:   s.Count,
		Classes: s.Count,
	}
	return classes{described{about}, s, s.Count}, s.Count > 1, nil
}

func (t classes) CheckLabel(label target.Target) error {
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
		return 0, fmt.Errorf("the network's scores are taken for probabilities, but they add up to %v, and the least is %v",
			total, slices.Min(scores))
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

// Evident implements [Evident].
func (t classes) Evident() bool { return t.form() == Logits }

func (t classes) Evidence(logits []float32, _ int) (logSumExp, largest float64) {
	largest = float64(slices.Max(logits))
	for _, z := range logits {
		logSumExp += math.Exp(float64(z) - largest)
	}
	return largest + math.Log(logSumExp), largest
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

func (t classes) Columns(want RowOptions) []Column {
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
func (t classes) top(want RowOptions) int { return min(max(want.Top, 1), t.count) }

// Values appends a row. The predictive entropy is computed from the calibrated average. The expected entropy and the
// mutual information are computed from the uncalibrated members.
func (t classes) Values(dst []float64, want RowOptions, a Average, label target.Target) []float64 {
	at := len(dst)
	p := a.Outcome
	entropy := calibrate.Entropy(p)
	mutual := calibrate.Information(entropy, a.Entropy)
	if a.Calibrate != nil {
		a.Calibrate(p)
		entropy = calibrate.Entropy(p)
	}
	dst = append(dst, 0, 0, entropy, a.Entropy, mutual, math.NaN(), math.NaN())
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

func (t classes) Likelihoods(outcomes []float64, labels target.Target) []float64 {
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
		{Key: "max_probability", Name: "largest probability", Of: func(p, _ []float64) []float64 {
			return calibrate.LeastConfidence(nil, p, t.count)
		}},
	}
}

func (t classes) Calibrators() []Calibrator {
	return calibrators(func(m *method, c *Calibrator) {
		if m.classes == nil || m.pair && t.count != 2 {
			return
		}
		c.Fit = func(outcomes []float64, labels target.Target) (*Calibration, error) {
			return t.FitLogs(m.Method, calibrate.LogProbs(nil, outcomes), labels)
		}
		c.CrossFits = m.crossFits
		if m.reorders {
			c.Columns = append(c.Columns, Metric{Key: "accuracy", Header: "accuracy" + m.header, Digits: 1, Percent: true})
		}
		for _, name := range []string{"NLL", "ECE"} {
			c.Columns = append(c.Columns, Metric{Key: strings.ToLower(name), Header: name + m.header, Digits: 4})
		}
	})
}

func (t classes) FitLogs(by Method, logs []float64, labels target.Target) (*Calibration, error) {
	return by.method().classes(t, logs, labels)
}

func (t classes) FitParts(by Method, logs []float64, labels target.Target) (func(rows []int) *Calibration, error) {
	if parts := by.method().parts; parts != nil {
		return parts(t, logs, labels)
	}
	return nil, nil
}

func (t classes) Apply(dst []float64, c *Calibration, outcomes []float64) []float64 {
	do := c.program()
	if do.plain() {
		return do.correct(append(dst[:0], outcomes...), t.count)
	}
	logs := calibrate.LogProbs(dst, outcomes)
	return do.softmax(logs, logs, t.count)
}

func (t classes) ApplyLogs(c *Calibration, logs []float64) []float64 {
	return c.program().softmax(nil, logs, t.count)
}

func (t classes) Scaled(c *Calibration, logs []float64) []float64 {
	return c.program().logits(logs, t.count)
}

// leastNormal is the least number that float64 holds with all digits.
const leastNormal = 0x1p-1022

func (t classes) Logs(probs, logits []float64) []float64 {
	out := slices.Clone(probs)
	for i := 0; i < len(out); i += t.count {
		row, z := out[i:i+t.count], logits[i:i+t.count]
		lost := false
		for c, p := range row {
			lost = lost || p < leastNormal && !math.IsInf(z[c], -1)
		}
		if lost {
			calibrate.LogSoftmax(row, z, t.count, 1)
		} else {
			calibrate.LogProbs(row, row)
		}
	}
	return out
}

func (t classes) LogLosses(logs []float64, labels target.Target) []float64 {
	logs = calibrate.LogSoftmax(nil, logs, t.count, 1)
	out := make([]float64, labels.Len())
	for i, label := range labels.Classes {
		out[i] = 0 - logs[i*t.count+label] // a plain minus would turn 0 into -0
	}
	return out
}

// Say implements [Fusable].
func (t classes) Say(g Graph, scores string) MemberOutcome {
	if t.form() == Probabilities {
		scores = t.bounded(g, scores)
		return MemberOutcome{Outcome: g.Op("Div", scores, g.Sum(scores))}
	}
	if t.form() == LogProbabilities { // the logarithm of probability 0 must stay finite
		scores = g.AtLeast(scores, leastLog)
	}
	return MemberOutcome{Outcome: g.Rowwise("Softmax", scores), Logits: scores}
}

// softmax adds the calibrated probabilities of classes. logs are their logarithms, where −Inf stands for probability 0 unless the
// program needs finite ones.
func (j fusing) softmax(do program, logs string) string {
	return j.Rowwise("Softmax", do.graph(j, logs))
}

// Fuse implements [Fusable].
func (t classes) Fuse(g Graph, outcomes []MemberOutcome, weights []float64, by *Calibration) []Output {
	j := fusing{g, weights}
	var probs, logs []string
	for _, s := range outcomes {
		probs = append(probs, s.Outcome)
		if by != nil && s.Logits != "" {
			logs = append(logs, g.Rowwise("LogSoftmax", s.Logits))
		}
	}
	mean := j.average(probs)
	p := mean
	if by != nil {
		do := by.program()
		switch {
		case do.plain():
		case len(logs) == len(outcomes):
			p = j.softmax(do, j.logAverage(logs))
		case !do.absolute:
			p = j.softmax(do, g.Op("Log", mean))
		default: // no scale may revive a class with probability 0
			p = g.Op("Mul", j.softmax(do, j.finiteLog(mean)), j.Op("Sub", j.number(1), j.missing(mean)))
			p = g.Op("Div", p, g.Sum(p))
		}
		p = do.corrected(j, p)
	}
	mutual := j.Op("Relu", j.divergences(probs, mean, t.count)) // rounding may leave less than 0
	return []Output{{"prob", p, t.count}, {"entropy", j.entropy(p), 1}, {"mutual_information", mutual, 1}}
}

// addSoftmaxTo computes e^u as 2^(k/64)·e^r with |r| ≤ ln 2 / 128. The series of e^r is off by less than 1e-13. This takes a
// third of the time of math.Exp.
const (
	tableBits = 6
	tableStep = math.Ln2 / (1 << tableBits)
	perLog2   = 1 / tableStep
)

// roots[k] is 2^(k/64).
var roots = func() (table [1 << tableBits]float64) {
	for k := range table {
		table[k] = math.Exp2(float64(k) / (1 << tableBits))
	}
	return table
}()

// addSoftmaxTo adds w times the softmax of logits to row, and returns its entropy: log Σ e^u − Σ p·u for u = z − max z. So
// it needs one logarithm. ok is false if a logit is not finite, or if their sum overflows. e is memory of their number.
func addSoftmaxTo(row []float64, logits []float32, e []float64, w float64) (entropy float64, ok bool) {
	peak, total := logits[0], float32(0)
	for _, v := range logits {
		if v > peak { // the function max also looks for NaN, which total shows
			peak = v
		}
		total += v
	}
	if total-total != 0 {
		return 0, false
	}
	sum, weighted := 0.0, 0.0
	e = e[:len(logits)]
	for c, v := range logits {
		u := float64(v) - float64(peak)
		x := 0.0
		if u > -700 { // else far below the last digit of the sum
			k := int(u*perLog2 - 0.5)
			r := u - float64(float64(k)*tableStep)
			x = math.Float64frombits(uint64(1023+k>>tableBits)<<52) * roots[k&(1<<tableBits-1)] * (1 + r*(1+r*(0.5+r*(1.0/6+r*(1.0/24)))))
		}
		e[c], sum, weighted = x, sum+x, weighted+float64(x*u)
	}
	scale := w / sum
	row = row[:len(e)]
	for c, x := range e {
		row[c] += float64(x * scale)
	}
	return math.Log(sum) - weighted/sum, true
}
