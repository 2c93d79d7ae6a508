package compare

import (
	"context"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/infer"
)

// ofRun returns the comparison of the methods in one run of training.
func (c *Comparison) ofRun(k int) *Comparison {
	one := *c
	one.Runs, one.External = c.Runs[k:k+1], nil
	one.EachRun, one.oneOfRuns = false, true
	one.Shift, one.Report, one.Save, one.Scored = nil, nil, nil, nil
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

func (r *Result) overRuns(ctx context.Context, run infer.Run) error {
	if !r.EachRun {
		return nil
	}
	r.OfRuns = []*Result{r}
	err := r.eachOther(func(_ int, one *Comparison) error {
		of, err := one.Run(ctx, run)
		if err == nil {
			for _, m := range of.Methods { // the rest is not needed
				m.Redrawn = Redrawn{}
			}
			r.OfRuns = append(r.OfRuns, of)
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
				r.Notes = append(r.Notes, fmt.Sprintf("%s and %s share the checkpoint %s: they are not independent runs, and intervals "+
					"over runs are too narrow", other, run.Network.Posterior.Path, ck.Path))
				break
			}
			seen[ck.SHA256] = run.Network.Posterior.Path
		}
	}
	base := r.runsBase()
	for _, m := range r.Methods {
		if m.OverRuns = nil; m != base && m.soundInRuns(r) && base.soundInRuns(r) {
			var differences [][]float64 // in the first loss, by run and unit of chance
			others := base.InRuns(r)
			for k, own := range m.InRuns(r) {
				differences = append(differences, r.Clustered(difference(own.Losses[0].Values, others[k].Losses[0].Values), nil))
			}
			o := chance.NewOverRuns(differences, r.Seed)
			m.OverRuns = &o
		}
	}
	return nil
}

// InRuns returns the method in each run that has it. Methods that use all runs are in none.
func (m *Method) InRuns(r *Result) (all []*Method) {
	if len(m.Posteriors) > 1 || baseline.UsesAllRuns(m.Key) {
		return nil
	}
	for _, run := range r.OfRuns {
		if own := run.Method(m.Key); own != nil {
			all = append(all, own)
		}
	}
	return all
}

// soundInRuns reports whether each run has the method, and determines all that was fitted for it.
func (m *Method) soundInRuns(r *Result) bool {
	in := m.InRuns(r)
	return len(in) == len(r.OfRuns) && !slices.ContainsFunc(in, func(own *Method) bool { return !own.Sound() })
}

// runsBase returns the baseline of differences over runs.
func (r *Result) runsBase() *Method {
	return r.baseOf(func(m *Method) bool { return m.soundInRuns(r) })
}
