package task

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
	"github.com/swagwrap/swagwrap/internal/target"
)

// labels is the task with one score for each of several independent labels: a logit, or a probability. An outcome has
// three parts, each with a number per label. They are the probability that the example has the label, its complement,
// and the entropy. A loss near probability 1 needs the second part. Mutual information by label needs the average of
// the third part.
type labels struct {
	described
	OutputSpec
}

func newLabels(s OutputSpec) (Task, bool, error) {
	if err := contradiction("labels", s); err != nil {
		return nil, false, err
	}
	size := fmt.Sprintf("%d labels", s.Count)
	if s.Count == 1 {
		size = "1 label"
	}
	about := &About{
		Name:    "labels",
		Meaning: fmt.Sprintf("output %q: %s, a %s for each", s.Output, size, s.scoreWord()),
		Size:    size,
		Width:   3 * s.Count,
		Classes: s.Count,
	}
	return labels{described{about}, s}, s.Count > 0, nil
}

func (t labels) CheckLabel(label target.Target) error {
	if label.Width != t.Count {
		return fmt.Errorf("%d labels, want %d", label.Width, t.Count)
	}
	return target.Labels.Check(label.Values)
}

func (t labels) width() int { return 3 * t.Count }

// parts returns the probabilities of an outcome, their complements, and the entropies.
func (t labels) parts(outcome []float64) (p, q, h []float64) {
	n := t.Count
	return outcome[:n], outcome[n : 2*n], outcome[2*n : 3*n]
}

func (t labels) Outcome(dst []float64, scores []float32) (entropy float64, err error) {
	p, q, h := t.parts(dst)
	for k := range scores {
		z, err := t.single(scores[k : k+1])
		if err != nil {
			return 0, fmt.Errorf("label %d: %w", k, err)
		}
		switch t.form() {
		case Probabilities:
			p[k], q[k] = z, 1-z
		case LogProbabilities:
			p[k], q[k] = math.Exp(z), -math.Expm1(z)
		default:
			odds := multilabel.Sigmoid([]float64{z, -z})
			p[k], q[k] = odds[0], odds[1]
		}
		h[k] = multilabel.Entropy(min(p[k], q[k])) // the smaller one has more digits
		entropy += h[k]
	}
	return entropy, nil
}

// columns returns one part of n outcomes, n×Count. Part 0 is the probabilities, 1 their complements, 2 the entropies.
func (t labels) columns(outcomes []float64, part int) []float64 {
	out := make([]float64, 0, len(outcomes)/3)
	for row := range slices.Chunk(outcomes, t.width()) {
		out = append(out, row[part*t.Count:][:t.Count]...)
	}
	return out
}

// known converts the values of labels to integers.
func known(of target.Target) []int {
	out := make([]int, len(of.Values))
	for i, v := range of.Values {
		out[i] = int(v)
	}
	return out
}

// perExample distributes a loss of n×Count labels over the examples. Each example gets the sum over its known labels,
// divided by the mean number of known labels per example. So the mean over examples is the mean over all known labels.
// That is the score that differences and temperatures of methods refer to.
func (t labels) perExample(losses []float64, known []int) []float64 {
	out, n := make([]float64, len(losses)/t.Count), 0
	for i, v := range losses {
		if known[i] != multilabel.Unknown {
			out[i/t.Count] += v
			n++
		}
	}
	floats.Scale(float64(len(out))/float64(max(n, 1)), out)
	return out
}

// Likelihoods returns a likelihood for each known label. The likelihoods of the average are the averages of the
// members' likelihoods. Labels of one example are correlated, so an error that treats them as separate examples is too
// small.
func (t labels) Likelihoods(outcomes []float64, of target.Target) (out []float64) {
	has, lacks := t.columns(outcomes, 0), t.columns(outcomes, 1)
	for i, v := range of.Values {
		switch v {
		case 1:
			out = append(out, has[i])
		case 0:
			out = append(out, lacks[i])
		}
	}
	return out
}

func (t labels) Uncertainties() []Uncertainty {
	sum := func(values []float64) []float64 { return multilabel.Sums(values, t.Count) }
	return []Uncertainty{
		{Key: "entropy", Name: "entropy", Of: func(o, _ []float64) []float64 { return sum(t.entropies(o)) }},
		{Key: "mutual_information", Name: "mutual information", Members: true, Of: func(o, _ []float64) []float64 {
			return sum(multilabel.MutualInformation(t.columns(o, 0), t.columns(o, 2)))
		}},
	}
}

func (t labels) entropies(outcomes []float64) []float64 {
	p := t.columns(outcomes, 0)
	for i, q := range t.columns(outcomes, 1) {
		p[i] = min(p[i], q)
	}
	return multilabel.PredictiveEntropy(p)
}

// Divergence returns a sum over labels. Each label counts as two classes.
func (t labels) Divergence(a, b []float64) float64 {
	return float64(t.Count) * calibrate.Divergence(t.Pairs(a), t.Pairs(b), 2)
}

// Pairs implements [Paired].
func (t labels) Pairs(outcomes []float64) []float64 {
	q, p := t.columns(outcomes, 1), t.columns(outcomes, 0)
	out := make([]float64, 0, 2*len(p))
	for i := range p {
		out = append(out, q[i], p[i])
	}
	return out
}

// FromPairs implements [Paired].
func (t labels) FromPairs(pairs []float64) []float64 {
	out := make([]float64, len(pairs)/2/t.Count*t.width())
	for i := 0; i < len(pairs); i += 2 {
		row := out[i/2/t.Count*t.width():]
		row[t.Count+i/2%t.Count], row[i/2%t.Count] = pairs[i], pairs[i+1]
	}
	return out
}

func (t labels) Columns(want RowOptions) []Column {
	each := []int{t.Count}
	list := []Column{
		{Name: "labels", Cell: "label_%d", Kind: Class, Shape: each, Hidden: !want.Target, Target: true},
		{Name: "predictive_entropy"},
		{Name: "expected_entropy"},
		{Name: "mutual_information"},
		{Name: "probabilities", Cell: "probability_%d", Shape: each},
		{Name: "entropies", Cell: "entropy_%d", Shape: each},
		{Name: "mutual_informations", Cell: "mutual_information_%d", Shape: each},
		{Name: "complements", Shape: each, Hidden: true},
	}
	if want.Members > 0 {
		list = append(list, Column{
			Name: "member_probabilities", Cell: "member_%d_probability_%d", Kind: Float32, Shape: []int{want.Members, t.Count},
		})
	}
	return list
}

// Values appends a row. The predictive entropies are computed from the calibrated averages. The other values are
// computed from the uncalibrated members.
func (t labels) Values(dst []float64, want RowOptions, a Average, label target.Target) []float64 {
	for k := range t.Count {
		v := float64(target.Unknown)
		if label.Width == t.Count {
			v = label.Values[k]
		}
		dst = append(dst, v)
	}
	p, q, h := t.parts(a.Outcome)
	mutual := multilabel.MutualInformation(p, h)
	expected, total := multilabel.Sums(h, t.Count)[0], multilabel.Sums(mutual, t.Count)[0]
	if a.Calibrate != nil {
		a.Calibrate(a.Outcome)
	}
	entropies := t.entropies(a.Outcome)
	dst = append(dst, multilabel.Sums(entropies, t.Count)[0], expected, total)
	dst = slices.Concat(dst, p, entropies, mutual, q)
	if want.Members > 0 {
		for one := range slices.Chunk(a.Members, t.width()) {
			for _, v := range one[:t.Count] {
				dst = append(dst, float64(v))
			}
		}
	}
	return dst
}

func (t labels) Shown(outcomes []float64) ([]float64, int) { return t.columns(outcomes, 0), t.Count }

// labelReducer implements [Reducer] for labels. It keeps 24 bytes for each label.
type labelReducer struct {
	t    labels
	opts EvaluateOptions
	all  multilabel.Predictions
}

func (t labels) NewReducer(opts EvaluateOptions) Reducer {
	return &labelReducer{t: t, opts: opts, all: multilabel.Predictions{Labels: t.Count}}
}

func (e *labelReducer) Add(outcome []float64, target target.Target, _ string) error {
	if target.Width != e.t.Count {
		return e.t.CheckLabel(target)
	}
	p, q, _ := e.t.parts(outcome)
	of := known(target)
	if err := multilabel.CheckRow(p, q, of); err != nil {
		return err
	}
	e.add(p, q, of)
	return nil
}

func (e *labelReducer) add(p, q []float64, known []int) {
	e.all.Probs, e.all.Complements, e.all.Targets = append(e.all.Probs, p...), append(e.all.Complements, q...),
		append(e.all.Targets, known...)
}

func (e *labelReducer) AddRow(values []float64, _ int, _ []byte, _ string) bool {
	n := e.t.Count
	target := target.Target{Values: values[:n], Width: n}
	if !slices.ContainsFunc(target.Values, func(v float64) bool { return v >= 0 }) {
		return false
	}
	probs := values[n+3:]
	e.add(probs[:n], probs[3*n:4*n], known(target))
	return true
}

func (e *labelReducer) Merge(other Reducer) {
	o := other.(*labelReducer).all
	e.add(o.Probs, o.Complements, o.Targets)
}

func (e *labelReducer) Metrics() []Metric { return metrics(labelMeasures) }

func (e *labelReducer) Losses() []Loss {
	if e.opts.NoLosses {
		return nil
	}
	return []Loss{
		{"nll", "NLL", e.t.perExample(multilabel.NegLogLikelihoods(e.all), e.all.Targets)},
		{"brier", "Brier score", e.t.perExample(multilabel.Briers(e.all), e.all.Targets)},
	}
}

func (e *labelReducer) Evaluation() *Evaluation {
	m := multilabel.Evaluate(e.all, e.opts.ECE)
	r := &result{Metrics: calibrate.Metrics{NLL: m.NLL, Brier: m.Brier}, labels: m}
	out := &Evaluation{Scores: r.scores(labelMeasures, e.opts.MainOnly), Losses: e.Losses(), Warnings: m.Warnings}
	if n := len(e.all.Targets); m.Known < n {
		out.Warnings = append(out.Warnings,
			fmt.Errorf("%d of %d labels are not known: scores and differences are means over those known", n-m.Known, n))
	}
	return out
}

func (t labels) Calibrators() []Calibrator {
	return calibrators(func(m *method, c *Calibrator) {
		if m.labels == nil {
			return
		}
		c.Fit = func(outcomes []float64, of target.Target) (*Calibration, error) {
			return t.FitLogs(m.Method, t.logOdds(outcomes), of)
		}
		c.Columns = []Metric{
			{Key: "nll", Header: "NLL" + m.header, Digits: 4},
			{Key: "ece_macro", Header: "macro ECE" + m.header, Digits: 4, Optional: true},
		}
	})
}

// logOdds returns the log-odds of averaged probabilities, n×Count.
func (t labels) logOdds(outcomes []float64) []float64 {
	return multilabel.LogOdds(t.columns(outcomes, 0), t.columns(outcomes, 1))
}

func (t labels) FitLogs(by Method, logOdds []float64, of target.Target) (*Calibration, error) {
	if of.Width != t.Count {
		return nil, t.CheckLabel(of)
	}
	return by.method().labels(t, logOdds, of)
}

// Apply calibrates the log-odds of each label: z/T, or w·z + b. The entropies of the members do not change.
func (t labels) Apply(dst []float64, c *Calibration, outcomes []float64) []float64 {
	if dst == nil {
		dst = make([]float64, len(outcomes))
	}
	copy(dst, outcomes)
	t.store(dst, t.Scaled(c, t.logOdds(outcomes)))
	return dst
}

func (t labels) ApplyLogs(c *Calibration, logOdds []float64) []float64 {
	dst := make([]float64, len(logOdds)/t.Count*t.width())
	t.store(dst, t.Scaled(c, logOdds))
	return dst
}

func (t labels) FitParts(Method, []float64, target.Target) (func(rows []int) *Calibration, error) {
	return nil, nil
}

func (t labels) Scaled(c *Calibration, logOdds []float64) []float64 {
	return c.program().logits(logOdds, 0)
}

// store stores the probabilities of log-odds z and their complements in outcomes. z is changed.
func (t labels) store(outcomes, z []float64) {
	p := multilabel.Sigmoid(z)
	floats.Scale(-1, z)
	q := multilabel.Sigmoid(z)
	for i := range len(outcomes) / t.width() {
		copy(outcomes[i*t.width():], p[i*t.Count:][:t.Count])
		copy(outcomes[i*t.width()+t.Count:], q[i*t.Count:][:t.Count])
	}
}

func (t labels) Logs(outcomes, logits []float64) []float64 {
	out, p, q := t.logOdds(outcomes), t.columns(outcomes, 0), t.columns(outcomes, 1)
	for i, z := range logits {
		if min(p[i], q[i]) < leastNormal {
			out[i] = z
		}
	}
	return out
}

func (t labels) LogLosses(logOdds []float64, of target.Target) []float64 {
	targets := known(of)
	return t.perExample(multilabel.LogOddsLosses(logOdds, targets), targets)
}

// Say implements [Fusable].
func (t labels) Say(g Graph, scores string) MemberOutcome {
	switch t.form() {
	case LogProbabilities:
		scores = g.Op("Exp", scores)
		fallthrough
	case Probabilities:
		scores = t.bounded(g, scores)
		return MemberOutcome{Outcome: scores, Complement: g.Op("Sub", g.Constant([]float32{1}, 1, 1), scores)}
	}
	return MemberOutcome{Outcome: g.Op("Sigmoid", scores), Complement: g.Op("Sigmoid", g.Op("Neg", scores))}
}

// Fuse implements [Fusable].
func (t labels) Fuse(g Graph, outcomes []MemberOutcome, weights []float64, by *Calibration) []Output {
	j := fusing{g, weights}
	var probs, complements []string
	for _, s := range outcomes {
		probs, complements = append(probs, s.Outcome), append(complements, s.Complement)
	}
	p, q := j.average(probs), j.average(complements)
	mutual := j.Op("Add", j.divergences(probs, p, t.Count), j.divergences(complements, q, t.Count))
	if by != nil {
		z := by.program().graph(j, j.Op("Sub", j.finiteLog(p), j.finiteLog(q)))
		p, q = j.Op("Sigmoid", z), j.Op("Sigmoid", j.Op("Neg", z))
	}
	entropy := j.Op("Neg", j.Sum(j.Op("Add", j.Op("Mul", p, j.logOf(p)), j.Op("Mul", q, j.logOf(q)))))
	return []Output{{"prob", p, t.Count}, {"entropy", entropy, 1}, {"mutual_information", j.Op("Relu", mutual), 1}}
}
