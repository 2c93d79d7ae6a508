package main

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
)

// calibration is what calibrate writes.
type calibration struct {
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

// describe says what was fitted.
func (k *calibration) describe() string {
	what := fmt.Sprintf("T = %s", report.Fixed(k.Temperature, 4))
	if len(k.Scale) > 0 {
		what = fmt.Sprintf("scales %s to %s, biases %s to %s", report.Fixed(slices.Min(k.Scale), 3), report.Fixed(slices.Max(k.Scale), 3),
			report.Fixed(slices.Min(k.Bias), 3), report.Fixed(slices.Max(k.Bias), 3))
	}
	return fmt.Sprintf("%s: NLL of the %s fitted on falls from %s to %s nats", what, report.Plural(k.Rows, "row"), report.Fixed(k.NLLBefore, 4), report.Fixed(k.NLLAfter, 4))
}

// run fits and scores.
func (job *calibrationJob) run() error {
	f := job.fit
	job.result = calibration{Kind: "swagwrap.calibration", FormatVersion: 1, Producer: flags.Producer(), Method: string(job.method), Classes: f.Classes,
		Rows: f.Len(), Folds: job.folds, Seed: job.seed, Warnings: []string{},
		Source: source{f.Path, f.SHA256, f.Len(), f.LeftOut, f.Probabilities}}
	crossed, err := job.fitAll()
	if err != nil {
		hint := "a true class with probability 0 was rounded: save logits, or probabilities in float64"
		if f.LeftOut > 0 {
			hint += "; rows are counted without those left out"
		}
		return flags.BadInput(fmt.Errorf("%s: %w", f.Path, err), hint)
	}
	job.compare("fitted on", "cross-fitted", f, crossed)
	if t := job.test; t != nil {
		job.compare("test", "calibrated", t, job.scaling.Apply(nil, t.z, t.Classes))
	}
	return nil
}

// fitAll fits on all rows, and returns the cross-fitted probabilities.
func (job *calibrationJob) fitAll() (crossed []float64, err error) {
	f, k := job.fit, &job.result
	s, err := job.method.Fit(f.z, f.Classes, f.Labels)
	if err != nil {
		return nil, err
	}
	job.scaling = s
	k.NLLBefore, k.NLLAfter = s.NLLBefore, s.NLLAfter
	if v := s.Vector; v != nil {
		k.Scale, k.Bias, k.Absent, k.Separated = v.Scale, v.Bias, v.Absent, v.Separated
	} else {
		k.Temperature, k.AtBound = s.Temperatures[0], s.AtBound
	}
	for _, w := range s.Warnings {
		k.warn("%v", w)
	}
	crossed, _, err = job.method.CrossFit(nil, f.z, f.Classes, f.Labels, job.folds, job.seed)
	return crossed, err
}

func (k *calibration) warn(format string, args ...any) {
	k.Warnings = append(k.Warnings, fmt.Sprintf(format, args...))
}

// compare adds two rows to the table: predictions as they were, and calibrated.
func (job *calibrationJob) compare(what, how string, l *logits, after []float64) {
	before := calibrate.Predictions{Classes: l.Classes, Probs: calibrate.Softmax(nil, l.z, l.Classes, 1), Labels: l.Labels}
	calibrated := calibrate.Predictions{Classes: l.Classes, Probs: after, Labels: l.Labels}
	opts := calibrate.EvaluateOptions{Seed: job.seed}
	difference := calibrate.PairedBootstrap(calibrate.NegLogLikelihoods(nil, calibrated), calibrate.NegLogLikelihoods(nil, before), calibrate.BootstrapOptions{Seed: job.seed})
	job.rows = append(job.rows,
		calibrationRow{what + ", as saved", calibrate.Evaluate(before, opts), nil},
		calibrationRow{what + ", " + how, calibrate.Evaluate(calibrated, opts), &difference})
	for _, row := range job.rows[len(job.rows)-2:] {
		s := scores{Name: row.name, Accuracy: study.Finite(row.metrics.Accuracy), NLL: study.Finite(row.metrics.NLL), ECE: study.Finite(row.metrics.ECE), Brier: study.Finite(row.metrics.Brier),
			ClasswiseECE: study.Finite(row.metrics.ClasswiseECE), AURC: study.Finite(row.metrics.AURC), SetSize: study.Finite(row.metrics.SetSize), SetCoverage: study.Finite(row.metrics.SetCoverage)}
		if d := row.difference; d != nil && study.Finite(d.Low) != nil && study.Finite(d.High) != nil {
			s.Difference = &[2]float64{d.Low, d.High}
		}
		job.result.Scores = append(job.result.Scores, s)
		for _, w := range row.metrics.Warnings {
			job.result.warn("%s: %v", row.name, w)
		}
	}
	if difference.Low > 0 {
		job.result.warn("%s: calibration makes the NLL worse", what)
	}
}
