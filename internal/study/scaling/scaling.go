// Package scaling calibrates saved predictions and measures the effect.
//
// A [Scaling] calibrates probabilities of classes, by a temperature or by vector scaling (Guo et al. 2017). A
// [Repair] calibrates labels, by temperatures or Platt scaling, and regressions. Regressions have factors of
// variances, a map of the distribution function, or the noise that networks do not predict.
//
// # Invariants
//
// Scores on the fitting rows are cross-fitted: each row is scored by a fit without it.
package scaling

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
)

// Logits are saved predictions as logarithms of probabilities, whatever form they were saved in.
type Logits struct {
	*predictions.Set
	Z []float64
}

// NewLogits converts saved predictions.
func NewLogits(p *predictions.Set) *Logits {
	if p.Probabilities {
		return &Logits{p, calibrate.LogProbs(nil, p.Values)}
	}
	return &Logits{p, calibrate.LogSoftmax(nil, p.Values, p.Classes, 1)}
}

// Scaling describes a fit to predictions of classes.
type Scaling struct {
	Method    calibrate.Scaler
	Folds     int
	Seed      uint64
	Fit, Test *Logits // Test may be nil
	// By chooses a threshold of two classes on calibrated probabilities, unless Threshold is set. Zero means no
	// threshold.
	By        calibrate.Criterion
	Threshold float64
}

// Result is the outcome of a fit, in the form of its JSON.
type Result struct {
	Fitted *calibrate.Scaling `json:"-"`
	rows   []row

	Kind          string `json:"kind"`
	FormatVersion int    `json:"format_version"`
	Producer      string `json:"producer"`
	Method        string `json:"method"`
	Classes       int    `json:"classes"`

	Temperature float64 `json:"temperature,omitempty"`
	AtBound     bool    `json:"at_bound,omitempty"`

	Scale     []float64 `json:"scale,omitempty"`
	Bias      []float64 `json:"bias,omitempty"`
	Absent    []int     `json:"absent_classes,omitempty"`
	Separated bool      `json:"separated,omitempty"`

	Threshold *threshold `json:"threshold,omitempty"`

	Rows   int    `json:"rows"`
	Source source `json:"predictions"`
	// NLLCrossFitted is the NLL on labels that the fit has not seen. NLLAfter is that on the fitting labels, which is
	// always too low.
	NLLBefore      float64  `json:"nll_before"`
	NLLCrossFitted float64  `json:"nll_cross_fitted"`
	NLLAfter       float64  `json:"nll_after"`
	Folds          int      `json:"folds"`
	Seed           uint64   `json:"seed"`
	Scores         []scores `json:"scores"`
	Warnings       []string `json:"warnings"`
}

// source identifies a file of predictions.
type source struct {
	Path          string `json:"path"`
	SHA256        string `json:"sha256"`
	Rows          int    `json:"rows"`
	LeftOut       int    `json:"left_out"`
	Probabilities bool   `json:"probabilities"` // false means logits
}

// scores are the numbers in a line of the table; null means not finite.
type scores struct {
	Name         string      `json:"name"`
	Accuracy     *float64    `json:"accuracy"`
	NLL          *float64    `json:"nll"`
	ECE          *float64    `json:"ece"`
	ECE15        *float64    `json:"ece_equal_width_15"`
	Brier        *float64    `json:"brier"`
	ClasswiseECE *float64    `json:"classwise_ece"`
	AURC         *float64    `json:"aurc"`
	SetLevel     *float64    `json:"set_level"`
	SetSize      *float64    `json:"set_size"`
	SetCoverage  *float64    `json:"set_coverage"`
	Difference   *[2]float64 `json:"nll_difference_interval,omitempty"`
	*binary                  // for two classes
}

// row is a line of the table.
type row struct {
	name       string
	metrics    calibrate.Metrics
	sets       calibrate.Sets      // of the same level in all rows
	difference *calibrate.Interval // of the NLL, to the previous row
	two        *binary
}

// Describe describes the fit and its effect on labels that it has not seen.
func (k *Result) Describe() string {
	if k.Method == string(None) {
		return k.Threshold.describe()
	}
	what := fmt.Sprintf("T = %s", report.Fixed(k.Temperature, 4))
	if len(k.Scale) > 0 {
		what = fmt.Sprintf("scales %s to %s, biases %s to %s", report.Fixed(slices.Min(k.Scale), 3), report.Fixed(slices.Max(k.Scale), 3),
			report.Fixed(slices.Min(k.Bias), 3), report.Fixed(slices.Max(k.Bias), 3))
	}
	change, advice := "falls", ""
	if k.NLLCrossFitted > k.NLLBefore {
		change, advice = "rises", ". It does not pay"
	}
	if k.Threshold != nil {
		advice += "; " + k.Threshold.describe()
	}
	return fmt.Sprintf("%s: NLL of labels that the fit has not seen %s from %s to %s nats (%s in %d folds); of those it was fitted to it is %s%s", what, change,
		report.Fixed(k.NLLBefore, 4), report.Fixed(k.NLLCrossFitted, 4), report.Plural(k.Rows, "row"), k.Folds, report.Fixed(k.NLLAfter, 4), advice)
}

// Run fits and scores. The argument producer is the program and its version.
func (s *Scaling) Run(producer string) (*Result, error) {
	f := s.Fit
	k := &Result{Kind: "swagwrap.calibration", FormatVersion: 1, Producer: producer, Method: string(s.Method), Classes: f.Classes,
		Rows: f.Len(), Folds: s.Folds, Seed: s.Seed, Warnings: []string{},
		Source: source{f.Path, f.SHA256, f.Len(), f.LeftOut, f.Probabilities}}
	if s.Method == None {
		return k, k.runNone(s)
	}
	var err error
	if k.Fitted, err = s.Method.Fit(f.Z, f.Classes, f.Labels); err != nil {
		return nil, err
	}
	k.NLLBefore, k.NLLAfter = k.Fitted.NLLBefore, k.Fitted.NLLAfter
	if v := k.Fitted.Vector; v != nil {
		k.Scale, k.Bias, k.Absent, k.Separated = v.Scale, v.Bias, v.Absent, v.Separated
	} else {
		k.Temperature, k.AtBound = k.Fitted.Temperatures[0], k.Fitted.AtBound
	}
	for _, w := range k.Fitted.Warnings {
		k.warn("%v", w)
	}
	crossed, unseen, err := s.Method.CrossFit(nil, f.Z, f.Classes, f.Labels, s.Folds, s.Seed)
	if err != nil {
		return nil, err
	}
	k.NLLCrossFitted = unseen.NLLAfter
	if err := k.choose(s, calibrate.Predictions{Classes: f.Classes, Probs: k.Fitted.Apply(nil, f.Z, f.Classes), Labels: f.Labels}); err != nil {
		return nil, err
	}
	k.compare("fitted on", "cross-fitted", f, crossed)
	last := &k.rows[len(k.rows)-1]
	if unseen := (calibrate.Predictions{Classes: f.Classes, Probs: crossed, Labels: f.Labels}); f.Classes == 2 {
		last.two = judge(unseen, k.crossDecide(s, unseen))
	}
	if t := s.Test; t != nil {
		k.compare("test", "calibrated", t, k.Fitted.Apply(nil, t.Z, t.Classes))
	}
	k.score()
	return k, nil
}

// runNone chooses a threshold for unchanged predictions.
func (k *Result) runNone(s *Scaling) error {
	add := func(name string, l *Logits, decide func(calibrate.Predictions) calibrate.Decisions) calibrate.Predictions {
		p := l.predictions()
		m := calibrate.Evaluate(p, calibrate.EvaluateOptions{Seed: k.Seed})
		k.rows = append(k.rows, row{name: name, metrics: m, two: judge(p, decide(p))})
		return p
	}
	p := s.Fit.predictions()
	if err := k.choose(s, p); err != nil {
		return err
	}
	add("chosen on, at 0.5", s.Fit, (&Result{}).decide)
	add("chosen on, cross-fitted", s.Fit, func(p calibrate.Predictions) calibrate.Decisions { return k.crossDecide(s, p) })
	if s.Test != nil {
		add("test, at 0.5", s.Test, (&Result{}).decide)
		add("test, by the threshold", s.Test, k.decide)
	}
	k.NLLBefore = k.rows[0].metrics.NLL
	k.NLLCrossFitted, k.NLLAfter = k.NLLBefore, k.NLLBefore
	k.score()
	return nil
}

// predictions returns the rows without calibration.
func (l *Logits) predictions() calibrate.Predictions {
	return calibrate.Predictions{Classes: l.Classes, Probs: calibrate.Softmax(nil, l.Z, l.Classes, 1), Labels: l.Labels}
}

// apply returns the probabilities after the fit, or unchanged with [None].
func (k *Result) apply(l *Logits) []float64 {
	if k.Fitted == nil {
		return l.predictions().Probs
	}
	return k.Fitted.Apply(nil, l.Z, l.Classes)
}

func (k *Result) warn(format string, args ...any) {
	k.Warnings = append(k.Warnings, fmt.Sprintf(format, args...))
}

// compare adds two rows to the table: predictions as saved, and calibrated.
func (k *Result) compare(what, how string, l *Logits, after []float64) {
	before := l.predictions()
	calibrated := calibrate.Predictions{Classes: l.Classes, Probs: after, Labels: l.Labels}
	opts := calibrate.EvaluateOptions{Seed: k.Seed}
	difference := calibrate.PairedBootstrap(calibrate.NegLogLikelihoods(nil, calibrated), calibrate.NegLogLikelihoods(nil, before), calibrate.BootstrapOptions{Seed: k.Seed})
	k.rows = append(k.rows,
		row{name: what + ", as saved", metrics: calibrate.Evaluate(before, opts), two: judge(before, (&Result{}).decide(before))},
		row{name: what + ", " + how, metrics: calibrate.Evaluate(calibrated, opts), difference: &difference, two: judge(calibrated, k.decide(calibrated))})
	if difference.Low > 0 {
		k.warn("%s: calibration makes the NLL worse", what)
	}
}

// score copies the rows to the JSON fields. All sets have the same level, above the best accuracy.
func (k *Result) score() {
	best := 0.0
	for _, r := range k.rows {
		best = max(best, r.metrics.Accuracy)
	}
	for i := range k.rows {
		r := &k.rows[i]
		r.sets = calibrate.SetsAbove(r.metrics.Sets, best)
		m := r.metrics
		s := scores{binary: r.two, Name: r.name, Accuracy: study.Finite(m.Accuracy), NLL: study.Finite(m.NLL), ECE: study.Finite(m.ECE), ECE15: study.Finite(m.ECE15), Brier: study.Finite(m.Brier),
			ClasswiseECE: study.Finite(m.ClasswiseECE), AURC: study.Finite(m.AURC),
			SetLevel: study.Finite(r.sets.Level), SetSize: study.Finite(r.sets.Size), SetCoverage: study.Finite(r.sets.Coverage)}
		if d := r.difference; d != nil && study.Finite(d.Low) != nil && study.Finite(d.High) != nil {
			s.Difference = &[2]float64{d.Low, d.High}
		}
		k.Scores = append(k.Scores, s)
		for _, w := range m.Warnings {
			k.warn("%s: %v", r.name, w)
		}
	}
}
