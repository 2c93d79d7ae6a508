package task

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Method is a way to calibrate averaged outcomes: see [Methods]. Its value is its name in flags and files.
type Method string

// OneNumber stands for the first calibrator of a task, which fits a single number.
const OneNumber Method = "one number"

// Recalibration stands for the calibrator of a task that maps distribution functions, if it has one.
const Recalibration Method = "recalibration"

// Calibration is a fitted way to calibrate averaged outcomes. Ensembles store it as JSON. The fields that the method
// does not use are empty.
type Calibration struct {
	Method      Method  `json:"method"`
	Temperature float64 `json:"temperature,omitempty"`
	// Scale and Bias have a number for each class or label.
	Scale []float64 `json:"scale,omitempty"`
	Bias  []float64 `json:"bias,omitempty"`
	// Uniform is the share of the uniform distribution that structured scaling mixes in. Matrix takes the place of the scales, and
	// has a row for each class.
	Uniform float64   `json:"uniform,omitempty"`
	Matrix  []float64 `json:"matrix,omitempty"`
	// Coefficients are those of quadratic scaling, the constant first.
	Coefficients []float64 `json:"coefficients,omitempty"`
	// VennAbers is a step function of log-odds.
	VennAbers *calibrate.VennAbers `json:"venn_abers,omitempty"`
	// Factors multiply the variances: one number for each target, or one for all.
	Factors []float64 `json:"factors,omitempty"`
	// NoiseStd holds the standard deviation of each target about its mean, in the targets' units.
	NoiseStd []float64              `json:"noise_std,omitempty"`
	Maps     []*regression.Isotonic `json:"maps,omitempty"` // a map for each target
	// Shares corrects the calibrated probabilities of classes for other shares of the classes. It is nil for those of training.
	Shares *Shares `json:"shares,omitempty"`

	// Error is the standard error of the temperature of a text, because it is fitted to one in several tokens. It is 0 if
	// all take part.
	Error float64 `json:"-"`
	// Unseen has the first loss of each example of the fit, for a fit without it. It is nil where the fit does not compute that.
	Unseen []float64 `json:"-"`
	// Undetermined is the reason why the examples do not determine the fitted numbers, or "". Then they only show a direction.
	// Tables show them, and nothing else uses them: no recommendation, no ensemble and no cross-fit.
	Undetermined string `json:"undetermined,omitempty"`
	// Contradicted reports that the predictions do not fit the labels: see [calibrate.Temperature].
	Contradicted bool `json:"-"`
	// Warnings are reasons not to take the fit at face value.
	Warnings []error `json:"-"`
}

// Fit fits to the outcomes of labelled examples, n×Width.
type Fit func(outcomes []float64, labels target.Target) (*Calibration, error)

// Calibrator fits calibrations of a task. The first calibrator of a task fits a single number.
type Calibrator struct {
	Method
	Name string // follows the name of a method of prediction, such as "Temp"
	// Words is its name in a sentence. Symbol is the symbol of the fitted numbers.
	Words, Symbol string
	// Note explains its tables.
	Note string
	// Columns are the metrics that tables show for predictions with this calibration.
	Columns []Metric
	// Unlisted calibrators are left out where methods are compared. Of these, comparisons try those with Tried by cross-validation.
	Unlisted, Tried bool
	// Completes says that it fits what networks leave open: without it, outcomes have no likelihood. The model card stores it.
	Completes bool
	// Intervals says that it maps a distribution function: only intervals change, no density is left, and no ensemble stores it.
	Intervals bool
	// Squared says that the number is the square of the factor by which predictions become wider.
	Squared bool
	Fit     Fit
	// FitMembers, if not nil, is Fit to the distributions of members instead of the moments of their average. mixture returns that of
	// target k of example i. Its variances are 0 if there is no noise.
	FitMembers func(known target.Target, mixture func(i, k int) regression.Mixture) (*Calibration, error)
	// CrossFits, if not nil, is [CrossFits] of the calibrator, with less work.
	CrossFits func(outcomes []float64, labels target.Target, seed uint64) (calibrate.CrossFitted, error)
}

// Find returns the calibrator of the task for the method. ok is false if the task has none.
func Find(t Task, by Method) (c Calibrator, ok bool) {
	all := t.Calibrators()
	if by == OneNumber {
		return all[0], true
	}
	i := slices.IndexFunc(all, func(c Calibrator) bool { return c.Method == by || c.Intervals && by == Recalibration })
	if i < 0 {
		return c, false
	}
	return all[i], true
}

// String names the fitted numbers, such as "T = 1.23".
func (c *Calibration) String() string {
	var parts []string
	if text := c.method().text; text != nil {
		parts = append(parts, text(c))
	}
	parts = append(parts, c.numbers()...)
	if s := c.Shares; s != nil {
		parts = append(parts, s.String())
	}
	return strings.Join(parts, ", ")
}

// numbers names the fitted numbers of methods without a text of their own.
func (c *Calibration) numbers() (parts []string) {
	if c.method().text != nil {
		return nil
	}
	add := func(name string, values ...float64) {
		if len(values) > 0 {
			parts = append(parts, numbered(name, values...))
		}
	}
	if c.Temperature != 0 {
		add("T", c.Temperature)
	}
	add("scales", c.Scale...)
	add("matrix", c.Matrix...)
	add("biases", c.Bias...)
	add("s²", c.Factors...)
	add("noise", c.NoiseStd...)
	return parts
}

// Factor returns the factor of the variance of target k, or 1 without one.
func (c *Calibration) Factor(k int) float64 { return elementFor(c.Factors, k, 1) }

// Number returns the single fitted number of a method that has one. The number of noise is a factor of its variance.
func (c *Calibration) Number() (v float64, ok bool) {
	switch m := c.method(); {
	case m.number == nil:
		return 0, false
	case m.Completes:
		return 1, true
	case c.Factors != nil:
		return c.Factors[0], true
	}
	return c.Temperature, true
}

// Norm returns the root of the sum of squares of the fitted numbers. Two fits of one method have different norms.
func (c *Calibration) Norm() float64 {
	norm := math.Hypot(c.Temperature, c.Uniform)
	for _, numbers := range [][]float64{c.Scale, c.Bias, c.Matrix, c.Coefficients, c.Factors, c.NoiseStd} {
		norm = math.Hypot(norm, floats.Norm(numbers, 2))
	}
	return norm
}

// With returns the calibration with another number; see [Calibration.Number].
func (c *Calibration) With(v float64) *Calibration { return c.method().number(c, v) }

// Identity reports whether the calibration changes nothing: a temperature or factor of 1.
func (c *Calibration) Identity() bool {
	v, ok := c.Number()
	return ok && v == 1 && !c.method().Completes && c.Shares == nil
}

// Sound returns an error unless the calibration can be applied to outcomes of some task. Call it for calibrations that
// were read from a file.
func (c *Calibration) Sound() error {
	if c.Shares != nil {
		if err := c.Shares.sound(); err != nil {
			return fmt.Errorf("calibration %q: %w", c.Method, err)
		}
	}
	err := c.program().check()
	switch m := c.method(); {
	case m.number != nil && len(c.Factors) > 1:
		err = bad("factors", len(c.Factors), "one")
	case m.Intervals:
		err = bad("a map", "of distributions", "factors of variances, which an ensemble can carry")
	}
	for what, values := range map[string][]float64{"number": c.Scale, "bias": c.Bias, "element": c.Matrix, "coefficient": c.Coefficients} {
		for _, v := range values {
			if v-v != 0 {
				err = bad(what, v, "a finite number")
			}
		}
	}
	if err != nil {
		return fmt.Errorf("calibration %q: %w", c.Method, err)
	}
	return nil
}

// Check returns an error unless the calibration is [Calibration.Sound] and fits outcomes of the task.
func (c *Calibration) Check(t Task) error {
	if err := c.Sound(); err != nil {
		return err
	}
	if s := c.Shares; s != nil {
		if err := s.check(t); err != nil {
			return err
		}
		if c.Method == Unchanged {
			return nil
		}
	}
	t = OnePosition(t)
	if _, ok := Find(t, c.Method); !ok {
		return fmt.Errorf("calibration %q: is not for the task %s", c.Method, t.About().Name)
	}
	want := t.About().Classes
	if want == 0 {
		want = t.About().Width / perTarget
	}
	if have := c.size(); have != want && c.method().number == nil {
		return fmt.Errorf("calibration %q: for %d, and the networks have %s", c.Method, have, t.About().Size)
	}
	return nil
}

// Fitted holds the calibrations of one calibrator: one for all examples, or one for each fold of them.
type Fitted struct {
	By    Calibrator
	Each  []*Calibration
	Folds [][]int // the examples that each calibrates; nil if one calibrates all
}

// CrossFitted reports whether each example was calibrated by a fit without it.
func (f *Fitted) CrossFitted() bool { return f.Folds != nil }

// Single returns the calibration of all examples, or nil if there are several.
func (f *Fitted) Single() *Calibration {
	if f == nil || len(f.Each) != 1 {
		return nil
	}
	return f.Each[0]
}

// Undetermined returns the reason of the first fit that is not determined, or "". It is "" for nil. See [Calibration].
func (f *Fitted) Undetermined() string {
	if f == nil {
		return ""
	}
	for _, c := range f.Each {
		if c.Undetermined != "" {
			return c.Undetermined
		}
	}
	return ""
}

// Contradicted reports whether the predictions do not fit the labels. It is false for nil.
func (f *Fitted) Contradicted() bool {
	return f != nil && slices.ContainsFunc(f.Each, func(c *Calibration) bool { return c.Contradicted })
}

// Doubts returns the reasons not to take the numbers at face value.
func (c *Calibration) Doubts() []error {
	if c.Undetermined == "" {
		return c.Warnings
	}
	return append([]error{&UndeterminedError{c.Undetermined}}, c.Warnings...)
}

// UndeterminedError says that a fit is not determined.
type UndeterminedError struct{ Reason string }

func (e *UndeterminedError) Error() string {
	return "the fit is not determined: " + e.Reason + ". It may make predictions of other examples worse, so nothing uses it"
}

// Outside returns the reason why no fit may have given the numbers, or "": a temperature or a factor at its bounds or beyond.
func (c *Calibration) Outside() string {
	m, numbers := c.method(), c.Factors
	if numbers == nil {
		numbers = []float64{c.Temperature}
	}
	for _, v := range numbers {
		if m.most != 0 && !(v > m.least && v < m.most) {
			return fmt.Sprintf("%g is not between %g and %g, the bounds of a fit", v, m.least, m.most)
		}
	}
	return ""
}

// Numbers returns the numbers of each fit in a table cell, or "" for methods without a single number.
func (f *Fitted) Numbers() string {
	var out []string
	for _, v := range f.Values() {
		out = append(out, ShortNumber(v))
	}
	return strings.Join(out, ", ")
}

// ShortNumber formats a fitted number with two decimals, or more if it is near 0.
func ShortNumber(v float64) string {
	if v > 0 && v < 0.01 {
		return fmt.Sprintf("%.1g", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Values returns the number of each fit. It is nil for methods without a single number.
func (f *Fitted) Values() (list []float64) {
	for _, c := range f.Each {
		if v, ok := c.Number(); ok {
			list = append(list, v)
		}
	}
	return list
}

// Widening returns by which factor each fit makes predictions wider: a temperature, or the root of a factor of variances.
func (f *Fitted) Widening() (list []float64) {
	for _, v := range f.Values() {
		if f.By.Squared {
			v = math.Sqrt(v)
		}
		list = append(list, v)
	}
	return list
}

// Warnings returns the warnings of all fits. A warning of several fits appears once.
func (f *Fitted) Warnings() (list []error) {
	for _, c := range f.Each {
		for _, w := range c.Doubts() {
			if !slices.ContainsFunc(list, func(known error) bool { return known.Error() == w.Error() }) {
				list = append(list, w)
			}
		}
	}
	return list
}

// On fits to labelled outcomes, for use on other examples.
func (c Calibrator) On(outcomes []float64, labels target.Target) (*Fitted, error) {
	one, err := c.Fit(outcomes, labels)
	if err != nil {
		return nil, err
	}
	return &Fitted{By: c, Each: []*Calibration{one}}, nil
}

// Rounded returns the fit with its numbers rounded to five significant digits. Users can then repeat them in commands, and
// get the same bits. The loss changes by less than a billionth.
func (f *Fitted) Rounded() *Fitted {
	round := func(v float64) float64 {
		short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 4, 64), 64) // always a number
		return short
	}
	out := *f
	out.Each = nil
	for _, c := range f.Each {
		each := *c
		each.Temperature, each.Factors, each.NoiseStd = round(c.Temperature), slices.Clone(c.Factors), slices.Clone(c.NoiseStd)
		for _, values := range [][]float64{each.Factors, each.NoiseStd} {
			for i, v := range values {
				values[i] = round(v)
			}
		}
		out.Each = append(out.Each, &each)
	}
	return &out
}

// Apply returns the calibrated outcomes of all examples, n×Width.
func (f *Fitted) Apply(t Task, outcomes []float64) []float64 {
	if f.Folds == nil {
		return t.Apply(nil, f.Each[0], outcomes)
	}
	dst, width := make([]float64, len(outcomes)), t.About().Width
	for k, rows := range f.Folds {
		for _, i := range rows {
			t.Apply(dst[i*width:][:width], f.Each[k], outcomes[i*width:][:width])
		}
	}
	return dst
}

// ByExample returns the calibration of each example.
func (f *Fitted) ByExample() func(i int) *Calibration {
	if f.Folds == nil {
		return func(int) *Calibration { return f.Each[0] }
	}
	fold := map[int]int{}
	for k, rows := range f.Folds {
		for _, i := range rows {
			fold[i] = k
		}
	}
	return func(i int) *Calibration { return f.Each[fold[i]] }
}

// Pick returns the outcomes and the targets of some examples.
func Pick(t Task, outcomes []float64, labels target.Target, rows []int) (picked []float64, some target.Target) {
	for _, i := range rows {
		picked = append(picked, outcomes[i*t.About().Width:][:t.About().Width]...)
	}
	return picked, labels.Pick(rows)
}

// checkRows refuses outcomes and targets that cannot be split into folds.
func checkRows(t Task, outcomes []float64, labels target.Target, folds int) error {
	n := len(outcomes) / t.About().Width
	if labels.Len() != n {
		return fmt.Errorf("%d rows, and labels of %d", n, labels.Len())
	}
	if err := calibrate.CheckFolds(n, labels.Units, folds); err != nil {
		return err
	}
	return t.CheckLabel(labels.At(0))
}

// CrossFit splits the examples at random into folds, and fits a calibration to all folds except one for each fold; see
// [calibrate.CrossFit].
func CrossFit(t Task, by Calibrator, outcomes []float64, labels target.Target, folds int, seed uint64) (*Fitted, error) {
	if err := checkRows(t, outcomes, labels, folds); err != nil {
		return nil, err
	}
	out := &Fitted{By: by, Folds: calibrate.UnitFolds(labels.Units, labels.Len(), folds, seed)}
	err := calibrate.CrossFit(out.Folds, func(rows []int) (*Calibration, error) {
		return by.Fit(Pick(t, outcomes, labels, rows))
	}, func(c *Calibration, _ []int) { out.Each = append(out.Each, c) })
	return out, err
}

// CrossFits measures the gain of a calibration over several random splits into halves; see [calibrate.CrossFits]. The
// calibrator must leave a density, which a map does not.
func CrossFits(t Task, by Calibrator, outcomes []float64, labels target.Target, seed uint64) (calibrate.CrossFitted, error) {
	if err := checkRows(t, outcomes, labels, 2); err != nil {
		return calibrate.CrossFitted{}, err
	}
	if by.CrossFits != nil {
		return by.CrossFits(outcomes, labels, seed)
	}
	return calibrate.CrossFits(labels.Len(), labels.Units, 2, calibrate.Splits, seed, func(rows []int) (*Calibration, error) {
		c, err := by.Fit(Pick(t, outcomes, labels, rows))
		if err == nil && c.Undetermined != "" {
			return nil, nil // it changes nothing
		}
		return c, err
	}, func(c *Calibration, rows []int) float64 { return nllOf(t, c, outcomes, labels, rows) })
}

// nllOf returns the mean NLL of some rows after calibration, in nats. c may be nil.
func nllOf(t Task, c *Calibration, outcomes []float64, labels target.Target, rows []int) float64 {
	picked, some := Pick(t, outcomes, labels, rows)
	if c != nil {
		picked = t.Apply(picked, c, picked)
	}
	return NLL(t, picked, some)
}

// NLL returns the mean of the first loss over the examples, in nats, or NaN if the outcomes have no likelihood.
func NLL(t Task, outcomes []float64, labels target.Target) float64 {
	losses, err := Losses(t, outcomes, labels, EvaluateOptions{})
	if err != nil {
		return math.NaN()
	}
	return stat.Mean(losses[0].Values, nil)
}

// Incomplete is a task whose networks may leave a number open, which must be fitted before outcomes have a likelihood:
// the noise of a regression without a variance head.
type Incomplete interface {
	Task
	// Missing returns the calibrator that fits it, or nil if nothing is missing.
	Missing() *Calibrator
}

// Missing returns the calibrator for what the networks of the task leave open, or nil.
func Missing(t Task) *Calibrator {
	if i, ok := t.(Incomplete); ok {
		return i.Missing()
	}
	return nil
}
