// Package scaling fits what makes saved probabilities right, and shows what it is
// worth: a temperature, or vector scaling (Guo et al. 2017).
//
// # Invariants
//
// Scores on the rows that are fitted on are cross-fitted: each row is scored by what
// was fitted without it.
package scaling

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
)

// Logits are saved predictions as the fit takes them: logarithms of probabilities,
// so that it does not matter in which form they were saved.
type Logits struct {
	*predictions.Set
	Z []float64
}

// NewLogits takes over saved predictions.
func NewLogits(p *predictions.Set) *Logits {
	if p.Probabilities {
		return &Logits{p, calibrate.LogProbs(nil, p.Values)}
	}
	return &Logits{p, calibrate.LogSoftmax(nil, p.Values, p.Classes, 1)}
}

// Scaling says what is fitted, on what.
type Scaling struct {
	Method    calibrate.Scaler
	Folds     int
	Seed      uint64
	Fit, Test *Logits // Test may be nil
}

// Result is what was found, as JSON has it.
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

	Rows      int      `json:"rows"`
	Source    source   `json:"predictions"`
	NLLBefore float64  `json:"nll_before"`
	NLLAfter  float64  `json:"nll_after"`
	Folds     int      `json:"folds"`
	Seed      uint64   `json:"seed"`
	Scores    []scores `json:"scores"`
	Warnings  []string `json:"warnings"`
}

// source identifies a file of predictions.
type source struct {
	Path          string `json:"path"`
	SHA256        string `json:"sha256"`
	Rows          int    `json:"rows"`
	LeftOut       int    `json:"left_out"`
	Probabilities bool   `json:"probabilities"` // false: logits
}

// scores are the numbers of a line of the table; null is what is not finite.
type scores struct {
	Name         string      `json:"name"`
	Accuracy     *float64    `json:"accuracy"`
	NLL          *float64    `json:"nll"`
	ECE          *float64    `json:"ece"`
	Brier        *float64    `json:"brier"`
	ClasswiseECE *float64    `json:"classwise_ece"`
	AURC         *float64    `json:"aurc"`
	SetSize      *float64    `json:"set_size"`
	SetCoverage  *float64    `json:"set_coverage"`
	Difference   *[2]float64 `json:"nll_difference_interval,omitempty"`
}

// row is a line of the table.
type row struct {
	name       string
	metrics    calibrate.Metrics
	difference *calibrate.Interval // of the NLL, to the row before
}

// Describe says what was fitted.
func (k *Result) Describe() string {
	what := fmt.Sprintf("T = %s", report.Fixed(k.Temperature, 4))
	if len(k.Scale) > 0 {
		what = fmt.Sprintf("scales %s to %s, biases %s to %s", report.Fixed(slices.Min(k.Scale), 3), report.Fixed(slices.Max(k.Scale), 3),
			report.Fixed(slices.Min(k.Bias), 3), report.Fixed(slices.Max(k.Bias), 3))
	}
	return fmt.Sprintf("%s: NLL of the %s fitted on falls from %s to %s nats", what, report.Plural(k.Rows, "row"), report.Fixed(k.NLLBefore, 4), report.Fixed(k.NLLAfter, 4))
}

// Run fits and scores. producer is the program and its version.
func (s *Scaling) Run(producer string) (*Result, error) {
	f := s.Fit
	k := &Result{Kind: "swagwrap.calibration", FormatVersion: 1, Producer: producer, Method: string(s.Method), Classes: f.Classes,
		Rows: f.Len(), Folds: s.Folds, Seed: s.Seed, Warnings: []string{},
		Source: source{f.Path, f.SHA256, f.Len(), f.LeftOut, f.Probabilities}}
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
	crossed, _, err := s.Method.CrossFit(nil, f.Z, f.Classes, f.Labels, s.Folds, s.Seed)
	if err != nil {
		return nil, err
	}
	k.compare("fitted on", "cross-fitted", f, crossed)
	if t := s.Test; t != nil {
		k.compare("test", "calibrated", t, k.Fitted.Apply(nil, t.Z, t.Classes))
	}
	return k, nil
}

func (k *Result) warn(format string, args ...any) {
	k.Warnings = append(k.Warnings, fmt.Sprintf(format, args...))
}

// compare adds two rows to the table: predictions as they were, and calibrated.
func (k *Result) compare(what, how string, l *Logits, after []float64) {
	before := calibrate.Predictions{Classes: l.Classes, Probs: calibrate.Softmax(nil, l.Z, l.Classes, 1), Labels: l.Labels}
	calibrated := calibrate.Predictions{Classes: l.Classes, Probs: after, Labels: l.Labels}
	opts := calibrate.EvaluateOptions{Seed: k.Seed}
	difference := calibrate.PairedBootstrap(calibrate.NegLogLikelihoods(nil, calibrated), calibrate.NegLogLikelihoods(nil, before), calibrate.BootstrapOptions{Seed: k.Seed})
	k.rows = append(k.rows,
		row{what + ", as saved", calibrate.Evaluate(before, opts), nil},
		row{what + ", " + how, calibrate.Evaluate(calibrated, opts), &difference})
	for _, r := range k.rows[len(k.rows)-2:] {
		s := scores{Name: r.name, Accuracy: study.Finite(r.metrics.Accuracy), NLL: study.Finite(r.metrics.NLL), ECE: study.Finite(r.metrics.ECE), Brier: study.Finite(r.metrics.Brier),
			ClasswiseECE: study.Finite(r.metrics.ClasswiseECE), AURC: study.Finite(r.metrics.AURC), SetSize: study.Finite(r.metrics.SetSize), SetCoverage: study.Finite(r.metrics.SetCoverage)}
		if d := r.difference; d != nil && study.Finite(d.Low) != nil && study.Finite(d.High) != nil {
			s.Difference = &[2]float64{d.Low, d.High}
		}
		k.Scores = append(k.Scores, s)
		for _, w := range r.metrics.Warnings {
			k.warn("%s: %v", r.name, w)
		}
	}
	if difference.Low > 0 {
		k.warn("%s: calibration makes the NLL worse", what)
	}
}
