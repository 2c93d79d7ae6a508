package compare

import (
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Additional results for tasks whose networks predict distributions: the members' mixture, recalibrated
// distributions, separate results for several targets, and figures.

// mix adds the scores of the mixture of a method's members. It requires that all members were kept and that no more
// than one noise was fitted.
func (r *Result) mix(m *Method, p *baseline.Predicted) error {
	t, ok := r.task.(task.Mixed)
	if !ok || p.Single() == nil || m.Noise != nil && m.Noise.CrossFitted() || m.Scaling != nil && m.Scaling.CrossFitted() {
		return nil
	}
	var members [][]float32
	var weights []float64
	for _, g := range p.Single() {
		outcomes := g.Mean()
		if m.Noise != nil {
			outcomes = withNoise(r.task, m.Noise, outcomes)
		}
		members, weights = append(members, outcomes), append(weights, float64(g.Weight)/p.Data[0].Weight)
	}
	return t.EvaluateMixture(m.Evaluation, members, weights, r.Test.Labels(), m.Scaling.Single())
}

func withNoise(t task.Task, noise *task.Fitted, outcomes []float32) []float32 {
	wide := make([]float64, len(outcomes))
	for i, v := range outcomes {
		wide[i] = float64(v)
	}
	out := make([]float32, len(outcomes))
	for i, v := range noise.Apply(t, wide) {
		out[i] = float32(v)
	}
	return out
}

// recalibrate evaluates the method's outcomes after a map recalibrated their distributions. Tasks without such a map
// are left alone.
func (r *Result) recalibrate(m *Method, outcomes, validation []float64) error {
	by, ok := task.Find(r.task, task.ByIsotonic)
	if !ok {
		return nil
	}
	maps, err := r.fit(by, outcomes, validation)
	if err != nil {
		return err
	}
	opts := r.options(m)
	opts.Maps = maps
	if m.Recalibrated, err = task.Evaluate(r.task, outcomes, r.Test.Labels(), opts); err == nil {
		m.Recalibrated.Warnings = append(m.Recalibrated.Warnings, maps.Warnings()...)
	}
	return err
}

// recalibrationTable shows each method's distributions before and after recalibration. It returns nil for tasks
// without it.
func (r *Result) recalibrationTable() *report.Table {
	how, ok := task.Find(r.task, task.ByIsotonic)
	if !ok {
		return nil
	}
	columns := append([]report.Column{{Header: "method"}}, study.Columns(r.Methods[0].Only(how.Columns))...)
	table := report.NewTable(append(columns, named(how.Columns)...)...)
	for _, m := range r.Methods {
		cells := append([]string{m.Name}, study.Cells(m.Only(how.Columns))...)
		table.Row(append(cells, calibrated(m.Recalibrated, how.Columns)...)...) // nil if it is scaled already
	}
	table.Note(how.Words + " is fitted on " + r.fittedOn() + "; it moves quantiles and intervals, and leaves no density: there is no NLL after it")
	return table
}

// mostParts is the largest number of targets, classes or documents that are shown separately by default.
const mostParts = 10

// partsTable shows the main metrics of each target, or one metric of each class or document. It returns nil if there is only one.
func (r *Result) partsTable() *report.Table {
	if len(r.Methods) == 0 || r.Methods[0].Parts == nil {
		return nil
	}
	parts, names := r.Methods[0].Parts, r.Runs[0].Network.Posterior.Card.ClassNames
	if cut, isText := dataset.CutOf(r.Test); isText {
		names = cut.Documents
	}
	name := func(k int) string {
		if len(names) == len(parts) {
			return names[k]
		}
		return parts[k].Name
	}
	main := func(p task.Part) []task.Score { return (&task.Evaluation{Scores: p.Scores}).Main() }
	switch first := (&task.Evaluation{Scores: parts[0].Scores}); {
	case r.isText() && names == nil:
		return nil
	case first.Has("perplexity"):
		return r.crossTable(name, "perplexity", "tokens")
	case first.Has("iou"):
		return r.crossTable(name, "iou", "share")
	}
	t := report.NewTable(append([]report.Column{{Header: " ", Empty: " "}, {Header: "method"}}, study.Columns(main(parts[0]))...)...)
	for k := range parts {
		target := name(k)
		for _, m := range r.Methods {
			t.Row(append([]string{target, m.Name}, study.Cells(main(m.Parts[k]))...)...)
			target = ""
		}
	}
	return t
}

// crossTable shows the size of each part, and a metric of it for each method that figures name.
func (r *Result) crossTable(name func(part int) string, metric, size string) *report.Table {
	score := func(m *Method, k int, key string) task.Score {
		return (&task.Evaluation{Scores: m.Parts[k].Scores}).Score(key)
	}
	columns := []report.Column{{Header: score(&r.Methods[0], 0, metric).Header}, decimal(score(&r.Methods[0], 0, size).Header)}
	for i := range r.Methods {
		if r.major(i) {
			columns = append(columns, decimal(r.Methods[i].short()))
		}
	}
	t := report.NewTable(columns...)
	for k := range r.Methods[0].Parts {
		cells := []string{name(k), study.Cell(score(&r.Methods[0], k, size))}
		for i := range r.Methods {
			if r.major(i) {
				cells = append(cells, study.Cell(score(&r.Methods[i], k, metric)))
			}
		}
		t.Row(cells...)
	}
	return t
}

// calibrations returns the task's figures with the methods that figures name.
func (r *Result) calibrations() (all []plot.Curve) {
	place := map[string]int{}
	for i := range r.Methods {
		m := &r.Methods[i]
		if m.StaleBN || !r.major(i) {
			continue
		}
		for _, f := range m.Figures {
			k, ok := place[f.Key]
			if !ok {
				k = len(all)
				place[f.Key] = k
				all = append(all, plot.Curve{Title: f.Title, XLabel: f.XLabel, YLabel: f.YLabel, Note: f.Note, Ideal: &f.Ideal})
			}
			all[k].Series = append(all[k].Series, plot.Series{Name: m.Name, X: f.X, Y: f.Y, Lower: f.Lower, Upper: f.Upper})
		}
	}
	return all
}
