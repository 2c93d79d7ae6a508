package sweep

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// A Window says which checkpoints are averaged: the last ones, with weights that rise. Its zero value stands for all alike.
type Window struct {
	Last  int // the number of checkpoints; 0 for all
	Power int // see [swag.FitOptions.Power]
}

// String describes the window.
func (w Window) String() string {
	switch {
	case w.Power > 0:
		return "weights that rise as " + w.weights()
	case w.Last > 0:
		return fmt.Sprintf("the last %d", w.Last)
	}
	return "all"
}

// Setting returns what makes a fit take the window, which is not that of all checkpoints.
func (w Window) Setting() (name setting.Setting, value string) {
	if w.Power > 0 {
		return setting.Mean, w.weights()
	}
	return setting.Last, strconv.Itoa(w.Last)
}

// weights says how the weights rise.
func (w Window) weights() string { return fmt.Sprintf("t^%d", w.Power) }

// The windows that are tried, besides all checkpoints. A power of 4 has half of the weight on the last eighth of the checkpoints. Powers
// of 2 and 8 are no better in testdata/windows.py.
var (
	windowLasts = []int{3, 5, 10, 20}
	windowPower = 4
)

// leastWindowed is the number of checkpoints from which windows are tried.
const leastWindowed = 5

// Windows returns the windows that are tried, all checkpoints first. A fit with the posterior's options can take each.
func (s *Sweep) Windows() []Window {
	p := s.Network.Posterior
	list, o := []Window{{}}, p.Options
	if len(p.Checkpoints) < leastWindowed {
		return list
	}
	for _, k := range windowLasts {
		if k < len(p.Checkpoints) {
			list = append(list, Window{Last: k})
		}
	}
	if o.Deviations == swag.Running && o.Compat == "" {
		list = append(list, Window{Power: windowPower})
	}
	return list
}

// WindowChoice is the choice of a window on validation data.
type WindowChoice struct {
	Window      // the chosen one
	Checkpoints int
	Tried       []TriedWindow // all checkpoints first
	// Over is the loss of the window with the lowest one minus that of all checkpoints. The interval holds for all windows together.
	Over chance.Interval
	// Why is the reason why nothing tells, or "".
	Why      string
	By       string // what is fitted for each window, in words
	Examples int    // that chose
	Images   int64  // that the networks saw
}

// TriedWindow is a window with its mean first loss. Each example has that of a temperature that is fitted to the others.
type TriedWindow struct {
	Window
	NLL    float64
	losses []float64
	why    string // the reason why the data determine no temperature, or ""
}

// Better reports whether a window takes the place of all checkpoints.
func (c *WindowChoice) Better() bool { return c.Window != Window{} }

// Found says in words what was found.
func (c *WindowChoice) Found() string {
	switch {
	case c.Why != "":
		return fmt.Sprintf("SWA averages all %d checkpoints alike: %s.", c.Checkpoints, c.Why)
	case c.Better():
		return fmt.Sprintf("%s validation examples prefer %v of %d checkpoints to all of them: NLL %s %s, with the choice counted.",
			report.Thousands(c.Examples), c.Window, c.Checkpoints, report.Signed(c.Over.Mean, 4),
			report.Interval(c.Over.Low, c.Over.High, 4))
	}
	return fmt.Sprintf("%s validation examples show no average that is better than that of all %d checkpoints.",
		report.Thousands(c.Examples), c.Checkpoints)
}

// String says in words what was found, and what it cost.
func (c *WindowChoice) String() string {
	if c.Why != "" {
		return c.Found()
	}
	var tried []string
	for _, t := range c.Tried {
		tried = append(tried, fmt.Sprintf("%s for %v", report.Fixed(t.NLL, 4), t.Window))
	}
	return fmt.Sprintf("%s With %s for each average, the NLL is %s. %d networks saw %s examples for this choice.", c.Found(), c.By,
		strings.Join(tried, ", "), len(c.Tried), report.Thousands(int(c.Images)))
}

// ChooseWindow compares averages of the posterior's checkpoints, in training order, on the validation data: [Sweep.Windows]. Each has
// batch-norm statistics and a temperature of its own. A window is taken only if its interval against all checkpoints excludes 0. The
// interval holds for all windows together, so it counts the choice among them. Few labels choose nothing.
//
// testdata/windows.py has the rule on small networks. What follows on the same data counts no further cost of the choice.
func (s *Sweep) ChooseWindow(ctx context.Context, run infer.Run, models []*onnxio.Model) (*WindowChoice, error) {
	c := &WindowChoice{Checkpoints: len(models), Examples: s.Validation.Len()}
	on := s.tuning()
	var theta []weights.Vector
	for _, m := range models {
		parameters, _, err := s.Network.Vectors(m)
		if err != nil {
			return nil, err
		}
		theta = append(theta, parameters)
	}
	determined := false
	for _, w := range s.Windows() {
		tried, err := on.window(ctx, run, w, theta, c)
		for _, m := range models {
			m.Release()
		}
		if err != nil {
			return nil, err
		}
		c.Tried, c.Images = append(c.Tried, tried), c.Images+on.each()
		if determined = determined || tried.why == ""; math.IsInf(tried.NLL, 0) || math.IsNaN(tried.NLL) {
			c.Why = cmp.Or(tried.why, "a loss is not finite")
			return c, nil
		}
	}
	if !determined {
		c.Why = c.Tried[0].why
		return c, nil
	}
	c.choose()
	return c, ctx.Err()
}

// choose takes the window with the lowest loss, if its interval allows it.
func (c *WindowChoice) choose() {
	var differences [][]float64
	for _, t := range c.Tried[1:] {
		differences = append(differences, minus(t.losses, c.Tried[0].losses))
	}
	best := 0
	for k, over := range chance.Together(differences, make([]float64, len(differences))) {
		if k == 0 || over.Mean < c.Over.Mean {
			best, c.Over = k, over
		}
	}
	if c.Over.High < 0 {
		c.Window = c.Tried[1+best].Window
	}
}

// WindowImages returns the number of examples that the networks of [Sweep.ChooseWindow] see.
func (s *Sweep) WindowImages() int64 {
	on := s.tuning()
	return int64(len(s.Windows())) * on.each()
}

// window predicts the data with an average, and computes its losses.
func (s *Sweep) window(ctx context.Context, run infer.Run, w Window, theta []weights.Vector, c *WindowChoice) (t TriedWindow, err error) {
	t.Window = w
	if w.Last > 0 {
		theta = theta[len(theta)-w.Last:]
	}
	parameters, who := swag.Average(theta, w.Power), fmt.Sprintf("SWA, %v", w)
	if (w == Window{}) {
		all, err := swag.NewSampler(s.Network.Posterior, swag.SampleOptions{})
		if err != nil {
			return t, err
		}
		parameters = all.Vector(ctx, 0)
	}
	fresh, err := batchnorm.Recompute(ctx, run, s.Network, parameters, s.BatchNorm)
	if err != nil {
		return t, fmt.Errorf("%s: %w", who, err)
	}
	model, err := s.Network.Model(who, parameters, weights.Slice(fresh.Statistics))
	if err != nil {
		return t, err
	}
	sums := &infer.Sums{}
	if err := run.Predict(ctx, model, s.Test, sums); err != nil {
		return t, err
	}
	if t.losses, err = s.unseen(sums, c, &t); err == nil {
		t.NLL = stat.Mean(t.losses, nil)
	}
	return t, err
}

// unseen returns the first loss of each example, at a temperature that is fitted to the others. If the data determine none, they are
// those without a temperature.
func (s *Sweep) unseen(sums *infer.Sums, c *WindowChoice, t *TriedWindow) ([]float64, error) {
	labels, by := s.Test.Labels(), sums.Task.Calibrators()[0]
	if noise := task.Missing(sums.Task); noise != nil {
		by = *noise
	}
	c.By = by.Words
	losses := func(of *task.Calibration) ([]float64, error) {
		outcomes := sums.Mean()
		if of != nil {
			outcomes = sums.Task.Apply(nil, of, outcomes)
		}
		list, err := task.Losses(sums.Task, outcomes, labels, s.options())
		if err != nil || len(list) == 0 { // a regression without noise has none
			return nil, err
		}
		return list[0].Values, nil
	}
	fitted, noFit := by.On(sums.Mean(), labels)
	if noFit != nil { // a true class has probability 0
		t.why = noFit.Error()
		return losses(nil)
	}
	if t.why = fitted.Undetermined(); t.why != "" {
		t.why = "the validation data determine no " + by.Words + ": " + t.why
		return losses(nil)
	}
	one := fitted.Rounded().Single()
	number, _ := one.Number()
	refit, err := chance.NewRefit(func(factor float64) ([]float64, [][]float64, error) {
		on, err := losses(one.With(number * factor))
		return on, nil, err
	})
	if err == nil && refit.Unseen == nil {
		return losses(one)
	}
	return refit.Unseen, err
}
