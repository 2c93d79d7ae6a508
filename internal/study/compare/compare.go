// Package compare sets SWAG and its alternatives against each other on labelled
// data: section 5 of Maddox et al. 2019.
//
// # Invariants
//
// Differences are of the same images; their intervals hold what the choice of the images,
// of the random draws and of the temperature leaves open. Every
// method is also shown at a temperature of its own, so that none wins by a
// temperature alone (Ashukha et al. 2020).
package compare

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Comparison says what is compared, and how.
type Comparison struct {
	baseline.Inputs
	// Validation is what temperatures, vector scaling and the prior of Laplace are
	// fitted on. Without it each is fitted on one half of the test data, cut at
	// random by the seed, and applied to the other.
	Validation dataset.Dataset
	Test       dataset.Dataset
	ECE        calibrate.ECEOptions
	// Threshold, or the one that By chooses for each method on the validation data, is what
	// methods of a [task.Decided] predict by; zero for the usual one.
	Threshold float64
	By        calibrate.Criterion
	// Scalings has every method evaluated with scalings of its own too, and
	// AllMetrics has the further tables printed.
	Scalings, AllMetrics bool
	// Tuned says how the settings of baseline.Inputs.Tuned were chosen, or is "", and
	// Settings is the file that they will be in.
	Tuned, Settings string
	// Recomputing are the flags of sample, beside --bn-data, that have it recompute
	// batch-norm statistics as they were recomputed here.
	Recomputing []string
	// Save, if not nil, is called with the outcomes of each method, n×width, while they
	// are in memory.
	Save func(key string, outcomes []float64, width int) error
}

// Result is what a comparison found.
type Result struct {
	*Comparison
	Methods   []Method // in the order of the tables
	Notes     []string // which methods were left out, and why
	BatchNorm study.BatchNorm
	Runtime   string // the version of ONNX Runtime

	task task.Task
}

// Method is one row of a comparison.
type Method struct {
	Key     string // as --methods has it
	Name    string // as tables have it
	Members int
	// Networks is how many a prediction takes.
	Networks int
	// Deploy is what sample makes the method's ensemble by, temperature and all, and
	// Posteriors are those of its runs; nil where nothing that score runs is the method.
	Deploy     *ensemble.Settings
	Posteriors []baseline.Run
	*task.Evaluation
	// AtBestT is the first loss with a temperature of the method's own, so that its
	// place does not hinge on one: fitted on one half of the test data and applied to
	// the other, the mean over [calibrate.Splits] ways to cut them, or without a
	// temperature where that is better. NaN where there is none.
	AtBestT float64
	// Scaled is the method with each calibrator of the task: nil unless asked for, or
	// where none can be fitted.
	Scaled []*Scaled
	// Recalibrated is the method after its distributions were recalibrated by a map: nil
	// unless asked for, or for a task that has none.
	Recalibrated *task.Evaluation
	// Threshold is what the method predicts by; 0 for the usual one.
	Threshold float64
	// Scaling is the one that makes the method, in SWA-Temp and SWA-Vector.
	Scaling *calibrate.Scaling
	// Noise is what was fitted where the networks leave it open: one, or one for each half
	// of the test data; nil elsewhere.
	Noise []*task.Noise
	// Differences are those to the baseline, of each loss of the task; nil for the
	// baseline itself.
	Differences []calibrate.Difference
	// Adjusted are their p-values by Holm's procedure, over what the verdict may speak
	// of; NaN for others.
	Adjusted []float64
	StaleBN  bool // its batch-norm statistics do not belong to its weights

	noise
	doubts []error // warnings from before there was an evaluation
}

// Scaled is a method after its outcomes were repaired.
type Scaled struct {
	*task.Evaluation
	*calibrate.Scaling
}

func (c *Comparison) targets() baseline.Targets {
	return baseline.Targets{Data: []dataset.Dataset{c.Test}, Validation: c.Validation, Noise: true,
		Members: task.Truth(c.Runs[0].Network.Posterior.Card.Task) == truth.Numbers} // others' averages say all
}

// Images returns about how many images Run sends through networks.
func (c *Comparison) Images() int64 { return c.Inputs.Images(c.targets()) }

// Fill puts into the engine's store what its share of the methods' networks gives out.
func (c *Comparison) Fill(ctx context.Context, e *infer.Engine) error {
	return baseline.Fill(ctx, e, &c.Inputs, c.targets())
}

// Run evaluates the methods. The baseline of the differences is SWA with
// temperature scaling; where it is not among the methods, SWA, or the first of
// them.
func (c *Comparison) Run(ctx context.Context, e *infer.Engine) (*Result, error) {
	r := &Result{Comparison: c, Runtime: e.About()}
	notes, err := baseline.Predict(ctx, e, &c.Inputs, c.targets(), r.add)
	if err != nil {
		return nil, err
	}
	r.Notes = append(r.Notes, notes...)
	if err := baseline.InOrder(r.Methods, func(m Method) string { return m.Key }); err != nil {
		return nil, err
	}
	r.align()
	r.compare()
	r.adjust()
	return r, nil
}

// align lets all methods be measured alike.
func (r *Result) align() {
	var all []*task.Evaluation
	for _, m := range r.Methods {
		all = append(all, m.Evaluation)
		for _, s := range m.Scaled {
			if s != nil {
				all = append(all, s.Evaluation)
			}
		}
	}
	r.task.Align(all)
}

// add evaluates what a method predicts.
func (r *Result) add(p *baseline.Predicted) error {
	test := p.Data[0]
	r.task = test.Task
	m := Method{Key: p.Key, Name: p.Name, Members: p.Members, Networks: p.Networks(), StaleBN: p.StaleBN}
	m.Deploy, m.Posteriors = r.Inputs.Deploy(p.Key)
	if p.Scaler != "" && !slices.Contains(r.Inputs.Asked, p.Key) &&
		!slices.ContainsFunc(r.task.Calibrators(), func(c task.Calibrator) bool { return c.Scaler == p.Scaler }) {
		return nil // not for this task, and nobody asked for it
	}
	if why := r.idle(p); why != "" {
		r.Notes = append(r.Notes, why)
		return nil
	}
	outcomes, validation, noise, err := r.settle(test.Mean(), r.validation(p))
	if err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("%s is left out: %v", p.Name, err))
		return nil
	}
	own := outcomes // of the method, before it is repaired
	if m.Noise = noise; noise != nil {
		if m.parts, err = r.noisy(&m, noise, test.Mean(), r.validation(p)); err != nil {
			return err
		}
		m.deployWith(noise)
	}
	if p.Scaler != "" {
		scaled, s, err := r.scale(p.Scaler, outcomes, validation)
		if err != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("%s is left out: %v", p.Name, err))
			return nil
		}
		m.deployAt(s)
		if err := r.decide(&m, r.applied(s, validation)); err != nil {
			return err
		}
		if m.parts, err = r.tempered(&m, s, outcomes, validation); err != nil {
			return err
		}
		outcomes, m.Scaling, m.Name = scaled, s, r.repaired(p.Name, s)
	} else if err := r.decide(&m, validation); err != nil {
		return err
	}
	if err := r.evaluate(&m, outcomes); err != nil {
		return err
	}
	if err := r.mix(&m, p); err != nil {
		return err
	}
	if err := r.redraw(&m, p); err != nil {
		return err
	}
	m.Warnings = append(append(m.Warnings, p.Notes...), m.doubts...)
	m.warnOfNoise()
	if m.Scaling != nil {
		m.Warnings = append(m.Warnings, m.Scaling.Warnings...)
	} else if r.Scalings {
		m.Scaled = make([]*Scaled, len(r.task.Calibrators()))
		for i, c := range r.task.Calibrators() {
			outcomes, s, err := r.scale(c.Scaler, own, validation)
			if err != nil {
				m.warn("no %s scaling: %w", c.Scaler, err)
				continue
			}
			of := Method{Name: m.Name}
			if err := r.decide(&of, r.applied(s, validation)); err != nil {
				return err
			}
			e, err := r.task.Evaluate(outcomes, r.Test.Labels(), r.options(&of))
			if err != nil {
				return err
			}
			m.Scaled[i] = &Scaled{e, s}
		}
		if err := r.recalibrate(&m, own, validation); err != nil {
			return err
		}
	}
	r.Methods = append(r.Methods, m)
	return nil
}

func (m *Method) warn(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Errorf(format, args...))
}

// repaired is the name of a method with what was fitted behind it.
func (r *Result) repaired(name string, s *calibrate.Scaling) string {
	if len(s.Temperatures) == 0 {
		return name
	}
	if stem, ok := strings.CutSuffix(name, "-Temp"); ok {
		name = stem + "-" + r.first().Name
	}
	return fmt.Sprintf("%s (%s = %s)", name, r.first().Symbol, temperatures(s))
}

func temperatures(s *calibrate.Scaling) string {
	var out []string
	for _, t := range s.Temperatures {
		out = append(out, fmt.Sprintf("%.2f", t))
	}
	return strings.Join(out, ", ")
}

func (r *Result) options(m *Method) task.EvaluateOptions {
	return task.EvaluateOptions{Threshold: m.Threshold, EvaluateOptions: calibrate.EvaluateOptions{ECE: r.ECE, Seed: r.Seed}}
}

// evaluate scores the outcomes of a method.
func (r *Result) evaluate(m *Method, outcomes []float64) (err error) {
	labels := r.Test.Labels()
	if m.Evaluation, err = r.task.Evaluate(outcomes, labels, r.options(m)); err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	m.AtBestT = math.NaN()
	if c, err := r.task.CrossFits(r.task.Calibrators()[0].Scaler, outcomes, labels, r.Seed); err != nil {
		m.warn("no best temperature: %w", err)
	} else {
		m.AtBestT = c.Best()
	}
	if r.Save == nil {
		return nil
	}
	shown, width := r.task.Shown(outcomes)
	return r.Save(m.Key, shown, width)
}

// validation is what a method says of the validation data, nil without.
func (r *Result) validation(p *baseline.Predicted) []float64 {
	if p.Validation == nil {
		return nil
	}
	return p.Validation.Mean()
}

// scale returns outcomes repaired by what is fitted on the validation data or,
// without, on halves of the test data.
func (r *Result) scale(by calibrate.Scaler, outcomes, validation []float64) ([]float64, *calibrate.Scaling, error) {
	if r.Validation == nil {
		return r.task.CrossFit(by, outcomes, r.Test.Labels(), r.Seed)
	}
	s, err := r.task.Fit(by, validation, r.Validation.Labels())
	if err != nil {
		return nil, nil, fmt.Errorf("validation data: %w", err)
	}
	return r.task.Apply(nil, s, outcomes), s, nil
}

// baseline returns the place of the method that the others are compared with.
func (r *Result) baseline() int {
	for _, key := range []string{baseline.SWATemp, baseline.SWA} {
		if i := r.find(key); i >= 0 {
			return i
		}
	}
	return 0
}

// find returns the place of a method, or −1.
func (r *Result) find(key string) int {
	return slices.IndexFunc(r.Methods, func(m Method) bool { return m.Key == key })
}
