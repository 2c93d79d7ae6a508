// Package compare compares SWAG with its alternatives on labelled data: section 5 of Maddox et al. 2019.
//
// # Invariants
//
// Differences are between methods on the same examples. An interval is for the difference of the same networks on new
// examples: the seed makes these networks again, so their draws are no source of chance. How other draws would differ is
// a separate figure. Every method is also shown at its own temperature, so that none wins by a temperature alone
// (Ashukha et al. 2020).
package compare

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/shift"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Comparison describes the methods and the data of a comparison.
type Comparison struct {
	baseline.Inputs
	// Validation is the data for fitting temperatures, vector scaling and the prior of Laplace. Without it each is
	// fitted on one random half of the test data and applied to the other half.
	Validation dataset.Dataset
	Test       dataset.Dataset
	// Threshold is the threshold of all methods of a [task.Decided]. If By is set instead, each method has the
	// threshold that By chooses on the validation data. Zero means the default.
	Threshold float64
	By        detect.Criterion
	// Scalings requests an evaluation of every method with its own scalings. AllMetrics requests the further tables.
	Scalings, AllMetrics bool
	// Tuned describes how the settings of baseline.Inputs.Tuned were chosen, or is "". Settings is the file that will
	// contain them.
	Tuned, Settings string
	// MaxMembers, if above the number of members, is the limit to which members of SWAG are drawn until their error is
	// below half of that of the test data.
	MaxMembers int
	// Spell shows what to do next in the program's words.
	Spell study.Spell
	// Folder is the folder for the files of the commands to run next. "" means the current one.
	Folder string
	task.Grouping
	// EachRun says that the posteriors are runs of training in which the methods are compared, besides their ensembles.
	EachRun   bool
	oneOfRuns bool // made by ofRun
	// Shift, if not nil, is the change of the test data that the methods are also evaluated on.
	Shift  *shift.Data
	unitOf []string // of the test examples; nil until they are needed
	// Save, if not nil, is called with the outcomes of each method, n×width, while they are in memory.
	Save func(key string, outcomes []float64, width int) error
}

// Result is the outcome of a comparison.
type Result struct {
	*Comparison
	Methods []*Method // in the order of the tables
	Steps   []Step    // the price list
	Tests   int       // the number of differences that p-values are adjusted for
	// Shifted is the difference in the first loss of the two methods of the headline, on all severities of the [shift.Data].
	Shifted   Difference
	Notes     []string // methods that were left out, with the reason
	BatchNorm study.BatchNorm
	Runtime   string // the version of ONNX Runtime

	task    task.Task
	ctx     context.Context
	run     infer.Run
	streams map[*infer.Model]*streamed // by the first network of a method
	runs    []*Result                  // the runs of EachRun, this one first
}

// Method is one row of a comparison.
type Method struct {
	Key     string // name for --methods
	Name    string // name in tables
	Members int
	// Networks is the number of networks for a prediction.
	Networks int
	// Deploy holds the settings with which sample makes the method's ensemble, including the temperature. Posteriors
	// are its runs. Both are nil if no ensemble is equivalent to the method.
	Deploy     *ensemble.Settings
	Posteriors []baseline.Run
	*task.Evaluation
	// AtBestT is the first loss with the method's own temperature, so that the comparison does not depend on one. The
	// temperature is fitted on one half of the test data and applied to the other, averaged over [calibrate.Splits]
	// splits. The loss without a temperature is used if it is lower. NaN if no temperature can be fitted.
	AtBestT float64
	// Scaled holds the method with each calibrator of the task. It is nil if not requested; an element is nil if its
	// calibrator cannot be fitted.
	Scaled []*Scaled
	// Recalibrated is the method after a map has recalibrated its distributions. It is nil if not requested or if the
	// task has no such map.
	Recalibrated *task.Evaluation
	// Threshold is the threshold of the method; 0 means the default.
	Threshold float64
	// Scaling is the scaling that is part of the method, in SWA-Temp and SWA-Vector.
	Scaling *task.Fitted
	// Noise is the fitted noise if the networks predict none.
	Noise *task.Fitted
	// Undetermined is the reason why the data do not determine what was fitted for the method, or "": see [task.Calibration].
	// The tables show such a method, and the verdict does not count it.
	Undetermined string
	// Differences are the differences to the baseline by the key of the loss; nil for the baseline itself. They are
	// between these networks with these draws.
	Differences map[string]Difference
	// Draws is the effect of the random draws of both methods on the difference in the first loss.
	Draws chance.Draws
	// AllGroups has the figures of all test examples, and Groups those of each group, in the order of names. They are nil
	// without Grouping.Report.
	AllGroups *task.Group
	Groups    []*task.Group
	// OverRuns is the difference to the baseline in the first loss over runs of training. It is nil without EachRun.
	OverRuns *chance.OverRuns
	// Shifted are the evaluations on the examples of the [shift.Data], clean ones first. It is nil without a shift.
	Shifted []*task.Evaluation
	dense   *shiftedDense // of networks that score positions
	StaleBN bool          // the batch-norm statistics do not belong to the weights

	noise
	doubts []error // warnings from before the evaluation
}

// Difference is the difference of a method to the baseline in a loss.
type Difference struct {
	chance.Difference
	// Adjusted is the p-value after Holm's procedure over the differences that the verdict may mention. It is NaN for
	// others.
	Adjusted float64
}

// Scaled is a method after its outcomes were scaled.
type Scaled struct {
	*task.Evaluation
	Fitted *task.Fitted
}

func (c *Comparison) targets() baseline.Targets {
	data := []dataset.Dataset{c.Test}
	if c.Shift != nil {
		if data = append(data, c.Shift.Sets...); c.Shift.Clean != nil {
			data = append(data, c.Shift.Clean)
		}
	}
	return baseline.Targets{Data: data, Validation: c.Validation, Units: c.unitNumbers(), FitsAll: c.fitsAll(), Noise: c.Runs[0].Network.Axis() == 0 && !c.oneOfRuns,
		Members: task.Numeric(c.Runs[0].Network.Posterior.Card.Task)} // for other tasks the average suffices
}

// fitsAll reports whether something is fitted to the validation data for every method: a scaling, a threshold, or noise that
// the networks do not predict.
func (c *Comparison) fitsAll() bool {
	n := c.Runs[0].Network
	lacks := task.Numeric(n.Posterior.Card.Task) // before the first run
	if t := n.Known(); t != nil {
		lacks = task.Missing(t) != nil
	}
	return lacks || c.Scalings || c.By != detect.Criterion{}
}

// Images returns about how many images Run sends through networks.
func (c *Comparison) Images() int64 {
	n := c.Inputs.Images(c.targets())
	c.eachOther(func(_ int, one *Comparison) error {
		n += one.Images()
		return nil
	})
	return n
}

// Fill runs a shard of the methods' networks and puts their outputs into the run's store.
func (c *Comparison) Fill(ctx context.Context, run infer.Run, shard *infer.Shard) error {
	if err := baseline.Fill(ctx, run, shard, &c.Inputs, c.targets()); err != nil {
		return err
	}
	return c.eachOther(func(_ int, one *Comparison) error { return one.Fill(ctx, run, shard) })
}

// Left returns about how many images Run, or Fill of a shard, still sends through networks: damaged images of the shift,
// and others. The run's store has the outputs for the rest.
func (c *Comparison) Left(ctx context.Context, run infer.Run, shard *infer.Shard) (damaged, others int64, err error) {
	ids := map[string]bool{}
	for _, d := range c.Shift.Sets {
		ids[dataset.ID(d)] = true
	}
	run.Store, run.Progress = run.Store.Again(), nil
	own := infer.Shard{Of: 1} // all networks, one after the other
	if shard != nil {
		own = *shard
	}
	var mu sync.Mutex
	err = c.left(ctx, run, &own, func(data dataset.Dataset, images int) {
		mu.Lock()
		defer mu.Unlock()
		if ids[dataset.ID(data)] {
			damaged += int64(images)
		} else {
			others += int64(images)
		}
	})
	return damaged, others, err
}

func (c *Comparison) left(ctx context.Context, run infer.Run, shard *infer.Shard, missing func(data dataset.Dataset, images int)) error {
	if err := baseline.Left(ctx, run, shard, &c.Inputs, c.targets(), missing); err != nil {
		return err
	}
	return c.eachOther(func(_ int, one *Comparison) error { return one.left(ctx, run, shard, missing) })
}

// Run evaluates the methods. The baseline of the differences is SWA with temperature scaling. If that is missing, or its
// temperature is not determined, it is SWA, or the last checkpoint with temperature scaling, or else the first method.
func (c *Comparison) Run(ctx context.Context, run infer.Run) (*Result, error) {
	r := &Result{Comparison: c, Runtime: run.About(), ctx: ctx, run: run}
	targets := c.targets()
	if c.MaxMembers > c.Members {
		targets.More = r.more
	}
	notes, err := baseline.Predict(ctx, run, &c.Inputs, targets, r.add)
	if err != nil {
		return nil, err
	}
	r.Notes = append(r.Notes, notes...)
	if err := baseline.InOrder(r.Methods, r.Notes, func(m *Method) string { return m.Key }); err != nil {
		return nil, err
	}
	r.align()
	r.compare()
	r.adjust()
	return r, r.overRuns(ctx, run)
}

// align makes all evaluations comparable.
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
	task.Align(all...)
}

// add evaluates the predictions of a method.
func (r *Result) add(p *baseline.Predicted) error {
	if p.Models != nil {
		return r.addStreamed(p)
	}
	test := p.Data[0]
	r.task = test.Task
	m := &Method{Key: p.Key, Name: p.Name, Members: p.Members, Networks: p.Networks(), StaleBN: p.StaleBN}
	if m.Deploy, m.Posteriors = r.Inputs.Deploy(p.Key); m.Deploy != nil && p.Drawn {
		m.Deploy.Members = p.Members
	}
	by, ok := task.Find(r.task, p.By)
	if p.By != "" && !ok {
		if slices.Contains(r.Inputs.Asked, p.Key) {
			r.Notes = append(r.Notes, fmt.Sprintf("%s is left out: %s scaling is not for the task %s", p.Name, p.By, r.task.About().Name))
		}
		return nil
	}
	if why := r.idle(p); why != "" {
		if slices.Contains(r.Inputs.Asked, p.Key) {
			r.Notes = append(r.Notes, why)
		}
		return nil
	}
	outcomes, validation, noise, err := r.settle(test.Mean(), r.validation(p))
	if err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("%s is left out: %v", p.Name, err))
		return nil
	}
	own := outcomes // outcomes of the method before scaling
	m.Undetermined = cmp.Or(noise.Undetermined(), p.Fitted.Undetermined())
	if m.Noise = noise; noise != nil {
		if m.fits, err = r.refits(m, noise, test.Mean(), r.validation(p)); err != nil {
			return err
		}
		m.deploy(noise)
	}
	if p.By != "" {
		scaled, s, err := r.scale(by, outcomes, validation)
		if err != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("%s is left out: %v", p.Name, err))
			return nil
		}
		m.deploy(s)
		if err := r.decide(m, r.applied(s, validation)); err != nil {
			return err
		}
		if m.fits, err = r.refits(m, s, outcomes, validation); err != nil {
			return err
		}
		outcomes, m.Scaling, m.Name = scaled, s, r.named(p.Name, s)
		m.Undetermined = cmp.Or(m.Undetermined, s.Undetermined())
	} else if err := r.decide(m, validation); err != nil {
		return err
	}
	if p.Fitted != nil {
		if m.fits, err = r.refitsWith(m, p.Fitted, p.With); err != nil {
			return err
		}
	}
	if err := r.evaluate(m, outcomes, own); err != nil {
		return err
	}
	if err := r.group(m, outcomes); err != nil {
		return err
	}
	if r.Shift != nil {
		if err := r.shifted(m, outcomes, p.Data[1:]); err != nil {
			return err
		}
	}
	if err := r.mix(m, p); err != nil {
		return err
	}
	if err := r.redraw(m, p); err != nil {
		return err
	}
	m.Warnings = append(append(m.Warnings, p.Notes...), m.doubts...)
	m.warnOfNoise()
	if m.Scaling != nil {
		m.Warnings = append(m.Warnings, m.Scaling.Warnings()...)
	} else if r.Scalings {
		m.Scaled = make([]*Scaled, len(r.calibrators()))
		for i, c := range r.calibrators() {
			outcomes, s, err := r.scale(c, own, validation)
			if err != nil {
				m.warn("no %s scaling: %w", c.Method, err)
				continue
			}
			of := &Method{Name: m.Name}
			if err := r.decide(of, r.applied(s, validation)); err != nil {
				return err
			}
			e, err := task.Evaluate(r.task, outcomes, r.unitLabels(), r.options(of))
			if err != nil {
				return err
			}
			m.Scaled[i] = &Scaled{e, s}
		}
		if err := r.recalibrate(m, own, validation); err != nil {
			return err
		}
	}
	r.Methods = append(r.Methods, m)
	return nil
}

func (m *Method) warn(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Errorf(format, args...))
}

// named returns the name of a method with its fitted number.
func (r *Result) named(name string, s *task.Fitted) string {
	if s.Numbers() == "" {
		return name
	}
	if stem, ok := strings.CutSuffix(name, "-Temp"); ok {
		name = stem + "-" + s.By.Name
	}
	return fmt.Sprintf("%s (%s = %s)", name, s.By.Symbol, s.Numbers())
}

// calibrators returns the calibrators that the tables compare. The first fits a single number.
func (r *Result) calibrators() []task.Calibrator {
	return slices.DeleteFunc(r.task.Calibrators(), func(c task.Calibrator) bool { return c.Unlisted })
}

func (r *Result) options(m *Method) task.EvaluateOptions {
	return task.EvaluateOptions{Threshold: m.Threshold, EvaluateOptions: calibrate.EvaluateOptions{Seed: r.Seed}}
}

// evaluate evaluates a method. own are its outcomes before a temperature.
func (r *Result) evaluate(m *Method, outcomes, own []float64) (err error) {
	labels := r.unitLabels()
	if m.Evaluation, err = task.Evaluate(r.task, outcomes, labels, r.options(m)); err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	m.AtBestT = math.NaN()
	best := outcomes
	if m.Undetermined != "" { // the probabilities may be rounded to 0
		best = own
	}
	if c, err := task.CrossFits(r.task, r.first(), best, labels, r.Seed); err != nil {
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

// validation returns the outcomes of a method on the validation data, or nil without such data.
func (r *Result) validation(p *baseline.Predicted) []float64 {
	if p.Validation == nil {
		return nil
	}
	return p.Validation.Mean()
}

// fit fits a calibrator on the validation data, or on halves of the test data without it.
func (r *Result) fit(by task.Calibrator, outcomes, validation []float64) (*task.Fitted, error) {
	if r.Validation == nil {
		return task.CrossFit(r.task, by, outcomes, r.unitLabels(), 2, r.Seed)
	}
	f, err := by.On(validation, r.Validation.Labels())
	if err != nil {
		return nil, fmt.Errorf("validation data: %w", err)
	}
	return f.Rounded(), nil
}

// scale returns calibrated outcomes with their fit.
func (r *Result) scale(by task.Calibrator, outcomes, validation []float64) ([]float64, *task.Fitted, error) {
	f, err := r.fit(by, outcomes, validation)
	if err != nil {
		return nil, nil, err
	}
	return f.Apply(r.task, outcomes), f, nil
}

// loss returns the loss that decides verdicts.
func (r *Result) loss() task.Loss { return r.Methods[0].Losses[0] }

// value returns the mean of that loss for a method.
func (r *Result) value(m *Method) float64 { return m.Value(r.loss().Key) }

// main returns the difference of a method in that loss.
func (r *Result) main(m *Method) Difference { return m.Differences[r.loss().Key] }

// errorLoss is the key of the loss that counts errors. Some tasks have none.
const errorLoss = "error"

// base returns the baseline.
func (r *Result) base() *Method { return r.baseOf((*Method).sound) }

// baseOf returns the baseline among the methods that ok accepts, or the first method if it accepts none.
func (r *Result) baseOf(ok func(*Method) bool) *Method {
	for _, key := range []string{baseline.SWATemp, baseline.SWA, baseline.SGDTemp} {
		if m := r.method(key); m != nil && ok(m) {
			return m
		}
	}
	if i := slices.IndexFunc(r.Methods, ok); i >= 0 {
		return r.Methods[i]
	}
	return r.Methods[0]
}

// sound reports whether the data determine all that was fitted for the method.
func (m *Method) sound() bool { return m.Undetermined == "" }

// counted returns the number of methods that the verdict can count.
func (r *Result) counted() (n int) {
	for _, m := range r.Methods {
		if m.sound() {
			n++
		}
	}
	return n
}

// method returns the method with a key, or nil.
func (r *Result) method(key string) *Method {
	if i := slices.IndexFunc(r.Methods, func(m *Method) bool { return m.Key == key }); i >= 0 {
		return r.Methods[i]
	}
	return nil
}
