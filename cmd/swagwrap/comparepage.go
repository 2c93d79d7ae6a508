package main

import (
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
)

// comparePage fills a report with what a comparison found.
func comparePage(page *report.Report, cmp *ensemble.Comparison, bn *batchNorm, methods []ensemble.Method) *report.Report {
	_, baseline := baselineOf(methods)
	page.Verdict = compareVerdict(methods, cmp.Test.Len())
	page.Warnings = append(bn.warnings(), cmp.Notes...)
	page.Facts = append(compareFacts(cmp), bn.facts()...)
	page.Tables = []report.NamedTable{
		{Title: "Methods", Explanation: "NLL is the mean per image in nats; lower is better but for accuracy. At best T: with a temperature of its own.", Table: compareTable(methods)},
		{Title: "Further metrics", Table: metricsTable(methods)},
	}
	if cmp.Scalings {
		page.Tables = append(page.Tables, report.NamedTable{Title: "With scalings of their own", Table: scalingsTable(methods)})
	}
	d := plot.Differences{Title: "NLL against " + baseline, Label: "NLL − NLL(" + baseline + "), nats per image", Baseline: baseline}
	for _, m := range methods {
		if m.StaleBN {
			continue // its NLL would flatten the others
		}
		page.Methods = append(page.Methods, plot.Method{Name: m.Name, Reliability: m.Reliability, RiskCoverage: m.RiskCoverage})
		if !m.Baseline {
			d.Rows = append(d.Rows, plot.Difference{Name: m.Name, Value: m.NLLDifference.Mean, Lower: m.NLLDifference.Low, Upper: m.NLLDifference.High})
		}
	}
	if len(d.Rows) > 0 {
		page.Differences = append(page.Differences, d)
	}
	return page
}
