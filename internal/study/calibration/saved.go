package calibration

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Saved holds the averaged outcomes of examples, restored from a file of predictions.
type Saved struct {
	Task     task.Task
	Outcomes []float64     // n×Width
	Logs     []float64     // what calibrations scale, if the file has logits, or else nil: see [task.Logged]
	Known    target.Target // what is known of the n examples
	// Rows are the indices in the file, from 0, of the examples in Outcomes. Examples without predictions are left out,
	// and LeftOut counts them.
	Rows    []int
	LeftOut int
	// Unlabelled counts the examples that are left out because they have predictions and no label.
	Unlabelled int
	Unused     []string // names of arrays or columns that nothing uses
	// Members is the number of members of a regression that the file keeps, or 0. Means and Stds belong to them,
	// n×Members×targets, in the targets' units. Stds is nil without noise.
	Members     int
	Means, Stds []float64
}

// Len returns the number of examples.
func (s *Saved) Len() int { return len(s.Rows) }

// Part returns the given examples.
func (s *Saved) Part(rows []int) *Saved {
	out := &Saved{Task: s.Task, Known: s.Known.Pick(rows), Members: s.Members}
	pick := func(all []float64) (some []float64) {
		width := len(all) / max(1, s.Len())
		some = slices.Grow(some, width*len(rows))
		for _, i := range rows {
			some = append(some, all[i*width:][:width]...)
		}
		return some
	}
	out.Outcomes, out.Logs, out.Means, out.Stds = pick(s.Outcomes), pick(s.Logs), pick(s.Means), pick(s.Stds)
	for _, i := range rows {
		out.Rows = append(out.Rows, s.Rows[i])
	}
	return out
}

// Spreadless returns a warning if nothing says how uncertain each prediction of a regression is, although unused names suggest it.
func (s *Saved) Spreadless() string {
	numbers, ok := s.Task.(task.Incomplete)
	some := predictions.SpreadLike(s.Unused)
	if !ok || numbers.Missing() == nil || len(some) == 0 {
		return ""
	}
	return fmt.Sprintf("one noise is taken for all rows, though %s may say how uncertain each of them is: save standard deviations as "+
		"std, or variances as var", numpy.Quote(some))
}

// EachTarget calls f for each target y of a regression, with its example and its number in the example.
func (s *Saved) EachTarget(f func(i, k int, y float64)) {
	for at, y := range s.Known.Values {
		f(at/s.Known.Width, at%s.Known.Width, y)
	}
}

// restoreClasses computes outcomes from probabilities or logits of classes, n×classes. Two classes have the task
// binary. labels may be nil, which is [predictions.ErrNoTargets].
func restoreClasses(values []float64, classes int, probabilities bool, labels []int) (*Saved, error) {
	if labels == nil {
		return nil, predictions.ErrNoTargets
	}
	name, count := "classes", classes
	if classes == 2 {
		name, count = "binary", 1
	}
	t, err := task.New(name, task.OutputSpec{Count: count})
	if err != nil {
		return nil, err
	}
	out := &Saved{Task: t, Known: target.Target{Classes: labels}}
	if probabilities {
		out.Outcomes = normalised(values, classes)
	} else {
		out.Outcomes = calibrate.Softmax(nil, values, classes, 1)
		out.Logs = t.(task.Logged).Logs(out.Outcomes, values)
	}
	return out, nil
}

// normalised divides each row of probabilities by its sum. If the sum of a row differs from 1 by float64
// rounding only, the row keeps its bits. Then a fit to saved predictions has the bits of a fit in the same process.
func normalised(probs []float64, classes int) []float64 {
	out := slices.Clone(probs)
	for i := 0; i < len(out); i += classes {
		row := out[i : i+classes]
		if sum := floats.Sum(row); math.Abs(sum-1) > 1e-12 {
			floats.Scale(1/sum, row)
		}
	}
	return out
}

// Written is a column or an array of calibrated predictions, with the names that score uses.
type Written struct {
	Name   string // name of the array
	Column string // name of the column, if each example has one number
	Cell   string // name of the column of one element, with a %d; "" if each example has one number
	Width  int
	Values []float64 // n×Width
	Ints   []int     // used instead of Values: one integer for each example
}

// Written returns the targets and the calibrated predictions. For a regression these are mean and standard deviation,
// or mean and the given 95 % interval if it is not nil.
func (s *Saved) Written(outcomes, low, high []float64) []Written {
	if classes := s.Known.Classes; classes != nil {
		return []Written{{
			Name:   "labels",
			Column: "label",
			Width:  1,
			Ints:   classes,
		}, {Name: "probs", Cell: "p_%d", Width: s.Task.About().Width, Values: outcomes}}
	}
	width := s.Known.Width
	if s.Task.About().Classes > 0 {
		probs, _ := s.Task.Shown(outcomes)
		return []Written{{
			Name:   "labels",
			Cell:   "label_%d",
			Width:  width,
			Values: s.Known.Values,
		}, {Name: "probabilities", Cell: "probability_%d", Width: width, Values: probs}}
	}
	var means, stds []float64
	s.EachTarget(func(i, k int, _ float64) {
		m := s.Moments(outcomes, i, k)
		means, stds = append(means, m.Mean), append(stds, m.Std())
	})
	each := func(name string, values []float64) Written {
		w := Written{Name: name, Column: name, Width: width, Values: values}
		if width > 1 {
			w.Cell = name + "_%d"
		}
		return w
	}
	if low != nil {
		return []Written{each("target", s.Known.Values), each("mean", means), each("low", low), each("high", high)}
	}
	return []Written{each("target", s.Known.Values), each("mean", means), each("std", stds)}
}

// FirstWeighted returns the first example whose saved mean is not the mean of its members with the given weights. i is
// −1 if there is none.
func (s *Saved) FirstWeighted(weights []float64) (i int, stated, mean float64) {
	i = -1
	s.EachTarget(func(at, k int, _ float64) {
		m := s.Mixture(at, k, weights, nil)
		largest := 0.0
		for _, v := range m.Means {
			largest = max(largest, math.Abs(v))
		}
		// Members are float32, and columns of text have nine digits.
		if a, b := s.Moments(s.Outcomes, at, k).Mean, m.Moments().Mean; i < 0 && math.Abs(a-b) > 1e-6*largest {
			i, stated, mean = at, a, b
		}
	})
	return i, stated, mean
}

// Distribution returns the predicted distribution of target k of example i. It is the mixture of the saved members, or
// else the Gaussian with the moments of the average.
func (s *Saved) Distribution(i, k int, weights []float64) regression.Distribution {
	if s.Members > 0 {
		return s.Mixture(i, k, weights, nil)
	}
	return s.Moments(s.Outcomes, i, k).Gaussian()
}

// empty reports whether row i of a column has only missing values.
func empty(r *predictions.Rows, name string, i int) bool {
	return !slices.ContainsFunc(r.Row(name, i), func(v float64) bool { return v == v })
}

// restoreLabels computes averaged outcomes from the columns that score writes: labels and probabilities, or logits.
func restoreLabels(r *predictions.Rows) (*Saved, error) {
	from := "probabilities"
	if r.Values[from] == nil {
		from = "logits"
	}
	n := r.Width(from)
	switch {
	case n == 0:
		return nil, errors.New("no probabilities or logits of labels")
	case r.Values["labels"] == nil:
		return nil, predictions.ErrNoTargets
	case r.Width("labels") != n:
		return nil, fmt.Errorf("%d labels are known, and %s are of %d", r.Width("labels"), from, n)
	}
	t, err := task.New("labels", task.OutputSpec{Output: from, Count: n})
	if err != nil {
		return nil, err
	}
	out := &Saved{Task: t, Known: target.Target{Width: n}}
	var signs target.Signs
	for i := range r.Len {
		if empty(r, from, i) {
			out.LeftOut++
			continue
		}
		known := slices.Clone(r.Row("labels", i))
		for k, v := range known {
			signs.Add(v)
			if v != v {
				known[k] = target.Unknown
			}
		}
		if err := target.Labels.Check(known); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		var pairs []float64
		for k, v := range r.Row(from, i) {
			switch {
			case from == "logits" && v-v == 0:
				pairs = append(pairs, 1/(1+math.Exp(v)), 1/(1+math.Exp(-v)))
			case from == "logits":
				return nil, fmt.Errorf("row %d: label %d: logit %v, want a finite number", i, k, v)
			case !(0 <= v && v <= 1):
				return nil, fmt.Errorf("row %d: label %d: probability %v, want 0 to 1", i, k, v)
			default:
				pairs = append(pairs, 1-v, v)
			}
		}
		outcome := t.(task.Paired).FromPairs(pairs)
		out.add(i, outcome, known)
		if from == "logits" {
			out.Logs = append(out.Logs, t.(task.Logged).Logs(outcome, r.Row(from, i))...)
		}
	}
	if err := signs.Err(); err != nil {
		return nil, err
	}
	return out, out.check()
}

// add adds a row. row is its index in the file.
func (s *Saved) add(row int, outcome, known []float64) {
	s.Outcomes, s.Known.Values, s.Rows = append(s.Outcomes, outcome...), append(s.Known.Values, known...), append(s.Rows, row)
}

func (s *Saved) check() error {
	switch {
	case len(s.Rows) == 0 && s.Unlabelled > 0:
		return predictions.ErrNoTargets
	case len(s.Rows) == 0:
		return errors.New("no row has predictions")
	}
	return nil
}

// restoreRegression reads target, mean, and either std or aleatoric_std and epistemic_std. The members have member_mean and
// member_std. A regression without aleatoric_std and std lacks noise.
func restoreRegression(r *predictions.Rows) (*Saved, error) {
	if err := r.Spread(); err != nil {
		return nil, err
	}
	n := r.Width("mean")
	switch {
	case n == 0:
		return nil, errors.New("no means")
	case r.Values["target"] == nil:
		return nil, predictions.ErrNoTargets
	}
	for _, name := range []string{"target", "std", "aleatoric_std", "epistemic_std"} {
		if r.Values[name] != nil && r.Width(name) != n {
			return nil, fmt.Errorf("%d numbers of %s, and means of %s", r.Width(name), name,
				cmp.Or(map[int]string{1: "1 target"}[n], fmt.Sprintf("%d targets", n)))
		}
	}
	of := restoring{Rows: r, units: units(r, n)}
	spec := task.OutputSpec{Output: "mean", Count: n, Regression: &task.RegressionSpec{Units: of.units}}
	if of.noisy = r.Values["std"] != nil || r.Values["aleatoric_std"] != nil; of.noisy {
		spec.Count, spec.Regression.Head = 2*n, regression.ByVariance
	}
	t, err := task.New("regression", spec)
	if err != nil {
		return nil, err
	}
	of.task = t.(task.Targeted)
	out := &Saved{Task: t, Known: target.Target{Width: n}}
	if m := r.Width("member_mean"); m > 0 {
		if m%n != 0 || r.Values["member_std"] != nil && r.Width("member_std") != m {
			return nil, fmt.Errorf("%d means of members of %d targets, and %d of their standard deviations", m, n, r.Width("member_std"))
		}
		out.Members = m / n
	}
	for i := range r.Len {
		if empty(r, "mean", i) {
			out.LeftOut++
			continue
		}
		if empty(r, "target", i) {
			out.Unlabelled++
			continue
		}
		if err := target.Numbers.Check(r.Row("target", i)); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		outcome, err := of.outcome(i)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		out.add(i, outcome, r.Row("target", i))
		if out.Members > 0 {
			out.Means = append(out.Means, r.Row("member_mean", i)...)
			if r.Values["member_std"] != nil {
				out.Stds = append(out.Stds, r.Row("member_std", i)...)
			}
		}
	}
	for name, all := range map[string][]float64{"member_mean": out.Means, "member_std": out.Stds} {
		if slices.ContainsFunc(all, func(v float64) bool { return v-v != 0 || name == "member_std" && !(v > 0) }) {
			return nil, fmt.Errorf("%s: a number that is missing, not finite or no standard deviation", name)
		}
	}
	return out, out.check()
}

// restoring holds the columns of a regression.
type restoring struct {
	*predictions.Rows
	task  task.Targeted
	units []regression.Units // of each target
	noisy bool               // there are standard deviations
}

// units returns units in which means are of order 1, because outcomes hold their squares.
func units(r *predictions.Rows, targets int) (units []regression.Units) {
	for k := range targets {
		var means []float64
		for i := range r.Len {
			if v := r.Row("mean", i)[k]; v-v == 0 {
				means = append(means, v)
			}
		}
		u, err := regression.FitUnits(means)
		if err != nil { // all means are equal, or there are none
			u = regression.Units{Std: 1}
			if means != nil {
				u.Mean = means[0]
			}
		}
		units = append(units, u)
	}
	return units
}

// outcome returns the averaged outcome of row i.
func (r *restoring) outcome(i int) ([]float64, error) {
	var moments []regression.Moments
	for k, mean := range r.Row("mean", i) {
		u := r.units[k]
		std := func(name string) float64 {
			if r.Values[name] == nil {
				return 0
			}
			return r.Row(name, i)[k] / u.Std
		}
		z, epistemic, aleatoric := u.Network(mean), std("epistemic_std"), std("aleatoric_std")
		if r.Values["aleatoric_std"] == nil { // other programs do not split the standard deviation
			total := std("std")
			if r.Values["std"] != nil && !(total > 0) {
				return nil, fmt.Errorf("standard deviation of target %d is %v, want a number above 0", k, total*u.Std)
			}
			aleatoric = math.Sqrt(max(0, total*total-epistemic*epistemic))
		}
		switch {
		case mean-mean != 0:
			return nil, fmt.Errorf("mean of target %d is %v, want a finite number", k, mean)
		case !(epistemic >= 0) || !(aleatoric >= 0) || math.IsInf(epistemic+aleatoric, 1):
			return nil, fmt.Errorf("standard deviations of target %d: aleatoric %v, epistemic %v, want finite numbers of 0 or more", k,
				aleatoric*u.Std, epistemic*u.Std)
		case r.noisy && aleatoric == 0:
			return nil, fmt.Errorf("standard deviations of target %d: aleatoric 0, want a number above it", k)
		}
		moments = append(moments, regression.Moments{Mean: z, Aleatoric: aleatoric * aleatoric, Epistemic: epistemic * epistemic})
	}
	return r.task.FromMoments(moments), nil
}

// Fit fits a calibrator. With saved members, noise and maps are fitted to their mixtures instead of the moments of the
// average. weights are the weights of the members, or nil for equal ones.
func (s *Saved) Fit(by task.Calibrator, weights []float64) (*task.Calibration, error) {
	if s.Members > 0 && by.FitMembers != nil {
		return by.FitMembers(s.Known, func(i, k int) regression.Mixture { return s.Mixture(i, k, weights, nil) })
	}
	if s.Logs != nil {
		return s.Task.(task.Logged).FitLogs(by.Method, s.Logs, s.Known)
	}
	return by.Fit(s.Outcomes, s.Known)
}

// fitParts returns Fit of some of the rows, which takes less time, or nil if the calibrator has no such way.
func (s *Saved) fitParts(by task.Method) (func(rows []int) *task.Calibration, error) {
	t, ok := s.Task.(task.Logged)
	if !ok {
		return nil, nil
	}
	logs := s.Logs
	if classes := s.Task.About().Classes; logs == nil && s.Known.Classes != nil && len(s.Outcomes) == classes*s.Len() {
		logs = calibrate.LogProbs(nil, s.Outcomes)
	}
	return t.FitParts(by, logs, s.Known)
}

// Apply returns the outcomes after a calibration. nil changes nothing.
func (s *Saved) Apply(c *task.Calibration) []float64 {
	switch {
	case c == nil:
		return s.Outcomes
	case s.Logs != nil:
		return s.Task.(task.Logged).ApplyLogs(c, s.Logs)
	}
	return s.Task.Apply(nil, c, s.Outcomes)
}

// scaled returns Logs after a calibration. nil changes nothing.
func (s *Saved) scaled(c *task.Calibration) []float64 {
	if c == nil {
		return s.Logs
	}
	return s.Task.(task.Logged).Scaled(c, s.Logs)
}

// Mixture returns the mixture of the stored members for target k of example i, calibrated by noise or factors of
// variances. c may be nil. Without noise variances are 0.
func (s *Saved) Mixture(i, k int, weights []float64, c *task.Calibration) regression.Mixture {
	m := regression.Mixture{Weights: weights}
	for j := range s.Members {
		at := (i*s.Members+j)*s.Known.Width + k
		m.Means = append(m.Means, s.Means[at])
		std := 0.0
		if c != nil && c.NoiseStd != nil {
			std = c.NoiseStd[k]
		} else if s.Stds != nil {
			std = s.Stds[at]
		}
		m.Variances = append(m.Variances, std*std)
	}
	if c == nil || c.Factor(k) == 1 {
		return m
	}
	return regression.VarianceScaling{Factor: c.Factor(k)}.Mixture(m)
}

// Moments returns the moments of target k of a regression's averaged outcome, in the units of the target.
func (s *Saved) Moments(outcomes []float64, i, k int) regression.Moments {
	return s.Task.(task.Targeted).Moments(outcomes[i*s.Task.About().Width:], k)
}
