package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
)

// writeComparison prints the settings, the tables and the verdict.
func writeComparison(w io.Writer, cmp *ensemble.Comparison, methods []ensemble.Method, all bool) error {
	fmt.Fprintf(w, "%s\n\n", settings(cmp))
	if err := compareTable(methods).WriteText(w); err != nil {
		return err
	}
	if all {
		for _, t := range []*report.Table{metricsTable(methods), scalingsTable(methods)} {
			fmt.Fprintln(w)
			if err := t.WriteText(w); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(w)
	for _, line := range compareVerdict(methods, cmp.Test.Len()) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// compareFacts are the settings that the numbers depend on.
func compareFacts(cmp *ensemble.Comparison) []report.Fact {
	facts := []report.Fact{
		fact("test images", "%s", report.Thousands(cmp.Test.Len())),
		fact("members", "%d", cmp.Members),
		fact("scale", "%g", cmp.Scale),
		fact("rank", "%d", cmp.Runs[0].Network.Posterior.Options.Columns),
		fact("seed", "%d", cmp.Seed),
		fact("T fitted on", "%s", fittedOn(cmp)),
	}
	if n := len(cmp.Runs); n > 1 {
		facts = append(facts, fact("posteriors", "%d; single rows of %s", n, cmp.Runs[0].Network.Posterior.Path))
	}
	return facts
}

// settings are the same in a line.
func settings(cmp *ensemble.Comparison) string {
	s := fmt.Sprintf("%s test images, %s, scale %g, rank %d, seed %d; T fitted on %s", report.Thousands(cmp.Test.Len()), plural(cmp.Members, "member"),
		cmp.Scale, cmp.Runs[0].Network.Posterior.Options.Columns, cmp.Seed, fittedOn(cmp))
	if n := len(cmp.Runs); n > 1 {
		s += fmt.Sprintf("; %d posteriors, single rows of %s", n, cmp.Runs[0].Network.Posterior.Path)
	}
	return s
}

func fittedOn(cmp *ensemble.Comparison) string {
	if cmp.Validation == nil {
		return "halves of the test images"
	}
	return report.Thousands(cmp.Validation.Len()) + " validation images"
}

// baselineOf returns the method that the others are compared with, and what to
// call it.
func baselineOf(methods []ensemble.Method) (*ensemble.Method, string) {
	for i, m := range methods {
		if !m.Baseline {
			continue
		}
		switch m.Key {
		case ensemble.SWATemp:
			return &methods[i], "SWA-Temp"
		default:
			return &methods[i], m.Name
		}
	}
	return nil, ""
}

func compareTable(methods []ensemble.Method) *report.Table {
	_, baseline := baselineOf(methods)
	t := report.NewTable(
		report.Column{Header: "method"},
		report.Column{Header: "accuracy", Align: report.Decimal},
		report.Column{Header: "NLL", Align: report.Decimal},
		report.Column{Header: "(at best T)", Align: report.Decimal},
		report.Column{Header: "ECE", Align: report.Decimal},
		report.Column{Header: "Brier", Align: report.Decimal},
		report.Column{Header: "NLL − NLL(" + baseline + ")", Align: report.Decimal},
		report.Column{Header: "[95 %]"},
		report.Column{Header: " ", Empty: " "},
	)
	for _, m := range methods {
		diff, interval := "", ""
		if !m.Baseline {
			diff = report.Signed(m.NLLDifference.Mean, 4)
			interval = report.Interval(m.NLLDifference.Low, m.NLLDifference.High, 4)
		}
		t.Row(m.Name, report.Percent(m.Metrics.Accuracy, 1), report.Fixed(m.Metrics.NLL, 4), report.Fixed(m.NLLAtBestT, 4),
			report.Fixed(m.Metrics.ECE, 4), report.Fixed(m.Metrics.Brier, 4), diff, interval, marks(m))
	}
	for _, m := range methods {
		if m.StaleBN {
			t.Note("! batch-norm statistics do not belong to these weights: shown to tell what leaving out the BN update costs")
		}
	}
	addWarnings(t, methods)
	return t
}

// marks point at the notes below a table.
func marks(m ensemble.Method) string {
	mark := ""
	if m.StaleBN {
		mark = "!"
	}
	if len(m.Metrics.Warnings) > 0 {
		mark += "*"
	}
	return mark
}

// addWarnings notes what several methods share once.
func addWarnings(t *report.Table, methods []ensemble.Method) {
	var order []string
	names := make(map[string][]string)
	for _, m := range methods {
		for _, warning := range m.Metrics.Warnings {
			text := warning.Error()
			if names[text] == nil {
				order = append(order, text)
			}
			names[text] = append(names[text], m.Name)
		}
	}
	for _, text := range order {
		who := strings.Join(names[text], ", ")
		if len(names[text]) == len(methods) && len(methods) > 1 {
			who = "all"
		}
		t.Note(fmt.Sprintf("* %s: %s", who, text))
	}
}

// metricsTable has the metrics that the first table leaves out.
func metricsTable(methods []ensemble.Method) *report.Table {
	number := func(header string) report.Column { return report.Column{Header: header, Align: report.Decimal} }
	t := report.NewTable(report.Column{Header: "method"}, number("members"), number("top-5"), number("classwise ECE"), number("ECE, equal width"),
		number("ECE, reference"), number("AURC"), number("risk at 90 %"), number("entropy"), number("set size"), number("set coverage"))
	for _, m := range methods {
		s := m.Metrics
		top5 := ""
		if s.Top5 == s.Top5 {
			top5 = report.Percent(s.Top5, 1)
		}
		t.Row(m.Name, report.Thousands(m.Members), top5, report.Fixed(s.ClasswiseECE, 4), report.Fixed(s.ECEEqualWidth, 4), report.Fixed(s.ECEReference, 4),
			report.Fixed(s.AURC, 5), report.Percent(s.SelectiveRisk, 2), report.Fixed(s.Entropy, 4), report.Fixed(s.SetSize, 2), report.Percent(s.SetCoverage, 1))
	}
	t.Note("risk at 90 %: errors among the 90 % most confident; sets of classes (APS) are fitted to hold the true one in 90 %")
	return t
}

// scalingsTable has each method with a temperature and with vector scaling of its
// own.
func scalingsTable(methods []ensemble.Method) *report.Table {
	number := func(header string) report.Column { return report.Column{Header: header, Align: report.Decimal} }
	t := report.NewTable(report.Column{Header: "method"}, number("NLL"), number("ECE"),
		number("T"), number("NLL at T"), number("ECE at T"), number("accuracy, vector"), number("NLL, vector"), number("ECE, vector"))
	crossed := false
	for _, m := range methods {
		cells := []string{m.Name, report.Fixed(m.Metrics.NLL, 4), report.Fixed(m.Metrics.ECE, 4), "", "", "", "", "", ""}
		if s := m.ByTemperature; s != nil {
			var ts []string
			for _, v := range s.Temperatures {
				ts = append(ts, report.Fixed(v, 2))
			}
			cells[3], cells[4], cells[5] = strings.Join(ts, ", "), report.Fixed(s.Metrics.NLL, 4), report.Fixed(s.Metrics.ECE, 4)
			crossed = crossed || s.CrossFitted
		}
		if s := m.ByVector; s != nil {
			cells[6], cells[7], cells[8] = report.Percent(s.Metrics.Accuracy, 1), report.Fixed(s.Metrics.NLL, 4), report.Fixed(s.Metrics.ECE, 4)
		}
		t.Row(cells...)
	}
	if crossed {
		t.Note("scalings are fitted on one half of the test images and judged on the other")
	} else {
		t.Note("scalings are fitted on the validation images")
	}
	return t
}

// metricsJSON are calibrate.Metrics as JSON has them: what is not a finite number
// is null.
type metricsJSON struct {
	Accuracy      *float64 `json:"accuracy"`
	Top5          *float64 `json:"top5"`
	NLL           *float64 `json:"nll"`
	Brier         *float64 `json:"brier"`
	ECE           *float64 `json:"ece"`
	ECEEqualWidth *float64 `json:"ece_equal_width"`
	ECEReference  *float64 `json:"ece_swag_reference"`
	ClasswiseECE  *float64 `json:"ece_classwise"`
	AURC          *float64 `json:"aurc"`
	Risk90        *float64 `json:"risk_at_90"`
	Entropy       *float64 `json:"entropy"`
	SetSize       *float64 `json:"set_size"`
	SetCoverage   *float64 `json:"set_coverage"`
}

func newMetricsJSON(m calibrate.Metrics) metricsJSON {
	return metricsJSON{
		Accuracy: finite(m.Accuracy), Top5: finite(m.Top5), NLL: finite(m.NLL), Brier: finite(m.Brier), ECE: finite(m.ECE),
		ECEEqualWidth: finite(m.ECEEqualWidth), ECEReference: finite(m.ECEReference), ClasswiseECE: finite(m.ClasswiseECE),
		AURC: finite(m.AURC), Risk90: finite(m.SelectiveRisk), Entropy: finite(m.Entropy),
		SetSize: finite(m.SetSize), SetCoverage: finite(m.SetCoverage),
	}
}

// scaledJSON is a method with a scaling.
type scaledJSON struct {
	metricsJSON
	Temperatures []float64 `json:"temperatures,omitempty"`
	CrossFitted  bool      `json:"cross_fitted"`
	Warnings     []string  `json:"warnings"`
}

func newScaledJSON(s *ensemble.Scaled) *scaledJSON {
	if s == nil {
		return nil
	}
	return &scaledJSON{newMetricsJSON(s.Metrics), s.Temperatures, s.CrossFitted, texts(append(s.Warnings, s.Metrics.Warnings...))}
}

func texts(errs []error) []string {
	out := []string{}
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// differenceJSON is a difference to the baseline with its interval, or null.
type differenceJSON struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

func newDifferenceJSON(m ensemble.Method, i calibrate.Interval) *differenceJSON {
	if m.Baseline {
		return nil
	}
	return &differenceJSON{finite(i.Mean), finite(i.Low), finite(i.High)}
}

// methodJSON is a row. Differences are those of losses: positive is worse.
type methodJSON struct {
	Method  string `json:"method"`
	Key     string `json:"key"`
	Members int    `json:"members"`
	metricsJSON
	NLLAtBestT      *float64        `json:"nll_at_best_t"`
	Temperatures    []float64       `json:"temperatures,omitempty"` // of the method itself
	CrossFitted     bool            `json:"cross_fitted"`
	ByTemperature   *scaledJSON     `json:"temperature_scaled"`
	ByVector        *scaledJSON     `json:"vector_scaled"`
	NLLDifference   *differenceJSON `json:"nll_difference"`
	ErrorDifference *differenceJSON `json:"error_difference"`
	BrierDifference *differenceJSON `json:"brier_difference"`
	StaleBN         bool            `json:"stale_bn"`
	Baseline        bool            `json:"baseline"`
	Warnings        []string        `json:"warnings"`
}

// writeCompareJSON prints everything, unrounded.
func writeCompareJSON(w io.Writer, cmp *ensemble.Comparison, bn *batchNorm, methods []ensemble.Method) error {
	out := struct {
		Images     int                   `json:"images"`
		Members    int                   `json:"members"`
		Scale      float64               `json:"scale"`
		Rank       int                   `json:"rank"`
		Seed       uint64                `json:"seed"`
		ECE        string                `json:"ece_binning"`
		Validation int                   `json:"validation_images"`
		Posteriors []string              `json:"posteriors"`
		Methods    []methodJSON          `json:"methods"`
		Notes      []string              `json:"notes"`
		Warnings   []string              `json:"warnings"`
		BatchNorm  []*ensemble.BatchNorm `json:"batch_norm"` // of each posterior; null without batch norm
		Verdict    []string              `json:"verdict"`
	}{Images: cmp.Test.Len(), Members: cmp.Members, Scale: cmp.Scale, Rank: cmp.Runs[0].Network.Posterior.Options.Columns, Seed: cmp.Seed,
		ECE: cmp.ECE.Binning.String(), Notes: append([]string{}, cmp.Notes...), Warnings: append([]string{}, bn.warnings()...), BatchNorm: bn.records, Verdict: compareVerdict(methods, cmp.Test.Len())}
	if cmp.Validation != nil {
		out.Validation = cmp.Validation.Len()
	}
	for _, r := range cmp.Runs {
		out.Posteriors = append(out.Posteriors, r.Network.Posterior.Path)
	}
	for _, m := range methods {
		row := methodJSON{
			Method: m.Name, Key: m.Key, Members: m.Members, metricsJSON: newMetricsJSON(m.Metrics), NLLAtBestT: finite(m.NLLAtBestT),
			ByTemperature: newScaledJSON(m.ByTemperature), ByVector: newScaledJSON(m.ByVector),
			NLLDifference: newDifferenceJSON(m, m.NLLDifference), ErrorDifference: newDifferenceJSON(m, m.ErrorDifference),
			BrierDifference: newDifferenceJSON(m, m.BrierDifference), StaleBN: m.StaleBN, Baseline: m.Baseline, Warnings: texts(m.Metrics.Warnings),
		}
		if m.Scaling != nil {
			row.Temperatures, row.CrossFitted = m.Scaling.Temperatures, m.Scaling.CrossFitted
		}
		out.Methods = append(out.Methods, row)
	}
	return indentJSON(w, out)
}
