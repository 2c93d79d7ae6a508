package ensemble

import (
	"context"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Comparison sets the methods of the paper against each other on labelled
// data.
type Comparison struct {
	Network    *Network
	Iterates   []*onnxio.Model // the checkpoints; without them the SGD rows are left out
	BatchNorm  BatchNormData
	Validation dataset.Dataset // for the temperature; without it SWA-Temp is left out
	Test       dataset.Dataset

	Members int
	Seed    uint64
	Scale   float64 // α of SWAG; SWAG-Diag has 1, as in the paper
	ECE     calibrate.ECEOptions
}

// Method is one row of a comparison.
type Method struct {
	Name    string
	Members int
	Metrics calibrate.Metrics
	// NLLAtBestT is the NLL with a temperature fitted on one half of the test
	// data and applied to the other (Ashukha et al. 2020), so that a method's
	// ranking does not hinge on a temperature; NaN where there is none.
	NLLAtBestT float64
	// Temperature is the one that the method itself has, or nil.
	Temperature *calibrate.Temperature
	// Difference is NLL − NLL of the baseline, with a paired bootstrap interval
	// over the test data; zero for the baseline itself.
	Difference calibrate.Interval
	Baseline   bool
	StaleBN    bool // its batch-norm statistics do not belong to its weights

	losses []float64
}

// Images returns how many images Run sends through networks.
func (c *Comparison) Images() int64 {
	test, bn := int64(c.Test.Len()), int64(c.BatchNorm.Images())
	total := int64(len(c.Iterates))*test + test + bn // iterates, SWA
	if c.Network.HasBatchNorm() {
		total += test // SWA, stale
	}
	if c.Validation != nil {
		total += int64(c.Validation.Len())
	}
	for range c.covariances() {
		total += int64(c.Members) * (test + bn)
	}
	return total
}

// covariances lists the distributions that the posterior can be drawn with.
func (c *Comparison) covariances() []swag.Covariance {
	if c.Network.Posterior.Options.Columns == 0 {
		return []swag.Covariance{swag.Diagonal}
	}
	return []swag.Covariance{swag.Diagonal, swag.LowRankPlusDiagonal}
}

// Run evaluates every method. The baseline of the differences is SWA with
// temperature scaling, or SWA without validation data.
func (c *Comparison) Run(ctx context.Context, e *Engine) ([]Method, error) {
	var methods []Method
	add := func(name string, sums *Sums) error {
		m, err := c.evaluate(name, sums.Mean(), sums.Classes)
		m.Members = sums.Members
		methods = append(methods, m)
		return err
	}

	if len(c.Iterates) > 0 {
		all, last := &Sums{}, &Sums{}
		for i, m := range c.Iterates {
			model, err := m.Runtime()
			if err != nil {
				return nil, err
			}
			sums := &Sums{}
			if err := e.Predict(ctx, m.Path, model, c.Test, 1, sums); err != nil {
				return nil, err
			}
			all.merge(sums)
			if i == len(c.Iterates)-1 {
				last = sums
			}
		}
		if err := add("SGD, last iterate", last); err != nil {
			return nil, err
		}
		if err := add(fmt.Sprintf("SGD, all %d iterates", len(c.Iterates)), all); err != nil {
			return nil, err
		}
	}

	if err := c.swa(ctx, e, &methods, add); err != nil {
		return nil, err
	}
	for _, covariance := range c.covariances() {
		name, scale := "SWAG", c.Scale
		if covariance == swag.Diagonal {
			name, scale = "SWAG-Diag", covariance.DefaultScale()
		}
		sums, err := c.members(ctx, e, name, swag.SampleOptions{Seed: c.Seed, Scale: scale, Covariance: covariance})
		if err != nil {
			return nil, err
		}
		if err := add(name, sums); err != nil {
			return nil, err
		}
	}
	c.differences(methods)
	return methods, nil
}

// swa adds SWA with the last checkpoint's statistics, with its own, and with a
// temperature.
func (c *Comparison) swa(ctx context.Context, e *Engine, methods *[]Method, add func(string, *Sums) error) error {
	predict := func(data dataset.Dataset, parameters, statistics weights.Vector) (*Sums, error) {
		model, err := c.Network.Model(parameters, statistics)
		if err != nil {
			return nil, err
		}
		sums := &Sums{}
		return sums, e.Predict(ctx, c.Network.Posterior.Path+": SWA", model, data, 1, sums)
	}
	return EachMember(ctx, c.Network.Posterior, swag.SampleOptions{}, 0, 1, func(_ int, parameters weights.Vector) error {
		if c.Network.HasBatchNorm() {
			sums, err := predict(c.Test, parameters, c.Network.Posterior.Statistics)
			if err != nil {
				return err
			}
			if err := add("SWA, stale BN", sums); err != nil {
				return err
			}
			(*methods)[len(*methods)-1].StaleBN = true
		}
		fresh, err := e.Recompute(ctx, c.Network, parameters, c.BatchNorm)
		if err != nil {
			return fmt.Errorf("SWA: %w", err)
		}
		c.BatchNorm = c.BatchNorm.Settled(fresh)
		sums, err := predict(c.Test, parameters, weights.Slice(fresh.Statistics))
		if err != nil {
			return err
		}
		if err := add("SWA", sums); err != nil || c.Validation == nil {
			return err
		}
		validation, err := predict(c.Validation, parameters, weights.Slice(fresh.Statistics))
		if err != nil {
			return err
		}
		t, err := calibrate.FitTemperature(calibrate.LogProbs(nil, validation.Mean()), validation.Classes, c.Validation.Labels())
		if err != nil {
			return fmt.Errorf("temperature: %w", err)
		}
		scaled := calibrate.Softmax(nil, calibrate.LogProbs(nil, sums.Mean()), sums.Classes, t.T)
		m, err := c.evaluate(fmt.Sprintf("SWA-Temp (T = %.2f)", t.T), scaled, sums.Classes)
		m.Members, m.Temperature = 1, &t
		if t.AtBound {
			m.Metrics.Warnings = append(m.Metrics.Warnings, fmt.Errorf("the temperature is at its bound: the validation data does not determine it"))
		}
		*methods = append(*methods, m)
		return err
	})
}

// members averages members with statistics of their own.
func (c *Comparison) members(ctx context.Context, e *Engine, name string, opts swag.SampleOptions) (*Sums, error) {
	sums := &Sums{}
	return sums, EachMember(ctx, c.Network.Posterior, opts, 0, c.Members, func(k int, parameters weights.Vector) error {
		who := fmt.Sprintf("%s: %s member %d", c.Network.Posterior.Path, name, k)
		fresh, err := e.Recompute(ctx, c.Network, parameters, c.BatchNorm)
		if err != nil {
			return fmt.Errorf("%s: %w", who, err)
		}
		model, err := c.Network.Model(parameters, weights.Slice(fresh.Statistics))
		if err != nil {
			return err
		}
		return e.Predict(ctx, who, model, c.Test, 1, sums)
	})
}

func (c *Comparison) evaluate(name string, probs []float64, classes int) (Method, error) {
	m := Method{Name: name, NLLAtBestT: math.NaN()}
	p, err := calibrate.NewPredictions(probs, classes, c.Test.Labels())
	if err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	m.Metrics = calibrate.Evaluate(p, calibrate.EvaluateOptions{ECE: c.ECE})
	m.losses = calibrate.NegLogLikelihoods(nil, p)
	nll, _, err := calibrate.CrossFitNLL(calibrate.LogProbs(nil, probs), classes, c.Test.Labels(), 0, c.Seed)
	if err != nil {
		m.Metrics.Warnings = append(m.Metrics.Warnings, fmt.Errorf("no best temperature: %w", err))
	} else {
		m.NLLAtBestT = nll
	}
	return m, nil
}

// differences compares every method's losses with the baseline's.
func (c *Comparison) differences(methods []Method) {
	baseline := -1
	for i, m := range methods {
		if m.Temperature != nil || m.Name == "SWA" && baseline < 0 {
			baseline = i
		}
	}
	methods[baseline].Baseline = true
	for i := range methods {
		if i != baseline {
			methods[i].Difference = calibrate.PairedBootstrap(methods[i].losses, methods[baseline].losses, calibrate.BootstrapOptions{Seed: c.Seed})
		}
	}
}
