package ood

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Heading returns the settings in one line.
func (r *Result) Heading() string {
	var values []string
	for _, f := range r.Settings {
		values = append(values, f.Value)
	}
	return strings.Join(values, ", ")
}

// Tables returns the scores by the main measure, and then those by the others.
func (r *Result) Tables() []*report.Table {
	if len(r.uncertainties()) == 1 {
		return []*report.Table{r.mainTable()}
	}
	return []*report.Table{r.mainTable(), r.measuresTable()}
}

func decimal(header string) report.Column {
	return report.Column{Header: header, Align: report.Decimal}
}

func (r *Result) mainTable() *report.Table {
	columns := []report.Column{{Header: "by " + r.main().Name}, decimal("mean in"), decimal("mean out")}
	if r.binned() {
		columns = append(columns, decimal("sym. KL"))
	}
	columns = append(columns, decimal("AUROC"), decimal("AUPR"), decimal("FPR@95"))
	if len(r.Methods) > 1 {
		columns = append(columns, decimal("AUROC − AUROC("+r.baseline().Name+")"), report.Column{Header: "[95 %]"})
	}
	t := report.NewTable(columns...)
	for _, x := range r.Methods {
		cells := []string{x.Name, report.Fixed(x.InMean, 4), report.Fixed(x.OutMean, 4)}
		if r.binned() {
			cells = append(cells, report.Fixed(x.Distance, 3))
		}
		cells = append(cells, scores(x.Scores[0])...)
		if len(r.Methods) > 1 && !x.Baseline {
			cells = append(cells, report.Signed(x.Difference.Mean, 4), report.Interval(x.Difference.Low, x.Difference.High, 4))
		}
		t.Row(cells...)
	}
	note := fmt.Sprintf("OUT is what is to be found, %s of the images", report.Percent(float64(r.Sizes[1])/float64(r.Sizes[0]+r.Sizes[1]), 0))
	if r.binned() {
		note += fmt.Sprintf("; sym. KL: %s, counts raised by %g, nats", r.bins(), calibrate.DefaultSmoothing)
	}
	t.Note(note)
	if label := r.main().Label; label != "" {
		t.Note("mean in, mean out: " + label)
	}
	if task.Missing(r.task) != nil {
		t.Warn(lackingNote)
	}
	for _, x := range r.Methods {
		if x.Key == baseline.Laplace {
			t.Note(baseline.TauNote)
		}
		if n := x.outside(); n != "" {
			t.Note(fmt.Sprintf("%s: outside the bins, and so of sym. KL: %s", x.Name, n))
		}
		for _, note := range x.Notes {
			t.Warn(fmt.Sprintf("%s: %v", x.Name, note))
		}
	}
	return t
}

// lackingNote is the note for a task whose networks predict no noise.
const lackingNote = "nothing was said of the noise about the means, which is the same for all images and left out: it changes no order of them. A single network tells nothing apart"

// bins describes the bins of the histograms.
func (r *Result) bins() string {
	n := len(r.Methods[0].In.Counts)
	if u := r.main(); u.Bins != nil {
		return fmt.Sprintf("%ss in %d bins between the least above 0 and the largest of this table, which no other table has", u.Name, n)
	}
	return fmt.Sprintf("entropies in %d bins of the paper", n)
}

// scores returns the cells of a detection, which are empty if there is none.
func scores(d *calibrate.Detection) []string {
	if d == nil {
		return []string{"", "", ""}
	}
	return []string{report.Fixed(d.AUROC, 4), report.Fixed(d.AUPR, 4), report.Percent(d.FPR95, 1)}
}

// outside describes the number of values outside all bins.
func (x *Detected) outside() string {
	var parts []string
	for _, h := range []struct {
		where string
		of    calibrate.Histogram
	}{{"in", x.In}, {"out", x.Out}} {
		if h.of.Below > 0 {
			parts = append(parts, fmt.Sprintf("%s below %.0e %s", report.Thousands(h.of.Below), h.of.Edges[0], h.where))
		}
		if h.of.Above > 0 {
			parts = append(parts, fmt.Sprintf("%s above %.2f %s", report.Thousands(h.of.Above), h.of.Edges[len(h.of.Edges)-1], h.where))
		}
	}
	return strings.Join(parts, ", ")
}

// measuresTable shows the scores by the other measures.
func (r *Result) measuresTable() *report.Table {
	columns := []report.Column{{Header: "by other measures"}}
	for _, u := range r.uncertainties()[1:] {
		columns = append(columns, decimal(u.Name+": AUROC"), decimal("AUPR"), decimal("FPR@95"))
	}
	t := report.NewTable(columns...)
	for _, x := range r.Methods {
		cells := []string{x.Name}
		for _, d := range x.Scores[1:] {
			cells = append(cells, scores(d)...)
		}
		t.Row(cells...)
	}
	return t
}

func (r *Result) baseline() *Detected {
	return &r.Methods[max(0, slices.IndexFunc(r.Methods, func(x Detected) bool { return x.Baseline }))]
}

// Verdict returns the result in plain words. It claims a difference only if its interval excludes 0.
func (r *Result) Verdict() []string {
	base := r.baseline()
	if len(r.Methods) == 1 {
		return append([]string{fmt.Sprintf("A random OUT image is less certain than a random IN image in %s of pairs.", report.Percent(base.Scores[0].AUROC, 1))}, r.reversed()...)
	}
	var lines, better, worse []string
	candidate := max(0, slices.IndexFunc(r.Methods, func(x Detected) bool { return x.Key == baseline.SWAG }))
	if x := r.Methods[candidate]; !x.Baseline {
		lines = append(lines, r.headline(&x, base))
	}
	for i, x := range r.Methods {
		text := fmt.Sprintf("%s (%s)", x.Name, report.Signed(x.Difference.Mean, 4))
		switch {
		case x.Baseline || i == candidate:
		case x.Difference.Low > 0 && x.Scores[0].AUROC > guessing:
			better = append(better, text)
		case x.Difference.High < 0:
			worse = append(worse, text)
		}
	}
	if len(better) > 0 {
		lines = append(lines, fmt.Sprintf("Better than %s: %s.", base.Name, strings.Join(better, ", ")))
	}
	if len(worse) > 0 {
		lines = append(lines, fmt.Sprintf("Worse than %s: %s.", base.Name, strings.Join(worse, ", ")))
	}
	if len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("No method differs from %s at telling the two apart, as far as these images show.", base.Name))
	}
	lines = append(lines, r.reversed()...)
	if n := len(r.Methods) - 1; n > 1 {
		lines = append(lines, fmt.Sprintf("%d methods stand against one, each with a 95 %% interval: if none differed, chance would still show a difference in up to %s of such tables.",
			n, report.Percent(calibrate.FamilywiseError(n), 0)))
	}
	return lines
}

// guessing is the AUROC of a random score.
const guessing = 0.5

// reversed lists the measures by which images of OUT are the more certain ones.
func (r *Result) reversed() (lines []string) {
	for i, u := range r.uncertainties() {
		var sure, perhaps []string
		for _, x := range r.Methods {
			if i >= len(x.Scores) || x.Scores[i] == nil || !(x.Scores[i].AUROC < guessing) {
				continue
			}
			s := x.Scores[i]
			text := fmt.Sprintf("%s (AUROC %s, %s to %s)", x.Name, report.Fixed(s.AUROC, 4), report.Fixed(s.Low, 4), report.Fixed(s.High, 4))
			if s.Reversed() {
				sure = append(sure, text)
			} else {
				perhaps = append(perhaps, text)
			}
		}
		if len(sure) > 0 {
			lines = append(lines, fmt.Sprintf("Reversed: by %s the images of OUT are the more certain ones with %s. Are IN and OUT the right way round? If so, this uncertainty does not find OUT.",
				u.Name, strings.Join(sure, ", ")))
		}
		if len(perhaps) > 0 {
			lines = append(lines, fmt.Sprintf("By %s the images of OUT are the more certain ones, though these images do not tell it from guessing, with %s.", u.Name, strings.Join(perhaps, ", ")))
		}
	}
	return lines
}

// headline compares a method with the baseline.
func (r *Result) headline(x, base *Detected) string {
	d, by := x.Difference, r.main().Name
	numbers := fmt.Sprintf("AUROC %s against %s, %s %s", report.Fixed(x.Scores[0].AUROC, 4), report.Fixed(base.Scores[0].AUROC, 4),
		report.Signed(d.Mean, 4), report.Interval(d.Low, d.High, 4))
	switch {
	case max(x.Scores[0].AUROC, base.Scores[0].AUROC) < guessing:
		return fmt.Sprintf("Neither %s's %s nor that of %s tells the two apart: %s.", x.Name, by, base.Name, numbers)
	case d.Low > 0:
		return fmt.Sprintf("%s's %s tells the two apart better than that of %s: %s.", x.Name, by, base.Name, numbers)
	case d.High < 0:
		return fmt.Sprintf("%s's %s tells the two apart worse than that of %s: %s.", x.Name, by, base.Name, numbers)
	}
	return fmt.Sprintf("These images show no difference between %s and %s at telling the two apart: %s.", x.Name, base.Name, numbers)
}

// Page returns the result with figures.
func (r *Result) Page() *report.Report {
	page := &report.Report{Title: "Out of the domain", Verdict: r.Verdict(), Warnings: append(r.BatchNorm.Warnings(), r.Notes...),
		Facts: slices.Concat(r.Settings, r.BatchNorm.Facts()), Provenance: r.Provenance,
		Tables: []report.NamedTable{
			{Title: "By " + r.main().Name, Explanation: fmt.Sprintf("How well the %s of the averaged predictions tells the images of the other domain.", r.main().Name), Table: r.mainTable()},
		}}
	if len(r.uncertainties()) > 1 {
		page.Tables = append(page.Tables, report.NamedTable{Title: "By other measures", Table: r.measuresTable()})
	}
	for _, x := range r.Methods {
		if !r.binned() {
			break
		}
		page.Entropies = append(page.Entropies, plot.HistogramPair{Name: x.Name, In: x.In, Out: x.Out, Label: r.main().Label,
			Note: fmt.Sprintf("AUROC %s, symmetrised KL %s nats", report.Fixed(x.Scores[0].AUROC, 3), report.Fixed(x.Distance, 2))})
	}
	return page
}

// JSON returns all numbers, unrounded, with the histograms.
func (r *Result) JSON() any {
	histogram := func(h calibrate.Histogram) study.Object {
		return study.Fields("edges", h.Edges, "counts", h.Counts, "below", h.Below, "above", h.Above)
	}
	methods := []study.Object{}
	for _, x := range r.Methods {
		row := study.Fields("method", x.Name)
		add := func(pairs ...any) { row = append(row, study.Fields(pairs...)...) }
		if x.Key != "" {
			add("key", x.Key, "members", x.Members)
		}
		add("stale_bn", x.StaleBN, "mean_"+r.main().Key+"_in", x.InMean, "mean_"+r.main().Key+"_out", x.OutMean)
		if r.binned() {
			add("symmetrised_kl", study.Finite(x.Distance), "in", histogram(x.In), "out", histogram(x.Out))
		}
		for i, u := range r.uncertainties() {
			add(u.Key, x.Scores[i])
		}
		var difference any
		if !x.Baseline {
			difference = study.Interval("value", x.Difference)
		}
		add("auroc_difference", difference, "baseline", x.Baseline, "warnings", study.Texts(x.Notes))
		methods = append(methods, row)
	}
	out := study.Fields("images_in", r.Sizes[0], "images_out", r.Sizes[1], "smoothing", calibrate.DefaultSmoothing, "methods", methods, "warnings", r.BatchNorm.Warnings())
	if len(r.BatchNorm.Records) > 0 {
		out = append(out, study.Fields("batch_norm", r.BatchNorm.Records)...)
	}
	return append(out, study.Fields("verdict", r.Verdict())...)
}
