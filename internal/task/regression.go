package task

import (
	"fmt"
	"math"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// RegressionSpec is what the graph of a regression does not tell.
type RegressionSpec struct {
	// Head is the form of the second half of the scores. The first half holds the means of the targets. "" says that
	// all scores are means.
	Head regression.VarianceHead
	// Units convert the network's units to those of the targets. There is one for each target or one for all. nil
	// says that both are the same.
	Units []regression.Units
	// Noise is the standard deviation of each target, or of all, about its mean, in the targets' units. It is for
	// networks without a head. nil says that it must be fitted: see [Missing].
	Noise []float64
}

// regressionTask is the task of networks that give the means of targets, or their means and variances. An outcome has the
// mean μ, μ² and the variance v of each target, in the network's units. The averages of these give the moments of a
// mixture of members.
type regressionTask struct {
	described
	OutputSpec
	targets int
}

// perTarget is how many numbers of an outcome a target has.
const perTarget = 3

func newRegression(s OutputSpec) (Task, bool, error) {
	if err := contradiction("regression", s); err != nil {
		return nil, false, err
	}
	t := regressionTask{OutputSpec: s, targets: s.Count}
	n := t.numbers()
	if n.Head != "" {
		if s.Count%2 != 0 {
			return nil, false, fmt.Errorf("tensor %q: %d numbers, want an even one: the means, then as many variances (%s)", s.Output,
				s.Count, setting.Targets.With("head=variance"))
		}
		t.targets = s.Count / 2
	}
	t.describe()
	for what, given := range map[string]int{"units": len(n.Units), "the noise": len(n.Noise)} {
		if given > 1 && given != t.targets {
			return nil, false, fmt.Errorf("tensor %q: %s, and %s of %d", s.Output, t.about.Size, what, given)
		}
	}
	return t, s.Count > 0, nil
}

func (t *regressionTask) describe() {
	size, what := fmt.Sprintf("%d targets", t.targets), "a mean for each"
	if t.targets == 1 {
		size = "1 target"
	}
	if t.lacksNoise() {
		what += ", of noise that is to be fitted"
	}
	if head := t.numbers().Head; head != "" {
		what = fmt.Sprintf("a mean and a variance (%s) for each", head)
	}
	t.about = &About{"regression", fmt.Sprintf("output %q: %s, %s", t.Output, size, what), size, t.width(), 0}
}

func (t regressionTask) width() int { return perTarget * t.targets }

func (t regressionTask) numbers() RegressionSpec {
	if t.Regression == nil {
		return RegressionSpec{}
	}
	return *t.Regression
}

// elementFor returns the element for target k. A list with one element is for all targets.
func elementFor[T any](given []T, k int, none T) T {
	switch len(given) {
	case 0:
		return none
	case 1:
		return given[0]
	}
	return given[k]
}

// UnitsOf returns the units of target k.
func (s RegressionSpec) UnitsOf(k int) regression.Units {
	return elementFor(s.Units, k, regression.Units{Std: 1})
}

func (t regressionTask) units(k int) regression.Units { return t.numbers().UnitsOf(k) }

func (t regressionTask) CheckLabel(label target.Target) error {
	if label.Width != t.targets {
		return &TargetsError{Have: label.Width, Want: t.targets}
	}
	return target.Numbers.Check(label.Values)
}

// TargetsError says that examples have another number of targets than the network predicts.
type TargetsError struct{ Have, Want int }

func (e *TargetsError) Error() string {
	return fmt.Sprintf("%d targets, want %d, the means that the network gives for an example", e.Have, e.Want)
}

// Hints says what the outputs may be instead of means.
func (e *TargetsError) Hints() []string {
	if e.Have != 1 {
		return nil
	}
	hints := []string{"are the outputs quantiles of one target? No task takes these: export the median alone, and fit again with " +
		setting.Both(setting.Task.With("regression"), setting.Targets.With("head=none"))}
	if e.Want == 2 {
		hints = append(hints, "are they a mean and a variance? Fit again with "+
			setting.Targets.With("head=variance")+", or with the head that it is: log-variance, softplus, std, log-std, softplus-std")
	}
	return hints
}

// Outcome returns the differential entropy of the Gaussians, in the network's units; 0
// where their variance is not known, and is 0 in the outcome.
func (t regressionTask) Outcome(dst []float64, scores []float32) (entropy float64, err error) {
	n := t.numbers()
	for k := range t.targets {
		mean, variance := float64(scores[k]), 0.0
		if mean-mean != 0 {
			return 0, fmt.Errorf("the network's output is not finite: target %d has %v", k, mean)
		}
		if n.Head != "" {
			if variance, err = n.Head.Variance(float64(scores[t.targets+k])); err != nil {
				return 0, fmt.Errorf("the network's output for target %d: %w", k, err)
			}
		} else {
			variance = ownVariance(t, k)
		}
		o := dst[perTarget*k:]
		o[0], o[1], o[2] = mean, mean*mean, variance
		if variance > 0 {
			entropy += gaussianEntropy(variance)
		}
	}
	return entropy, nil
}

// ownVariance returns that of target k without a head, in the network's units.
func ownVariance(t regressionTask, k int) float64 {
	std := elementFor(t.numbers().Noise, k, 0) / t.units(k).Std
	return std * std
}

func gaussianEntropy(variance float64) float64 { return (1 + math.Log(2*math.Pi*variance)) / 2 }

// Moments implements [Targeted].
func (t regressionTask) Moments(outcome []float64, k int) regression.Moments {
	o := outcome[perTarget*k:]
	return t.units(k).Moments(regression.MomentsOf(o[0], o[1], o[2]))
}

// FromMoments implements [Targeted].
func (t regressionTask) FromMoments(moments []regression.Moments) (out []float64) {
	for _, m := range moments {
		out = append(out, m.Mean, m.Mean*m.Mean+m.Epistemic, m.Aleatoric)
	}
	return out
}

// scores judge n averaged outcomes: n × targets.
func (t regressionTask) scores(outcomes []float64, known target.Target) []regression.Score {
	out := make([]regression.Score, len(known.Values))
	for i, y := range known.Values {
		out[i] = t.Moments(outcomes[i/t.targets*t.width():], i%t.targets).Score(y)
	}
	return out
}

// Likelihoods are the densities of the Gaussians with the moments of the outcomes, none
// without noise. Those of an average are not the averages of theirs.
func (t regressionTask) Likelihoods(outcomes []float64, known target.Target) (out []float64) {
	for _, v := range t.LogLikelihoods(outcomes, known) {
		out = append(out, math.Exp(v))
	}
	return out
}

// LogLikelihoods implements [Targeted].
func (t regressionTask) LogLikelihoods(outcomes []float64, known target.Target) (out []float64) {
	if t.noiseless(outcomes) {
		return nil
	}
	for _, s := range t.scores(outcomes, known) {
		out = append(out, s.Gaussian.LogLikelihood)
	}
	return out
}

func (t regressionTask) Uncertainties() []Uncertainty {
	// root returns the root mean square of a part over all targets, in the network's units.
	root := func(part func(regression.Moments) float64) func(outcomes, _ []float64) []float64 {
		return func(outcomes, _ []float64) []float64 {
			out := make([]float64, len(outcomes)/t.width())
			for i := range out {
				for k := range t.targets {
					o := outcomes[i*t.width()+perTarget*k:]
					out[i] += part(regression.MomentsOf(o[0], o[1], o[2])) / float64(t.targets)
				}
				out[i] = math.Sqrt(out[i])
			}
			return out
		}
	}
	return []Uncertainty{
		{
			Key:   "std",
			Name:  "standard deviation",
			Of:    root(regression.Moments.Variance),
			Label: "standard deviation, in the network's units",
			Bins:  detect.LogarithmicEdges,
		},
		{Key: "epistemic_std", Name: "epistemic standard deviation", Members: true, Of: root(func(m regression.Moments) float64 {
			return m.Epistemic
		})},
	}
}

// Divergence is half the Jeffreys divergence of Gaussians, summed over targets; NaN without
// noise.
func (t regressionTask) Divergence(a, b []float64) (mean float64) {
	if t.noiseless(a) || t.noiseless(b) {
		return math.NaN()
	}
	n := float64(len(a) / t.width())
	for i := 0; i < len(a); i += perTarget {
		p, q := regression.MomentsOf(a[i], a[i+1], a[i+2]), regression.MomentsOf(b[i], b[i+1], b[i+2])
		v, w, d := p.Variance(), q.Variance(), p.Mean-q.Mean
		mean += (v/w + w/v - 2 + d*d*(1/v+1/w)) / 4 / n
	}
	return mean
}

// each is the column of a number for each target.
func (t regressionTask) each(name string) Column {
	if t.targets == 1 {
		return Column{Name: name}
	}
	return Column{Name: name, Cell: name + "_%d", Shape: []int{t.targets}}
}

// Columns are in the targets' units. An interval holds 95 %: of the mixture where its
// members are kept, else of the Gaussian with its moments. Without noise there are means
// and what comes of members differing.
func (t regressionTask) Columns(want RowOptions) []Column {
	known := t.each("target")
	known.Target, known.Hidden = true, !want.Target
	interval := "gaussian"
	if want.Members > 0 {
		interval = "mixture"
	}
	list := []Column{known, t.each("mean"), t.each("std"), t.each("aleatoric_std"), t.each("epistemic_std"), t.each(interval + "_low"),
		t.each(interval + "_high"),
		{Name: "marks", Shape: []int{t.targets, 3}, Hidden: true}}
	for _, name := range []string{"member_mean", "member_std"} {
		if want.Members == 0 {
			break
		}
		c := Column{Name: name, Cell: strings.Replace(name, "_", "_%d_", 1), Kind: Float32, Shape: []int{want.Members}}
		if t.targets > 1 {
			c.Cell, c.Shape = c.Cell+"_%d", append(c.Shape, t.targets)
		}
		list = append(list, c)
	}
	return t.hide(list)
}

// mixture is what members say of target k, in its units.
func (t regressionTask) mixture(a Average, k int, s regression.VarianceScaling) regression.Mixture {
	m := regression.Mixture{Weights: a.Weights}
	for at := perTarget * k; at < len(a.Members); at += t.width() {
		m.Means, m.Variances = append(m.Means, float64(a.Members[at])), append(m.Variances, float64(a.Members[at+2]))
	}
	if s.Factor != 1 {
		m = s.Mixture(m)
	}
	return t.units(k).Mixture(m)
}

// Values appends a row. What calibrates an average scales both parts of its variance, and
// draws out the mixture likewise; members themselves are as they are.
func (t regressionTask) Values(dst []float64, want RowOptions, a Average, label target.Target) []float64 {
	scaling := t.factors(a)
	nan := math.NaN()
	columns := make([][]float64, 8)
	for k := range t.targets {
		y := nan
		if label.Width == t.targets {
			y = label.Values[k]
		}
		m := t.Moments(a.Outcome, k)
		if t.lacksNoise() {
			m.Aleatoric = nan
		}
		score := m.Score(y)
		low, high, marks := score.Gaussian.Low, score.Gaussian.High, regression.Marks{LogLikelihood: nan, CRPS: nan, PIT: nan}
		if want.Members > 0 && !t.lacksNoise() {
			mixture := t.mixture(a, k, scaling[k])
			low, high = mixture.Interval(regression.Level)
			if y == y {
				marks = regression.Marks{LogLikelihood: mixture.LogDensity(y), CRPS: mixture.CRPS(y), PIT: mixture.CDF(y)}
			}
		}
		for i, v := range []float64{y, m.Mean, m.Std(), math.Sqrt(m.Aleatoric), math.Sqrt(m.Epistemic), low, high} {
			columns[i] = append(columns[i], v)
		}
		columns[7] = append(columns[7], marks.LogLikelihood, marks.CRPS, marks.PIT)
	}
	for _, c := range columns {
		dst = append(dst, c...)
	}
	for part := range 2 {
		for at := 0; at < len(a.Members) && want.Members > 0; at += perTarget {
			u := t.units(at / perTarget % t.targets)
			if part == 0 {
				dst = append(dst, u.Target(float64(a.Members[at])))
			} else {
				dst = append(dst, u.Std*math.Sqrt(float64(a.Members[at+2])))
			}
		}
	}
	return dst
}

// Shown are means and standard deviations, in the targets' units.
func (t regressionTask) Shown(outcomes []float64) (values []float64, width int) {
	for i := 0; i < len(outcomes); i += t.width() {
		for k := range t.targets {
			values = append(values, t.Moments(outcomes[i:], k).Mean)
		}
		for k := range t.targets {
			values = append(values, t.Moments(outcomes[i:], k).Std())
		}
	}
	return values, 2 * t.targets
}

// check refuses what cannot be judged.
func (t regressionTask) check(outcomes []float64, known target.Target) error {
	if err := t.checkTarget(outcomes, known); err != nil {
		return err
	}
	if t.noiseless(outcomes) {
		return ErrNoNoise
	}
	return nil
}

// checkTarget refuses targets that do not fit the outcomes.
func (t regressionTask) checkTarget(outcomes []float64, known target.Target) error {
	if n := len(outcomes) / t.width(); known.Width != t.targets || known.Len() != n || n == 0 {
		return fmt.Errorf("%d targets of %d examples, want %d of %d", known.Width, known.Len(), t.targets, n)
	}
	return target.Numbers.Check(known.Values)
}

func (t regressionTask) Calibrators() []Calibrator {
	return calibrators(func(m *method, c *Calibrator) { c.Fit = t.fit(m) })
}

// fit returns the fit of a method. Only noise is fitted to outcomes without any.
func (t regressionTask) fit(m *method) Fit {
	if m.numbers == nil {
		return nil
	}
	return func(outcomes []float64, known target.Target) (*Calibration, error) {
		check := t.check
		if m.Completes {
			check = t.checkTarget
		}
		if err := check(outcomes, known); err != nil {
			return nil, err
		}
		return m.numbers(t, outcomes, known)
	}
}

// Apply multiplies both parts of the variance by the factor of the target, or adds noise.
func (t regressionTask) Apply(dst []float64, c *Calibration, outcomes []float64) []float64 {
	if dst == nil {
		dst = make([]float64, len(outcomes))
	}
	for i := 0; i < len(outcomes); i += perTarget {
		k := i / perTarget % t.targets
		if c.NoiseStd != nil {
			std := c.NoiseStd[k] / t.units(k).Std
			dst[i], dst[i+1], dst[i+2] = outcomes[i], outcomes[i+1], std*std
			continue
		}
		m := regression.VarianceScaling{Factor: c.Factor(k)}.Moments(regression.MomentsOf(outcomes[i], outcomes[i+1], outcomes[i+2]))
		dst[i], dst[i+1], dst[i+2] = m.Mean, m.Mean*m.Mean+m.Epistemic, m.Aleatoric
	}
	return dst
}

// factors lets an average be calibrated, and returns the factor of the variance of each target.
func (t regressionTask) factors(a Average) []regression.VarianceScaling {
	out := make([]regression.VarianceScaling, t.targets)
	for k := range out {
		out[k].Factor = t.Moments(a.Outcome, k).Variance()
	}
	if a.Calibrate != nil {
		a.Calibrate(a.Outcome)
	}
	for k := range out {
		if after := t.Moments(a.Outcome, k).Variance(); after == out[k].Factor {
			out[k].Factor = 1
		} else {
			out[k].Factor = after / out[k].Factor
		}
	}
	return out
}
