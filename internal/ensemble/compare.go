package ensemble

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
)

// Comparison sets methods against each other on labelled data.
type Comparison struct {
	Lineup
	// Validation is what temperatures, vector scaling and the prior of Laplace are
	// fitted on. Without it each is fitted on one half of the test data, cut at
	// random by the seed, and applied to the other.
	Validation dataset.Dataset
	Test       dataset.Dataset
	ECE        calibrate.ECEOptions
	// Scalings has every method evaluated with scalings of its own too.
	Scalings bool
	// Save, if not nil, is called with the probabilities of each method, n×classes,
	// while they are in memory.
	Save func(m *Method, probs []float64, classes int) error
}

// Method is one row of a comparison.
type Method struct {
	Key     string // as --methods has it
	Name    string // as tables have it
	Members int
	Metrics calibrate.Metrics
	// NLLAtBestT is the NLL with a temperature fitted on one half of the test
	// data and applied to the other (Ashukha et al. 2020), so that a method's
	// ranking does not hinge on a temperature; NaN where there is none.
	NLLAtBestT float64
	// ByTemperature and ByVector are the method with scalings of its own: nil
	// unless asked for, or where none can be fitted.
	ByTemperature, ByVector *Scaled
	// Scaling is the one that makes the method, in SWA-Temp and SWA-Vector.
	Scaling *Scaled
	// Differences are those to the baseline, each with a paired bootstrap interval
	// over the test data; zero for the baseline itself.
	NLLDifference, ErrorDifference, BrierDifference calibrate.Interval
	Baseline                                        bool
	StaleBN                                         bool // its batch-norm statistics do not belong to its weights

	Reliability  []calibrate.ReliabilityBin
	RiskCoverage []calibrate.RiskPoint

	losses, errors, briers []float64 // of each image
}

// Scaled is a method after its scores were scaled: by what was fitted on the
// validation data, or on each half of the test data for the other.
type Scaled struct {
	*calibrate.Scaling
	Metrics calibrate.Metrics

	probs []float64
}

// targets are what the methods predict.
func (c *Comparison) targets() Targets {
	return Targets{Data: []dataset.Dataset{c.Test}, Validation: c.Validation}
}

// Images returns about how many images Run sends through networks.
func (c *Comparison) Images() int64 { return c.Lineup.Images(c.targets()) }

// Run evaluates the methods, and returns them in the order of [Methods]. The
// baseline of the differences is SWA with temperature scaling; where it is not
// among the methods, SWA, or the first of them.
func (c *Comparison) Run(ctx context.Context, e *Engine) ([]Method, error) {
	var methods []Method
	err := c.Each(ctx, e, c.targets(), func(p *Predicted) error {
		rows, err := c.rows(p)
		methods = append(methods, rows...)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := inOrder(methods, func(m Method) string { return m.Key }); err != nil {
		return nil, err
	}
	c.differences(methods)
	return methods, nil
}

// rows makes the rows of what a method predicts: SWA has three.
func (c *Comparison) rows(p *Predicted) ([]Method, error) {
	test := p.Data[0]
	probs, classes := test.Mean(), test.Classes
	var rows []Method
	if p.Method != SWA || c.wants(SWA) {
		m, err := c.evaluate(p.Method, p.Name, p.Members, probs, classes)
		if err != nil {
			return nil, err
		}
		m.StaleBN = p.StaleBN
		m.Metrics.Warnings = append(m.Metrics.Warnings, p.Notes...)
		if c.Scalings {
			if m.ByTemperature, err = c.scaled(calibrate.ByTemperature, p, probs); err != nil {
				m.warn("no temperature: %w", err)
			}
			if m.ByVector, err = c.scaled(calibrate.ByVector, p, probs); err != nil {
				m.warn("no vector scaling: %w", err)
			}
		}
		m.forget()
		rows = append(rows, m)
	}
	if p.Method != SWA {
		return rows, nil
	}
	for _, scaling := range []struct {
		key, name string
		by        calibrate.Scaler
	}{{SWATemp, "SWA-Temp", calibrate.ByTemperature}, {SWAVector, "SWA-Vector", calibrate.ByVector}} {
		if !c.wants(scaling.key) {
			continue
		}
		s, err := c.scaled(scaling.by, p, probs)
		if err != nil {
			c.Notes = append(c.Notes, fmt.Sprintf("%s is left out: %v", scaling.name, err))
			continue
		}
		m, err := c.evaluate(scaling.key, scaling.name+s.describe(), p.Members, s.probs, classes)
		if err != nil {
			return nil, err
		}
		m.Scaling = s
		m.Metrics.Warnings = append(m.Metrics.Warnings, s.Warnings...)
		m.forget()
		rows = append(rows, m)
	}
	return rows, nil
}

func (m *Method) warn(format string, args ...any) {
	m.Metrics.Warnings = append(m.Metrics.Warnings, fmt.Errorf(format, args...))
}

// forget drops the probabilities of scalings, so that memory does not grow with
// the number of methods.
func (m *Method) forget() {
	for _, s := range []*Scaled{m.ByTemperature, m.ByVector, m.Scaling} {
		if s != nil {
			s.probs = nil
		}
	}
}

// describe says behind a method's name what was fitted.
func (s *Scaled) describe() string {
	switch len(s.Temperatures) {
	case 1:
		return fmt.Sprintf(" (T = %.2f)", s.Temperatures[0])
	case 2:
		return fmt.Sprintf(" (T = %.2f, %.2f)", s.Temperatures[0], s.Temperatures[1])
	}
	return ""
}

// evaluate scores the probabilities of a method.
func (c *Comparison) evaluate(key, name string, members int, probs []float64, classes int) (Method, error) {
	m := Method{Key: key, Name: name, Members: members, NLLAtBestT: math.NaN()}
	p, err := calibrate.NewPredictions(probs, classes, c.Test.Labels())
	if err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	m.Metrics = c.metrics(p)
	m.losses, m.errors, m.briers = calibrate.NegLogLikelihoods(nil, p), calibrate.Errors(nil, p), calibrate.Briers(nil, p)
	m.Reliability, m.RiskCoverage = calibrate.Reliability(p, c.ECE), calibrate.RiskCoverage(p)
	logits := calibrate.LogProbs(nil, probs)
	if _, s, err := calibrate.ByTemperature.CrossFit(logits, logits, classes, c.Test.Labels(), 0, c.Seed); err != nil {
		m.warn("no best temperature: %w", err)
	} else {
		m.NLLAtBestT = s.NLLAfter
	}
	if c.Save != nil {
		err = c.Save(&m, probs, classes)
		return m, err
	}
	return m, nil
}

func (c *Comparison) metrics(p calibrate.Predictions) calibrate.Metrics {
	return calibrate.Evaluate(p, calibrate.EvaluateOptions{ECE: c.ECE, Seed: c.Seed})
}

// scaled is the method after a scaling of its own.
func (c *Comparison) scaled(by calibrate.Scaler, p *Predicted, probs []float64) (*Scaled, error) {
	logits, classes := calibrate.LogProbs(nil, probs), p.Data[0].Classes
	s := &Scaled{}
	var err error
	if c.Validation == nil {
		s.probs, s.Scaling, err = by.CrossFit(logits, logits, classes, c.Test.Labels(), 0, c.Seed)
	} else if s.Scaling, err = p.fit(by, c.Validation); err == nil {
		s.probs = s.Apply(logits, logits, classes)
	}
	if err != nil {
		return nil, err
	}
	scaled, err := calibrate.NewPredictions(s.probs, classes, c.Test.Labels())
	if err == nil {
		s.Metrics = c.metrics(scaled)
	}
	return s, err
}

// fit fits a scaling to what was predicted of the validation data.
func (p *Predicted) fit(by calibrate.Scaler, validation dataset.Dataset) (*calibrate.Scaling, error) {
	s, err := by.Fit(calibrate.LogProbs(nil, p.Validation.Mean()), p.Validation.Classes, validation.Labels())
	if err != nil {
		return nil, fmt.Errorf("validation data: %w", err)
	}
	return s, nil
}

// differences compares every method with the baseline, image by image.
func (c *Comparison) differences(methods []Method) {
	baseline := 0
	for _, key := range []string{SWATemp, SWA} {
		if i := slices.IndexFunc(methods, func(m Method) bool { return m.Key == key }); i >= 0 {
			baseline = i
			break
		}
	}
	base := &methods[baseline]
	base.Baseline = true
	opts := calibrate.BootstrapOptions{Seed: c.Seed}
	for i := range methods {
		m := &methods[i]
		if !m.Baseline {
			m.NLLDifference = calibrate.PairedBootstrap(m.losses, base.losses, opts)
			m.ErrorDifference = calibrate.PairedBootstrap(m.errors, base.errors, opts)
			m.BrierDifference = calibrate.PairedBootstrap(m.briers, base.briers, opts)
		}
	}
}
