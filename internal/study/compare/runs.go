package compare

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
)

// fewRuns is the number of runs below which their spread is hardly known.
const fewRuns = 5

// ofRun returns the comparison of the methods in one run of training.
func (c *Comparison) ofRun(k int) *Comparison {
	one := *c
	one.Runs, one.External = c.Runs[k:k+1], nil
	one.EachRun, one.oneOfRuns = false, true
	one.Shift, one.Report, one.Save = nil, nil, nil
	one.Scalings, one.AllMetrics, one.MaxMembers = false, false, 0
	return &one
}

// eachOther calls f with the comparison of each run but the first, whose methods are in the main table.
func (c *Comparison) eachOther(f func(k int, one *Comparison) error) error {
	for k := 1; c.EachRun && k < len(c.Runs); k++ {
		if err := f(k, c.ofRun(k)); err != nil {
			return fmt.Errorf("%s: %w", c.Runs[k].Network.Posterior.Path, err)
		}
	}
	return nil
}

// overRuns compares the methods in each run.
func (r *Result) overRuns(ctx context.Context, run infer.Run) error {
	if !r.EachRun {
		return nil
	}
	r.runs = []*Result{r}
	err := r.eachOther(func(_ int, one *Comparison) error {
		of, err := one.Run(ctx, run)
		if err == nil {
			for _, m := range of.Methods { // the rest is not needed
				m.noise = noise{}
			}
			r.runs = append(r.runs, of)
		}
		return err
	})
	if err != nil {
		return err
	}
	seen := map[string]string{}
	for _, run := range r.Runs {
		for _, ck := range run.Network.Posterior.Checkpoints {
			if other, ok := seen[ck.SHA256]; ok && other != run.Network.Posterior.Path {
				r.Notes = append(r.Notes, fmt.Sprintf("%s and %s share the checkpoint %s: they are not independent runs, and intervals over runs are too narrow", other, run.Network.Posterior.Path, ck.Path))
				break
			}
			seen[ck.SHA256] = run.Network.Posterior.Path
		}
	}
	base := r.runsBase()
	for _, m := range r.Methods {
		if m.OverRuns = nil; m != base && m.soundInRuns(r) && base.soundInRuns(r) {
			o := chance.NewOverRuns(r.runDifferences(m, base), r.Seed)
			m.OverRuns = &o
		}
	}
	return nil
}

// inRuns returns the method in each run that has it. Methods that use all runs are in none.
func (m *Method) inRuns(r *Result) (all []*Method) {
	if len(m.Posteriors) > 1 || baseline.UsesAllRuns(m.Key) {
		return nil
	}
	for _, run := range r.runs {
		if own := run.method(m.Key); own != nil {
			all = append(all, own)
		}
	}
	return all
}

// soundInRuns reports whether each run has the method, and determines all that was fitted for it.
func (m *Method) soundInRuns(r *Result) bool {
	in := m.inRuns(r)
	return len(in) == len(r.runs) && !slices.ContainsFunc(in, func(own *Method) bool { return !own.sound() })
}

// runsBase returns the baseline of differences over runs.
func (r *Result) runsBase() *Method {
	return r.baseOf(func(m *Method) bool { return m.soundInRuns(r) })
}

// runDifferences returns the differences of two methods in the first loss, by run and unit of chance.
func (r *Result) runDifferences(m, base *Method) (all [][]float64) {
	others := base.inRuns(r)
	for k, own := range m.inRuns(r) {
		all = append(all, r.clustered(difference(own.Losses[0].Values, others[k].Losses[0].Values), nil))
	}
	return all
}

// runsTable shows the first loss and the differences to the baseline over runs of training.
func (r *Result) runsTable() *report.Table {
	base, loss := r.runsBase(), r.loss()
	t := report.NewTable(report.Column{Header: fmt.Sprintf("over %d runs", len(r.runs))}, decimal(loss.Name+" ± SD"), decimal("minus "+base.short()+" [95 %]"), decimal("± SD"),
		decimal("P(better) [95 %]"), decimal("sign-flip p"))
	for _, m := range r.Methods {
		in := m.inRuns(r)
		if len(in) < len(r.runs) || m.StaleBN {
			continue
		}
		var values []float64
		for _, own := range in {
			values = append(values, own.Value(loss.Key))
		}
		mean, spread := stat.MeanStdDev(values, nil)
		name := m.short()
		for k, own := range in {
			if !own.sound() {
				t.Warn(fmt.Sprintf("* %s: not counted, since the fit is not determined in the run of %s: %s", m.short(), r.Runs[k].Network.Posterior.Path, own.Undetermined))
				name = m.short() + " *"
			}
		}
		cells := []string{name, report.Fixed(mean, 4) + " ± " + report.Fixed(spread, 4)}
		if o := m.OverRuns; o != nil {
			p := o.Better
			cells = append(cells, intervalText(o.Interval), report.Fixed(o.Spread, 4), fmt.Sprintf("%s [%s, %s]", report.Fixed(p.Mean, 2), report.Fixed(p.Low, 2), report.Fixed(p.High, 2)), report.Fixed(o.SignFlip, 3))
		}
		t.Row(cells...)
	}
	t.Warn(fmt.Sprintf("each posterior is a run of training. Intervals of differences are for new runs and new %s. P(better): share of runs in which the method beats %s, with its exact interval", r.units(), base.short()))
	if n := len(r.runs); n <= 20 {
		t.Warn(fmt.Sprintf("the sign-flip test of %d runs has no p below %s", n, report.Fixed(math.Pow(2, 1-float64(n)), 3)))
	}
	return t
}

// runLines says whether the two methods of the verdict differ over runs of training.
func (r *Result) runLines() []string {
	if r.runs == nil {
		return nil
	}
	base, m := r.runsBase(), r.candidate()
	if m == nil || m.OverRuns == nil || math.IsNaN(m.OverRuns.Low) {
		return nil
	}
	o, n, what := m.OverRuns, len(r.runs), "shows no difference to"
	if o.High < 0 {
		what = "is better than"
	} else if o.Low > 0 {
		what = "is worse than"
	}
	line := fmt.Sprintf("Over %d runs of training %s %s %s: %s, better in %.3g of %d.", n, m.short(), what, base.short(), intervalText(o.Interval), o.Better.Mean*float64(n), n)
	if n < fewRuns {
		line += fmt.Sprintf(" %d runs are few: only large differences can show.", n)
	}
	return []string{line}
}

// runsJSON returns the differences of a method over runs, or nil.
func (m *Method) runsJSON() any {
	o := m.OverRuns
	if o == nil {
		return nil
	}
	return study.Fields("runs", len(o.PerRun), "difference", differenceJSON(Difference{o.Difference, math.NaN()}), "each_run", o.PerRun, "sd", study.Finite(o.Spread),
		"p_better", study.Interval("value", o.Better), "p_better_bootstrap", study.Interval("value", o.Bootstrap), "p_paired_t", study.Finite(o.PairedT), "p_sign_flip", study.Finite(o.SignFlip))
}
