package task

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
	gauss "github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Saved holds the averaged outcomes of examples, restored from a file of predictions.
type Saved struct {
	Task     Task
	Outcomes []float64   // n×Width
	Known    truth.Truth // what is known of the n examples
	// Rows are the indices in the file, from 0, of the examples in Outcomes. Examples without predictions are left out,
	// and LeftOut counts them.
	Rows    []int
	LeftOut int
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
		for _, i := range rows {
			some = append(some, all[i*width:][:width]...)
		}
		return some
	}
	out.Outcomes, out.Means, out.Stds = pick(s.Outcomes), pick(s.Means), pick(s.Stds)
	for _, i := range rows {
		out.Rows = append(out.Rows, s.Rows[i])
	}
	return out
}

// EachTarget calls f for each target y of a regression, with its example and its number in the example.
func (s *Saved) EachTarget(f func(i, k int, y float64)) {
	for at, y := range s.Known.Values {
		f(at/s.Known.Width, at%s.Known.Width, y)
	}
}

// RestoreClasses computes outcomes from probabilities or logits of classes, n×classes. Two classes have the task
// binary. labels may be nil, which is an error; see [IsNoTruth].
func RestoreClasses(values []float64, classes int, probabilities bool, labels []int) (*Saved, error) {
	if labels == nil {
		return nil, ErrNoTruth
	}
	name, count := "classes", classes
	if classes == 2 {
		name, count = "binary", 1
	}
	t, err := Of(name, OutputSpec{Count: count})
	if err != nil {
		return nil, err
	}
	if probabilities {
		values = normalised(values, classes)
	} else {
		values = calibrate.Softmax(nil, values, classes, 1)
	}
	return &Saved{Task: t, Outcomes: values, Known: truth.Truth{Classes: labels}}, nil
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
	Ints   []int     // in place of Values, one for each example
}

// Written returns the targets and the calibrated predictions. For a regression these are mean and standard deviation,
// or mean and the given 95 % interval if it is not nil.
func (s *Saved) Written(outcomes, low, high []float64) []Written {
	if classes := s.Known.Classes; classes != nil {
		return []Written{{Name: "labels", Column: "label", Width: 1, Ints: classes}, {Name: "probs", Cell: "p_%d", Width: s.Task.About().Width, Values: outcomes}}
	}
	width := s.Known.Width
	if s.Task.About().Classes > 0 {
		probs, _ := s.Task.Shown(outcomes)
		return []Written{{Name: "labels", Cell: "label_%d", Width: width, Values: s.Known.Values}, {Name: "probabilities", Cell: "probability_%d", Width: width, Values: probs}}
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
func (s *Saved) FirstWeighted(weights []float64) (i int, said, mean float64) {
	i = -1
	ones := &Calibration{Method: ByNoise, NoiseStd: slices.Repeat([]float64{1}, s.Known.Width)}
	s.EachTarget(func(at, k int, _ float64) {
		m := s.Mixture(at, k, weights, ones)
		largest := 0.0
		for _, v := range m.Means {
			largest = max(largest, math.Abs(v))
		}
		// Members are float32, and columns of text have nine digits.
		if a, b := s.Moments(s.Outcomes, at, k).Mean, m.Moments().Mean; i < 0 && math.Abs(a-b) > 1e-6*largest {
			i, said, mean = at, a, b
		}
	})
	return i, said, mean
}

// Distribution returns the predicted distribution of target k of example i. It is the mixture of the saved members, or
// else the Gaussian with the moments of the average.
func (s *Saved) Distribution(i, k int, weights []float64) gauss.Distribution {
	if s.Members > 0 {
		return s.Mixture(i, k, weights, nil)
	}
	return s.Moments(s.Outcomes, i, k).Gaussian()
}

// Columns holds the numbers of a file by name, as in [Task.Columns]. There are Len rows. Missing numbers are NaN, and
// missing columns are nil.
type Columns struct {
	Len    int
	Values map[string][]float64
}

func (c Columns) width(name string) int { return len(c.Values[name]) / max(1, c.Len) }

func (c Columns) row(name string, i int) []float64 {
	w := c.width(name)
	return c.Values[name][i*w:][:w]
}

// empty reports whether row i of a column has only missing values.
func (c Columns) empty(name string, i int) bool {
	return !slices.ContainsFunc(c.row(name, i), func(v float64) bool { return v == v })
}

// Restore computes averaged outcomes from the columns that score writes. For labels, these are labels and
// probabilities, or logits. For a regression they are target, mean, and either std or aleatoric_std and epistemic_std.
// The members of a regression have member_mean and member_std. A regression without aleatoric_std and std lacks noise.
func Restore(name string, c Columns) (*Saved, error) {
	switch name {
	case "labels":
		return restoreLabels(c)
	case "regression":
		return restoreRegression(c)
	}
	return nil, fmt.Errorf("predictions of the task %q are not read by their columns", name)
}

// ErrNoTruth is the error of predictions without true values.
var ErrNoTruth = errors.New("no labels")

// IsNoTruth reports whether predictions came without true values.
func IsNoTruth(err error) bool { return errors.Is(err, ErrNoTruth) }

func restoreLabels(c Columns) (*Saved, error) {
	from := "probabilities"
	if c.Values[from] == nil {
		from = "logits"
	}
	n := c.width(from)
	switch {
	case n == 0:
		return nil, errors.New("no probabilities or logits of labels")
	case c.Values["labels"] == nil:
		return nil, ErrNoTruth
	case c.width("labels") != n:
		return nil, fmt.Errorf("%d labels are known, and %s are of %d", c.width("labels"), from, n)
	}
	x, err := Of("labels", OutputSpec{Output: from, Count: n})
	if err != nil {
		return nil, err
	}
	t := x.(labels)
	out := &Saved{Task: t, Known: truth.Truth{Width: n}}
	for i := range c.Len {
		if c.empty(from, i) {
			out.LeftOut++
			continue
		}
		known := slices.Clone(c.row("labels", i))
		for k, v := range known {
			if v != v {
				known[k] = truth.Unknown
			}
		}
		if err := truth.Labels.Check(known); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		outcome := make([]float64, t.About().Width)
		p, q, _ := t.parts(outcome)
		for k, v := range c.row(from, i) {
			switch {
			case from == "logits" && v-v == 0:
				p[k], q[k] = 1/(1+math.Exp(-v)), 1/(1+math.Exp(v))
			case from == "logits":
				return nil, fmt.Errorf("row %d: label %d: logit %v, want a finite number", i, k, v)
			case !(0 <= v && v <= 1):
				return nil, fmt.Errorf("row %d: label %d: probability %v, want 0 to 1", i, k, v)
			default:
				p[k], q[k] = v, 1-v
			}
		}
		out.add(i, outcome, known)
	}
	return out, out.check()
}

// add adds a row. row is its index in the file.
func (s *Saved) add(row int, outcome, known []float64) {
	s.Outcomes, s.Known.Values, s.Rows = append(s.Outcomes, outcome...), append(s.Known.Values, known...), append(s.Rows, row)
}

func (s *Saved) check() error {
	if len(s.Rows) == 0 {
		return errors.New("no row has predictions")
	}
	return nil
}

func restoreRegression(c Columns) (*Saved, error) {
	n := c.width("mean")
	switch {
	case n == 0:
		return nil, errors.New("no means")
	case c.Values["target"] == nil:
		return nil, ErrNoTruth
	}
	for _, name := range []string{"target", "std", "aleatoric_std", "epistemic_std"} {
		if c.Values[name] != nil && c.width(name) != n {
			return nil, fmt.Errorf("%d numbers of %s, and means of %s", c.width(name), name, cmp.Or(map[int]string{1: "1 target"}[n], fmt.Sprintf("%d targets", n)))
		}
	}
	r := restoring{Columns: c, n: n}
	r.t = regression{OutputSpec: OutputSpec{Output: "mean", Count: n, Regression: &RegressionSpec{Units: r.units()}}, targets: n}
	if c.Values["std"] != nil || c.Values["aleatoric_std"] != nil {
		r.t.Count, r.t.Regression.Head = 2*n, gauss.ByVariance
	}
	r.t.describe()
	out := &Saved{Task: r.t, Known: truth.Truth{Width: n}}
	if m := c.width("member_mean"); m > 0 {
		if m%n != 0 || c.Values["member_std"] != nil && c.width("member_std") != m {
			return nil, fmt.Errorf("%d means of members of %d targets, and %d of their standard deviations", m, n, c.width("member_std"))
		}
		out.Members = m / n
	}
	for i := range c.Len {
		if c.empty("mean", i) {
			out.LeftOut++
			continue
		}
		if err := truth.Numbers.Check(c.row("target", i)); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		outcome, err := r.outcome(i)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		out.add(i, outcome, c.row("target", i))
		if out.Members > 0 {
			out.Means = append(out.Means, c.row("member_mean", i)...)
			if c.Values["member_std"] != nil {
				out.Stds = append(out.Stds, c.row("member_std", i)...)
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

// restoring holds the columns of a regression with n targets.
type restoring struct {
	Columns
	n int
	t regression
}

// units returns units in which means are of order 1, because outcomes hold their squares.
func (r *restoring) units() (units []gauss.Units) {
	for k := range r.n {
		var means []float64
		for i := range r.Len {
			if v := r.row("mean", i)[k]; v-v == 0 {
				means = append(means, v)
			}
		}
		u, err := gauss.FitUnits(means)
		if err != nil { // all means are equal, or there are none
			u = gauss.Units{Std: 1}
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
	var out []float64
	for k, mean := range r.row("mean", i) {
		u := r.t.units(k)
		std := func(name string) float64 {
			if r.Values[name] == nil {
				return 0
			}
			return r.row(name, i)[k] / u.Std
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
			return nil, fmt.Errorf("standard deviations of target %d: aleatoric %v, epistemic %v, want finite numbers of 0 or more", k, aleatoric*u.Std, epistemic*u.Std)
		case r.t.numbers().Head != "" && aleatoric == 0:
			return nil, fmt.Errorf("standard deviations of target %d: aleatoric 0, want a number above it", k)
		}
		out = append(out, z, z*z+epistemic*epistemic, aleatoric*aleatoric)
	}
	return out, nil
}

// Fit fits a calibrator. With saved members, noise and maps are fitted to their mixtures instead of the moments of the
// average. weights are the weights of the members, or nil for equal ones.
func (s *Saved) Fit(by Calibrator, weights []float64) (*Calibration, error) {
	if s.Members > 0 && by.Method == ByNoise {
		return s.fitNoise(weights)
	}
	if s.Members > 0 && by.Method == ByIsotonic {
		return s.fitMaps(weights)
	}
	return by.Fit(s.Outcomes, s.Known)
}

// fitNoise fits the noise of each target; see [gauss.FitMixtureNoise].
func (s *Saved) fitNoise(weights []float64) (*Calibration, error) {
	out, targets := &Calibration{Method: ByNoise}, s.Known.Width
	for k := range targets {
		var y, means []float64
		for i := range s.Len() {
			y = append(y, s.Known.Values[i*targets+k])
			for m := range s.Members {
				means = append(means, s.Means[(i*s.Members+m)*targets+k])
			}
		}
		variance, err := gauss.FitMixtureNoise(y, means, s.Members, weights)
		if err != nil {
			return nil, fmt.Errorf("noise of target %d: %w", k, err)
		}
		out.NoiseStd = append(out.NoiseStd, math.Sqrt(variance))
	}
	return out, nil
}

// fitMaps fits a map of the distribution function of each target.
func (s *Saved) fitMaps(weights []float64) (*Calibration, error) {
	pits := make([][]float64, s.Known.Width)
	s.EachTarget(func(i, k int, y float64) {
		pits[k] = append(pits[k], s.Mixture(i, k, weights, nil).CDF(y))
	})
	return mapsOf(pits)
}

// Mixture returns the mixture of the stored members for target k of example i, calibrated by noise or factors of
// variances. c may be nil.
func (s *Saved) Mixture(i, k int, weights []float64, c *Calibration) gauss.Mixture {
	m := gauss.Mixture{Weights: weights}
	for j := range s.Members {
		at := (i*s.Members+j)*s.Known.Width + k
		m.Means = append(m.Means, s.Means[at])
		if c != nil && c.NoiseStd != nil {
			m.Variances = append(m.Variances, c.NoiseStd[k]*c.NoiseStd[k])
		} else {
			m.Variances = append(m.Variances, s.Stds[at]*s.Stds[at])
		}
	}
	if c == nil || of(c.Factors, k, 1) == 1 {
		return m
	}
	return gauss.VarianceScaling{Factor: of(c.Factors, k, 1)}.Mixture(m)
}

// Moments returns the moments of target k of a regression's averaged outcome, in the units of the target.
func (s *Saved) Moments(outcomes []float64, i, k int) gauss.Moments {
	t := s.Task.(regression)
	return t.moments(outcomes[i*t.About().Width:], k)
}
