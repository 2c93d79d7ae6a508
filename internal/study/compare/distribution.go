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

// parts shows the main metrics of each target, or one metric of each class or document. It returns nil if there is only one.
func (r *Result) parts() *report.NamedTable {
	if len(r.Methods) == 0 || r.Methods[0].Parts == nil {
		return nil
	}
	all, names := r.Methods[0].Parts, r.Runs[0].Network.Posterior.Card.ClassNames
	if cut, isText := dataset.CutOf(r.Test); isText {
		if names = cut.Documents; names == nil {
			return nil
		}
	}
	name := func(k int) string {
		if len(names) == len(all) {
			return names[k]
		}
		return all[k].Name
	}
	switch first := all[0].Evaluation(); {
	case first.Has("perplexity"):
		return &report.NamedTable{Title: "Each document", Explanation: "The perplexity of each document.", Table: r.crossTable(name, "perplexity", "tokens")}
	case first.Has("iou"):
		return &report.NamedTable{Title: "Each class", Explanation: "The intersection over union of each class. JSON has further figures.", Table: r.crossTable(name, "iou", "share")}
	}
	t := report.NewTable(append([]report.Column{{Header: " ", Empty: " "}, {Header: "method"}}, study.Columns(all[0].Evaluation().Main())...)...)
	for k := range all {
		target := name(k)
		for _, m := range r.Methods {
			t.Row(append([]string{target, m.Name}, study.Cells(m.Parts[k].Evaluation().Main())...)...)
			target = ""
		}
	}
	return &report.NamedTable{Title: "Each target", Table: t}
}

// crossTable shows the size of each part, and a metric of it for each method that figures name.
func (r *Result) crossTable(name func(part int) string, metric, size string) *report.Table {
	var named []*Method
	for _, m := range r.Methods {
		if r.major(m) {
			named = append(named, m)
		}
	}
	parts := r.Methods[0].Parts
	first := parts[0].Evaluation()
	columns := []report.Column{{Header: first.Score(metric).Header}, decimal(first.Score(size).Header)}
	for _, m := range named {
		columns = append(columns, decimal(m.short()))
	}
	t := report.NewTable(columns...)
	for k, part := range parts {
		cells := []string{name(k), study.Cell(part.Evaluation().Score(size))}
		for _, m := range named {
			cells = append(cells, study.Cell(m.Parts[k].Evaluation().Score(metric)))
		}
		t.Row(cells...)
	}
	return t
}

// calibrations returns the task's figures with the methods that figures name.
func (r *Result) calibrations() (all []plot.Curve) {
	place := map[string]int{}
	for _, m := range r.Methods {
		if m.StaleBN || !r.major(m) {
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
