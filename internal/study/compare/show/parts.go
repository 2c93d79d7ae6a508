package show

import (
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
)

// mostParts is the largest number of targets, classes or documents that are printed separately by default.
const mostParts = 10

// parts shows the main metrics of each target, or one metric of each class or document. It returns nil if there is only one.
func (r tables) parts() *study.Section {
	if r.Methods[0].Parts == nil {
		return nil
	}
	all, names := r.Methods[0].Parts, r.Runs[0].Network.Posterior.Card.ClassNames
	s := &study.Section{Order: last}
	if !r.AllMetrics && len(all) > mostParts {
		s.Where = study.OnlyOnPage
	}
	if cut, ok := dataset.CutOf(r.Test); ok {
		if names = cut.Documents; names == nil {
			return nil
		}
		s.Instead = setting.Metrics.With("all") + " and " + setting.Report.With("FILE") + " show each document"
	}
	name := func(k int) string {
		if len(names) == len(all) {
			return names[k]
		}
		return all[k].Name
	}
	switch first := all[0].Evaluation(); {
	case first.Has("perplexity"):
		s.NamedTable = report.NamedTable{
			Title:       "Each document",
			Explanation: "The perplexity of each document.",
			Table:       r.crossTable(name, "perplexity", "tokens"),
		}
	case first.Has("iou"):
		s.NamedTable = report.NamedTable{
			Title:       "Each class",
			Explanation: "The intersection over union of each class. JSON has further figures.",
			Table:       r.crossTable(name, "iou", "share"),
		}
	default:
		s.NamedTable = report.NamedTable{Title: "Each target", Table: r.eachTarget(name)}
	}
	return s
}

// eachTarget shows the main metrics of each target.
func (r tables) eachTarget(name func(part int) string) *report.Table {
	all := r.Methods[0].Parts
	t := report.NewTable(append([]report.Column{{Header: " ", Empty: " "}, {Header: "method"}},
		study.Columns(all[0].Evaluation().Main())...)...)
	for k := range all {
		target := name(k)
		for _, m := range r.Methods {
			t.Row(append([]string{target, m.Name}, study.Cells(m.Parts[k].Evaluation().Main())...)...)
			target = ""
		}
	}
	return t
}

// crossTable shows the size of each part, and a metric of it for each method that figures name.
func (r tables) crossTable(name func(part int) string, metric, size string) *report.Table {
	var named []*compare.Method
	for _, m := range r.Methods {
		if r.major(m) {
			named = append(named, m)
		}
	}
	parts := r.Methods[0].Parts
	first := parts[0].Evaluation()
	columns := []report.Column{{Header: first.Score(metric).Header}, decimal(first.Score(size).Header)}
	for _, m := range named {
		columns = append(columns, decimal(short(m)))
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
