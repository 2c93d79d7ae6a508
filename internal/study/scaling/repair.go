package scaling

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/labels"
	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Methods for predictions of labels and of regressions, in addition to those of calibrate.Scaler.
const (
	ByVariance = "variance" // one factor for all variances
	ByNoise    = "noise"    // the standard deviation of each target, if networks predict none
	ByIsotonic = "isotonic" // a map of the distribution function of each target
)

// Predictions are saved predictions of labels or of a regression.
type Predictions struct {
	Path, SHA256 string
	*task.Saved
}

// wanted lists the accepted names of columns in files, in addition to those that score writes.
var wanted = map[string][]predictions.Wanted{
	"labels": {
		{Names: []string{"labels", "label", "targets", "target", "y"}, Cells: []string{"label_%d", "target_%d"}},
		{Names: []string{"probabilities", "probs", "p"}, Cells: []string{"probability_%d", "prob_%d", "p_%d"}},
		{Names: []string{"logits", "logit"}, Cells: []string{"logit_%d"}},
	},
	"regression": {
		{Names: []string{"target", "targets", "labels", "label", "y"}, Cells: []string{"target_%d", "label_%d"}},
		{Names: []string{"mean"}, Cells: []string{"mean_%d"}},
		{Names: []string{"std"}, Cells: []string{"std_%d"}},
		{Names: []string{"aleatoric_std"}, Cells: []string{"aleatoric_std_%d"}},
		{Names: []string{"epistemic_std"}, Cells: []string{"epistemic_std_%d"}},
		{Names: []string{"member_mean"}, Cells: []string{"member_%d_mean", "member_%d_mean_%d"}},
		{Names: []string{"member_std"}, Cells: []string{"member_%d_std", "member_%d_std_%d"}},
	},
}

// Read reads predictions for the task with the name of. The argument truth is the path of a file with the targets of
// the examples, or "".
func Read(path, of, truth string) (*Predictions, error) {
	rows, err := predictions.ReadRows(path, wanted[of])
	if err != nil {
		return nil, err
	}
	if truth != "" {
		what := wanted[of][:1]
		known, err := predictions.ReadRows(truth, what)
		if err != nil {
			return nil, err
		}
		if name := what[0].Names[0]; known.Len != rows.Len || known.Values[name] == nil {
			return nil, fmt.Errorf("%s: %s of %d examples, want %d as in %s", truth, name, len(known.Values[name])/max(1, known.Width(name)), rows.Len, path)
		} else {
			rows.Values[name] = known.Values[name]
		}
	}
	saved, err := task.Restore(of, task.Columns{Len: rows.Len, Values: rows.Values})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Predictions{path, rows.SHA256, saved}, nil
}

// Methods returns the methods that fit the predictions; the first is the default.
func (p *Predictions) Methods() []string {
	switch {
	case p.Task.Name() == "labels":
		return []string{string(labels.ByTemperature), string(labels.ByTemperatures), string(labels.ByPlatt)}
	case task.Lacking(p.Task) != nil:
		return []string{ByNoise}
	}
	return []string{ByVariance, string(task.ByVariances), ByIsotonic}
}

// Repair describes a fit to predictions of labels or of a regression.
type Repair struct {
	Method    string
	Folds     int
	Seed      uint64
	Fit, Test *Predictions // Test may be nil
	// Weights holds the weights of a regression's saved members; nil means equal weights.
	Weights []float64
}

// Fitted is the result of a fit. One of the fields is set.
type Fitted struct {
	Scaling *calibrate.Scaling
	Noise   *task.Noise
	Maps    []*regression.Isotonic // for each target
}

// CheckMethod returns an error if the method does not fit the predictions.
func (r *Repair) CheckMethod() error {
	methods := r.Fit.Methods()
	if slices.Contains(methods, r.Method) {
		return nil
	}
	lacks := ""
	if r.Fit.Task.Name() == "regression" {
		lacks = ", which have standard deviations"
		if task.Lacking(r.Fit.Task) != nil {
			lacks = ", which have no standard deviations"
		}
	}
	return fmt.Errorf("method %q: %s has predictions of the task %s%s; want %s", r.Method, r.Fit.Path, r.Fit.Task.Name(), lacks, strings.Join(methods, " or "))
}

// Check returns an error if the predictions do not fit together.
func (r *Repair) Check() error {
	if t := r.Test; t != nil {
		if r.Fit.Task.Size() != t.Task.Size() {
			return fmt.Errorf("%s: %s, want %s as in %s", t.Path, t.Task.Size(), r.Fit.Task.Size(), r.Fit.Path)
		}
		if (task.Lacking(t.Task) != nil) != (task.Lacking(r.Fit.Task) != nil) {
			return fmt.Errorf("%s: standard deviations in one of the files only, the other being %s", t.Path, r.Fit.Path)
		}
	}
	for _, p := range []*Predictions{r.Fit, r.Test} {
		if p == nil || p.Members == 0 {
			continue
		}
		if err := r.checkMembers(p); err != nil {
			return err
		}
	}
	return nil
}

// checkMembers returns an error if the mean of the members is not the saved mean. In that case the members have
// weights.
func (r *Repair) checkMembers(p *Predictions) error {
	if r.Weights != nil && len(r.Weights) != p.Members {
		return fmt.Errorf("%s: %d members, want %d as in the ensemble", p.Path, p.Members, len(r.Weights))
	}
	for i := range p.Len() {
		for k := range p.Known.Width {
			m := p.Mixture(i, k, r.Weights, &task.Noise{Std: slices.Repeat([]float64{1}, p.Known.Width)}, 1)
			mean, largest := m.Moments().Mean, 0.0
			for _, v := range m.Means {
				largest = max(largest, math.Abs(v))
			}
			// Members are float32, and columns of text have nine digits.
			if said := p.Moments(p.Outcomes, i, k).Mean; math.Abs(mean-said) > 1e-6*largest {
				return fmt.Errorf("%s: row %d: the mean is %v, and that of the members %v: they have weights, which --ensemble knows", p.Path, p.Rows[i], said, mean)
			}
		}
	}
	return nil
}

// fit fits the method to some predictions.
func (r *Repair) fit(p *task.Saved) (f Fitted, err error) {
	switch r.Method {
	case ByNoise:
		f.Noise, err = task.FitSavedNoise(p, r.Weights)
	case ByIsotonic:
		for k := range p.Known.Width {
			var pits []float64
			for i := range p.Len() {
				pits = append(pits, r.distribution(p, i, k).CDF(p.Known.Values[i*p.Known.Width+k]))
			}
			m, err := regression.FitIsotonic(pits)
			if err != nil {
				return f, fmt.Errorf("target %d: %w", k, err)
			}
			f.Maps = append(f.Maps, m)
		}
	case ByVariance:
		f.Scaling, err = p.Task.Fit(calibrate.ByTemperature, p.Outcomes, p.Known)
	default:
		f.Scaling, err = p.Task.Fit(calibrate.Scaler(r.Method), p.Outcomes, p.Known)
	}
	return f, err
}

// distribution returns the predicted distribution of target k of example i. It is the mixture of the saved members,
// as in the intervals of score, or else the Gaussian with its moments.
func (r *Repair) distribution(p *task.Saved, i, k int) regression.Distribution {
	if p.Members > 0 {
		return p.Mixture(i, k, r.Weights, nil, 1)
	}
	return p.Moments(p.Outcomes, i, k).Gaussian()
}

// repaired holds predictions after a fit, by example and target. Fields that do not apply are nil.
type repaired struct {
	outcomes []float64 // n×Width
	mixture  []float64 // −log density of the mixture of members at the target
	pits     []float64 // of the distribution
	low      []float64 // of its 95 % interval
	high     []float64
}

// parts returns the fields, which all have the same number of values for each example.
func (a *repaired) parts() []*[]float64 {
	return []*[]float64{&a.outcomes, &a.mixture, &a.pits, &a.low, &a.high}
}

// scatter copies the values of some rows to their places among n.
func (a *repaired) scatter(of *repaired, rows []int, n int) {
	for part, all := range a.parts() {
		some := *of.parts()[part]
		width := len(some) / len(rows)
		if *all == nil && some != nil {
			*all = make([]float64, n*width)
		}
		for i, row := range rows {
			copy((*all)[row*width:], some[i*width:][:width])
		}
	}
}

// apply applies a fit to predictions; the zero Fitted changes nothing.
func (r *Repair) apply(f Fitted, p *task.Saved) *repaired {
	a := &repaired{outcomes: p.Outcomes}
	switch {
	case f.Noise != nil:
		a.outcomes = p.Task.(task.Noisy).AddNoise(nil, f.Noise, p.Outcomes)
	case f.Scaling != nil:
		a.outcomes = p.Task.Apply(nil, f.Scaling, p.Outcomes)
	}
	if p.Members > 0 && r.Method != ByIsotonic && (p.Stds != nil || f.Noise != nil) {
		r.mixtures(a, f, p)
	}
	if r.Method == ByIsotonic {
		r.intervals(a, f, p)
	}
	return a
}

// mixtures scores the mixtures of the saved members.
func (r *Repair) mixtures(a *repaired, f Fitted, p *task.Saved) {
	for i := range p.Len() {
		for k := range p.Known.Width {
			factor := 1.0
			if s := f.Scaling; s != nil && s.Vector != nil {
				factor = s.Vector.Scale[k]
			} else if s != nil {
				factor = s.Temperatures[0]
			}
			a.mixture = append(a.mixture, -p.Mixture(i, k, r.Weights, f.Noise, factor).LogDensity(p.Known.Values[i*p.Known.Width+k]))
		}
	}
}

// intervals computes the intervals of the distributions, recalibrated if there is a map.
func (r *Repair) intervals(a *repaired, f Fitted, p *task.Saved) {
	for i := range p.Len() {
		for k := range p.Known.Width {
			d, y := r.distribution(p, i, k), p.Known.Values[i*p.Known.Width+k]
			low, high, pit := d.Quantile((1-regression.Level)/2), d.Quantile((1+regression.Level)/2), d.CDF(y)
			if f.Maps != nil {
				low, high = f.Maps[k].Interval(d, regression.Level)
				pit = f.Maps[k].CDF(d, y)
			}
			a.pits, a.low, a.high = append(a.pits, pit), append(a.low, low), append(a.high, high)
		}
	}
}

// crossFit applies to each fold the fit to the other folds.
func (r *Repair) crossFit() (*repaired, error) {
	n := r.Fit.Len()
	if n < r.Folds {
		return nil, fmt.Errorf("%d rows for %d folds", n, r.Folds)
	}
	all, folds := &repaired{}, calibrate.Folds(n, r.Folds, r.Seed)
	for k, rows := range folds {
		f, err := r.fit(r.Fit.Part(slices.Concat(slices.Concat(folds[:k]...), slices.Concat(folds[k+1:]...))))
		if err != nil {
			return nil, fmt.Errorf("without fold %d: %w", k, err)
		}
		all.scatter(r.apply(f, r.Fit.Part(rows)), rows, n)
	}
	return all, nil
}

// Run fits and scores. The argument producer is the program and its version.
func (r *Repair) Run(producer string) (*Repaired, error) {
	fitted, err := r.fit(r.Fit.Saved)
	if err != nil {
		return nil, err
	}
	out := &Repaired{Fitted: fitted, repair: r, producer: producer, warnings: fitted.warnings()}
	out.columns = r.columns()
	crossed, err := r.crossFit()
	if err != nil {
		return nil, err
	}
	if err := out.compare("fitted on", "cross-fitted", r.Fit, crossed); err != nil {
		return nil, err
	}
	worth := slices.IndexFunc(out.columns, func(m task.Metric) bool { return m.Key == out.worth() })
	out.before, out.crossed = out.rows[0].values[worth], out.rows[1].values[worth]
	after, err := r.judge(r.Fit, r.apply(fitted, r.Fit.Saved), false)
	if err != nil {
		return nil, err
	}
	out.after = after.values[worth]
	if r.Test != nil {
		err = out.compare("test", "calibrated", r.Test, r.apply(fitted, r.Test.Saved))
	}
	return out, err
}

// warnings returns the warnings of the fit without repetition.
func (f Fitted) warnings() (texts []string) {
	var all []error
	switch {
	case f.Noise != nil:
		all = f.Noise.Warnings
	case f.Scaling != nil:
		all = f.Scaling.Warnings
	}
	for _, m := range f.Maps {
		all = append(all, m.Warnings...)
	}
	for _, w := range all {
		if !slices.Contains(texts, w.Error()) {
			texts = append(texts, w.Error())
		}
	}
	return texts
}

// columns returns the columns of the table.
func (r *Repair) columns() (columns []task.Metric) {
	if r.Method == ByIsotonic {
		return []task.Metric{
			{Key: "mace", Header: "MACE", Digits: 4},
			{Key: "coverage", Header: "coverage", Digits: 1, Percent: true},
			{Key: "width", Header: "width", Digits: 4},
		}
	}
	for _, m := range r.Fit.Task.NewEvaluator(task.EvaluateOptions{}).Metrics() {
		if m.Further {
			continue
		}
		columns = append(columns, m)
		if m.Key == "nll" && r.Fit.Members > 0 {
			columns = append(columns, task.Metric{Key: "nll_mixture", Header: "of the mixture", Digits: 4})
		}
	}
	return columns
}

// judge scores predictions. If they lack noise, it only computes the errors of their means.
func (r *Repair) judge(p *Predictions, a *repaired, lacking bool) (row repairedRow, err error) {
	found := map[string]float64{}
	switch {
	case r.Method == ByIsotonic:
		found = r.judgeIntervals(p, a)
	default:
		outcomes := a.outcomes
		if lacking { // the value of the noise does not matter
			outcomes = p.Task.(task.Noisy).AddNoise(nil, &task.Noise{Std: slices.Repeat([]float64{1}, p.Known.Width)}, outcomes)
		}
		e, err := task.Evaluate(p.Task, outcomes, p.Known, task.EvaluateOptions{EvaluateOptions: calibrate.EvaluateOptions{Seed: r.Seed}})
		if err != nil {
			return row, err
		}
		for _, s := range e.Scores {
			if !lacking || s.Key == "rmse" || s.Key == "mae" {
				found[s.Key] = s.Value
			}
		}
		if !lacking {
			row.losses, row.warnings = e.Loss("nll"), e.Warnings
		}
		if a.mixture != nil {
			found["nll_mixture"] = stat.Mean(a.mixture, nil)
		}
	}
	for _, m := range r.columns() {
		v, ok := found[m.Key]
		if !ok {
			v = math.NaN()
		}
		row.values = append(row.values, v)
	}
	return row, nil
}

// judgeIntervals returns means over the targets.
func (r *Repair) judgeIntervals(p *Predictions, a *repaired) map[string]float64 {
	targets, n := p.Known.Width, float64(len(a.pits))
	out := map[string]float64{}
	for k := range targets {
		var pits []float64
		for i := k; i < len(a.pits); i += targets {
			pits = append(pits, a.pits[i])
		}
		out["mace"] += regression.MACE(pits) / float64(targets)
	}
	for i, y := range p.Known.Values {
		if a.low[i] <= y && y <= a.high[i] {
			out["coverage"] += 1 / n
		}
		out["width"] += (a.high[i] - a.low[i]) / n
	}
	return out
}
